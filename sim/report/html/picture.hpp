// The cluster as the page draws it: equal devices are one shape with a count, links between two such classes
// one line, so that 16,384 accelerators are as legible as eight.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/executor/outcome.hpp"
#include "topology/topology.hpp"

namespace topsim::report {

struct PictureDevice {
  std::string name;  // of the first member
  std::string model;
  topology::DeviceKind kind{};
  std::uint8_t tier = 0;
  std::uint32_t count = 0;  // members; the chips or switches a member stands for are counted each
  std::int32_t node = -1;   // index into Picture::nodes; -1: in the fabric
  std::int32_t rank = -1;   // accelerators: the first member's rank; -1: not part of the job
};

// All links from one class of devices to another that are of one type.
struct PictureLink {
  std::uint32_t from = 0, to = 0;  // indices into Picture::devices
  std::string id, kind, type;      // of the first member
  std::uint32_t count = 0;
  double capacity = 0;        // bytes/s of the first member
  double bytes = 0;           // of all members, over the measured steps
  double utilization = 0;     // mean of the members
  double most = 0, peak = 0;  // the busiest member: its mean, and the highest instant of any
  std::int32_t series = -1;   // the busiest member's class: index into Outcome::links; -1: carried nothing
};

struct PictureNode {
  std::string name;
  std::uint32_t count = 0;
};

struct Picture {
  std::vector<PictureNode> nodes;
  std::vector<PictureDevice> devices;
  std::vector<PictureLink> links;
  // Which class of ranks each rank belongs to: runs of (first rank, index into Outcome::ranks).
  std::vector<std::pair<std::uint32_t, std::uint32_t>> rank_classes;
  bool exact = true;  // false: devices whose links differ in utilisation share a shape
};

[[nodiscard]] Picture make_picture(const topology::Topology& topology, const executor::Outcome& outcome);
}  // namespace topsim::report
