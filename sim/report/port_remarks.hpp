// Remarks for a buyer on the ports of a fabric's switches: leaves that are mostly empty, upper tiers that
// whole cables do not fill, ports that are split.
#pragma once

#include <string>
#include <vector>

#include "topology/catalogue.hpp"
#include "topology/topology.hpp"

namespace topsim::report {
[[nodiscard]] std::vector<std::string> port_remarks(const topology::Topology& topology,
                                                    const topology::Catalogue& catalogue);
}  // namespace topsim::report
