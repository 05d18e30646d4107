// Links by the names that people write: "leaf3 -> node7/nic0", "leaf0 -> spine1 #2" (the third of parallel
// cables).
//
// Switches that traffic divides over evenly are one device that stands for Device::count of them; single ones
// are written "spine0[0]", "spine0[1]", ...
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "topology/topology.hpp"

namespace topsim::topology {

// A link, or one of `of` equal parts of it.
struct NamedLink {
  LinkId link;
  std::uint32_t of = 1;
  std::string from, to;
};

// Throws ConfigError, saying which links there are, when this is none.
[[nodiscard]] NamedLink named_link(const Topology& topology, const std::string& name);
}  // namespace topsim::topology
