// Routes between nodes: what follows from the nodes' shapes, their positions in the fabric and the places of
// the ends is computed once (remembered.hpp). Large clusters need hundreds of thousands of routes of a few
// dozen kinds.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "sim/base/mix.hpp"
#include "sim/base/units.hpp"

namespace topsim::topology {

// The NICs by which a route leaves the node of one end and arrives at the other.
struct NicChoice {
  // Everything that it follows from; devices as positions in their node, none where the router chooses.
  struct Key {
    std::uint32_t from_kind, to_kind;  // of the nodes: shapes, or standings and what they have in common
    std::uint32_t from, to, from_nic, to_nic;
    std::uint32_t from_turn, to_turn;  // of the connection, among the ports that its node deals out
    std::uint32_t options;
    friend bool operator==(const Key&, const Key&) = default;
    [[nodiscard]] std::size_t hash() const {
      const auto pair = [](std::uint32_t a, std::uint32_t b) { return std::uint64_t{a} << 32 | b; };
      return hash_words(std::array{pair(from_kind, to_kind), pair(from, to), pair(from_nic, to_nic),
                                   pair(from_turn, to_turn), std::uint64_t{options}});
    }
  };
  bool reachable = false;
  std::uint32_t proxy = 0, leave = 0, enter = 0;  // whose NIC it takes, that NIC, and the one it arrives at
  Duration latency{};                             // of the ways inside both nodes
};
}  // namespace topsim::topology
