// Who is wired to whom in NCCL's channels, read by both forms of a collective: the pipelined form loads the
// links of these hops, the message form sends its messages over them. Facts: NCCL 2.30 graph/connect.cc,
// graph/rings.cc, graph/trees.cc.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "sim/collective/placement.hpp"
#include "topology/routes.hpp"

namespace topsim::collective {

// From one GPU to the next.
struct Hop {
  DeviceId from{}, to{};
  std::uint32_t from_rank = 0, to_rank = 0;
  std::size_t from_box = 0, to_box = 0;
  DeviceId from_nic{}, to_nic{};  // between boxes, where the channel names them
  [[nodiscard]] bool between() const { return from_box != to_box; }
  [[nodiscard]] topology::RouteQuery query(int connection) const {
    return {.from = from,
            .to = to,
            .connection = static_cast<std::uint64_t>(connection),
            .from_nic = from_nic,
            .to_nic = to_nic};
  }
  [[nodiscard]] Hop back() const {
    return {to, from, to_rank, from_rank, to_box, from_box, to_nic, from_nic};
  }
};

// The numbers of channels may exceed what searches found: the channels found are then used again, by trees in
// turn for the first and the second tree.

// A ring through all boxes, in order of travel, beginning at the first box.
[[nodiscard]] std::vector<Hop> ring_of(const Placement& placement, int channel);
// Each rank's hop to its parent, box after box: a chain in each box, and over the boxes one of NCCL's two
// binary trees, which complement each other (inner boxes of one are leaves of the other).
[[nodiscard]] std::vector<Hop> tree_of(const Placement& placement, int channel);
// NVLSTree: from a head (GPU that sums a share in the NVSwitch) to the same head of the parent's box.
[[nodiscard]] std::vector<Hop> head_tree_of(const Placement& placement, int head, bool second);
// By which number the routes of a head's tree are hashed.
[[nodiscard]] constexpr int head_connection(int head, bool second) {
  return 2 * head + (second ? 1 : 0);
}
}  // namespace topsim::collective
