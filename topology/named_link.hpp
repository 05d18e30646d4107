// Links by the names that people write: "leaf3 -> node7/nic0". The names of two ends mean all parallel cables
// between them, whether these are one Link or several; "leaf0 -> spine1 #2" is the third of them. "leaf3 -
// node7/nic0" means both directions. Tables print ">" for the arrow, which is read too.
//
// Switches that traffic divides over evenly are one device that stands for Device::count of them; single ones
// are written "spine0[0]", "spine0[1]", ...
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "topology/topology.hpp"

namespace topsim::topology {

// A link, or one of `of` equal parts of it.
struct NamedLink {
  LinkId link;
  std::uint32_t of = 1, part = 0;
  std::string from, to;
  std::string cable;  // " #2" where the name says so
};

// Empty where there is none.
[[nodiscard]] std::vector<NamedLink> find_links(const Topology& topology, const std::string& given);

// Throws ConfigError with the existing links when there is none of that name.
[[nodiscard]] std::vector<NamedLink> named_links(const Topology& topology, const std::string& name);
}  // namespace topsim::topology
