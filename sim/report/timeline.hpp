// What happened when, with names instead of ids: the input of the trace exporters, the CSV and the page. One
// lane per class of ranks that behave alike, so its size depends on distinct behaviours, not on ranks.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sim/executor/outcome.hpp"
#include "topology/topology.hpp"

namespace topsim::report {

struct Lane {
  std::uint32_t rank = 0, count = 1, node = 0;  // first member, members
  std::string device, program;
  std::vector<std::string> streams;
};

struct Slice {
  std::uint32_t lane = 0;
  std::uint32_t name = 0;  // into Timeline::names
  std::uint16_t stream = 0, step = 0;
  std::string_view phase;  // static text
  bool waits = false;      // ready > begin: the first part is a wait for others
  SimTime begin, ready, end;
  std::uint64_t flow = 0;  // a send and the receive it ends in share one; 0: none
  bool receives = false;
  bool computes = false;  // work of the accelerator, on whatever stream
};

struct IdleSlice {
  std::uint32_t lane = 0;
  executor::Reason reason = executor::Reason::other;
  SimTime begin, end;
};

struct LinkCounter {
  std::string id, kind, type;
  std::uint32_t count = 1;
  double capacity = 0;  // bytes/s
};
struct CounterSample {
  std::uint32_t link = 0;  // into Timeline::links
  SimTime time;
  double utilization = 0;  // share of the capacity
};

struct Timeline {
  std::vector<Lane> lanes;
  std::vector<std::string> names;
  std::vector<Slice> slices;  // by (lane, stream, begin); those of one stream never overlap
  std::vector<IdleSlice> idle;
  std::vector<LinkCounter> links;
  std::vector<CounterSample> samples;  // by (link, time)
};

// REQUIRES: all three belong to the same run. Rank r is on accelerators()[r].
[[nodiscard]] Timeline make_timeline(const topology::Topology& topology, const program::Program& program,
                                     const executor::Outcome& outcome);
[[nodiscard]] std::string_view name_of(program::Phase phase);
}  // namespace topsim::report
