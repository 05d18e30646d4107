// Collectives of accelerators joined as a torus or mesh (TPU): no NCCL there. The buffer is cut in as many
// parts as the block has axes; each part is gathered along one axis after the other, beginning with another
// one, in both directions at once, so that all links are busy (Jain & Sabharwal 2010; Austin et al., How to
// Scale Your Model, 2025, "Sharded matrices").
// Where every node holds a torus of its own (Trainium 2), sums come from the node first and then go round the
// chips of one place on all nodes, each by its own NIC (AWS Neuron documentation, "Inter-node Collective
// Communications"); gathers the other way about.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "sim/collective/usage.hpp"

namespace topsim::collective {

// What a block of a torus does axis after axis; the others are messages.
[[nodiscard]] inline bool by_axes(CollectiveKind kind) {
  return kind <= CollectiveKind::reduce || kind == CollectiveKind::barrier;
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

class Torus {
 public:
  explicit Torus(const topology::Topology& topology);
  // None where the topology is no torus, or the accelerators are no block of neighbours.
  [[nodiscard]] std::optional<TorusBlock> block_of(std::span<const DeviceId> gpus) const;

 private:
  [[nodiscard]] bool of_nodes() const;

  const topology::Topology& topology_;
  std::vector<std::uint32_t> place_;  // by device: its coordinate, row-major; kNone: no chip of the torus
};

// REQUIRES: no all-to-all. A broadcast or reduce is taken as a gather to which the root's own part is added.
void lower_torus(CollectiveKind kind, const TorusBlock& block, UsageBuilder& usage);
// The hops that the last byte waits for, of messages to all others (or the neighbour), too; `between`: of a
// message between nodes.
[[nodiscard]] Duration torus_latency(CollectiveKind kind, const TorusBlock& block,
                                     const topology::Topology& topology, Duration between);
}  // namespace topsim::collective
