// Routes between nodes: what follows from the nodes' shapes, where they hang and the places of the ends in
// them is worked out once (remembered.hpp). Large clusters ask for hundreds of thousands of routes of a few
// dozen kinds.
#pragma once

#include <cstddef>
#include <cstdint>

#include "sim/base/units.hpp"

namespace topsim::topology {

// What a route does inside the nodes of its ends.
struct Journey {
  // Everything that it follows from; devices as positions in their node, none where the router chooses.
  struct Key {
    std::uint32_t from_kind, to_kind;  // of the nodes: shapes, or standings and what they have in common
    std::uint32_t from, to, from_nic, to_nic;
    std::uint32_t from_turn, to_turn;  // of the connection, among the ports that its node deals out
    std::uint32_t options;
    friend bool operator==(const Key&, const Key&) = default;
    [[nodiscard]] std::size_t hash() const {
      // A sum of products, each word by an odd number of its own, then the upper half into the lower.
      const auto pair = [](std::uint32_t a, std::uint32_t b) { return std::uint64_t{a} << 32 | b; };
      std::uint64_t h = pair(from_kind, to_kind) * 0x9e3779b97f4a7c15ULL;
      h += pair(from, to) * 0xbf58476d1ce4e5b9ULL;
      h += pair(from_nic, to_nic) * 0x94d049bb133111ebULL;
      h += pair(from_turn, to_turn) * 0xd1b54a32d192ed03ULL;
      h += options * 0xff51afd7ed558ccdULL;
      h = (h ^ h >> 32) * 0x9e3779b97f4a7c15ULL;
      return static_cast<std::size_t>(h >> 32);
    }
  };
  bool reachable = false;
  std::uint32_t proxy = 0, leave = 0, enter = 0;  // whose NIC it takes, that NIC, and the one it arrives at
  Duration latency{};                             // of the ways inside both nodes
};
}  // namespace topsim::topology
