// A communicator on a real topology: which of its ranks share a box, in which order the boxes come, and which
// devices of each box NCCL's graphs (shared between boxes of one shape) stand for.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "sim/collective/collective.hpp"
#include "sim/collective/nccl/communicator.hpp"
#include "sim/collective/nccl/tuner.hpp"
#include "topology/routes.hpp"

namespace topsim::collective {

// One box of one communicator. Positions are those of nccl::System.
struct PlacedBox {
  const nccl::Box* graphs = nullptr;
  std::span<const DeviceId> gpus;
  std::span<const DeviceId> nics;        // invalid: several, joined by the network's plugin
  std::span<const std::uint32_t> ranks;  // position in the communicator of each GPU
};

struct Placement {
  Placement() = default;
  Placement(Placement&&) = default;  // what boxes look at moves along, and is never copied
  std::vector<PlacedBox> boxes;
  const nccl::Tuner* tuner = nullptr;
  std::uint32_t ranks = 0;
  std::vector<DeviceId> gpus, nics;      // of all boxes, one after the other
  std::vector<std::uint32_t> positions;  // of `gpus` in the communicator
};

// Finds the graphs of box shapes and the tuners of communicator shapes, once each. Thread-safe.
class Placer {
 public:
  // REQUIRES: router outlives the placer; searches is not null.
  Placer(const topology::Router& router, const Overrides& overrides, std::shared_ptr<Searches> searches);
  ~Placer();
  // REQUIRES: gpus not empty. Valid as long as the placer.
  [[nodiscard]] Placement place(std::span<const DeviceId> gpus) const;
  // Equal for nodes that are wired alike.
  [[nodiscard]] std::uint64_t signature(std::uint32_t node) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};
}  // namespace topsim::collective
