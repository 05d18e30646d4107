// What a buyer or owner should know about a topology before anything is simulated on it.
#pragma once

#include <string>
#include <vector>

#include "topology/catalogue.hpp"
#include "topology/routes.hpp"
#include "topology/topology.hpp"

namespace topsim::topology {

enum class Severity : std::uint8_t { info, warning, error };
[[nodiscard]] std::string_view name_of(Severity severity);

struct Finding {
  Severity severity;
  std::string message;  // one sentence: what, where, how much
  std::string where;    // the first device or link it is about
};

// Oversubscription (a tier carries less up than down), hosts that miss a rail, NICs faster than their slot,
// speeds no hardware has, unequal uplinks, switches and cables whose loss cuts ranks off, unreachable ranks.
// Errors first. `catalogue` says how fast hardware is.
[[nodiscard]] std::vector<Finding> check(const Topology& topology, const Catalogue& catalogue);
// Of them, links that carry more than their line rate: what a run says of a hand-written topology, too.
[[nodiscard]] std::vector<Finding> overfull_links(const Topology& topology);
}  // namespace topsim::topology
