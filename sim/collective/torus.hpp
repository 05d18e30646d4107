// Collectives of accelerators joined as a torus or mesh (TPU), without NCCL. The buffer is cut into as many
// parts as the block has axes. Each part is gathered along one axis after another, each starting with a
// different axis, in both directions at once, so that all links are busy (Jain & Sabharwal 2010; Austin et
// al., How to Scale Your Model, 2025, "Sharded matrices"). Where every node holds a torus of its own
// (Trainium 2), sums come from the node first and then go round the chips of one place on all nodes, each by
// its own NIC (AWS Neuron documentation, "Inter-node Collective Communications"); gathers the other way
// about.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "sim/collective/usage.hpp"

namespace topsim::collective {

// The collectives that a block of a torus does axis after axis; the others are messages.
[[nodiscard]] inline bool by_axes(CollectiveKind kind) {
  return tuned(kind) || kind == CollectiveKind::barrier;
}

// A communicator that fills a block of the torus.
struct TorusBlock {
  struct Axis {
    std::uint32_t size;
    bool ring;           // the whole axis, and its ends are joined
    bool nodes = false;  // through NICs and the fabric
  };
  std::vector<Axis> axes;       // those along which it has more than one
  std::vector<DeviceId> chips;  // by coordinate in the block, row-major
};

// Whether links join the ends of that dimension of the torus.
[[nodiscard]] bool is_ring(const topology::Topology& topology, std::size_t dimension);

class Torus {
 public:
  explicit Torus(const topology::Topology& topology);
  // None where the topology is not a torus, or the accelerators are not a block of neighbours.
  [[nodiscard]] std::optional<TorusBlock> block_of(std::span<const DeviceId> gpus) const;

 private:
  [[nodiscard]] bool of_nodes() const;

  const topology::Topology& topology_;
  std::vector<std::uint32_t> place_;  // by device: its coordinate, row-major; kNone: no chip of the torus
  std::vector<bool> rings_;           // by dimension
};

// REQUIRES: not all-to-all. A broadcast or reduce is a gather to which the root's own part is added.
void lower_torus(CollectiveKind kind, const TorusBlock& block, UsageBuilder& usage);
// What an operation takes to start and the latency of the hops that the last byte waits for, also for
// messages to all others (or the neighbour); `between`: of a message between nodes.
[[nodiscard]] Duration torus_latency(CollectiveKind kind, const TorusBlock& block,
                                     const topology::Topology& topology, Duration between);
}  // namespace topsim::collective
