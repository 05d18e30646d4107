#include "sim/scenario/cluster/unreachable.hpp"

#include <fmt/format.h>

namespace topsim::scenario {
namespace {
std::string help_with(const topology::Topology& topology, bool faulty, const std::string& link) {
  const bool listed = topology.has_explicit_names();
  if (!listed && topology.fabric_kind == topology::FabricKind::none)
    return fmt::format(
        "e.g. \"fabric\": {{\"kind\": \"rail\", \"link\": {}}}; topsim list fabrics names whole ones",
        link.empty() ? R"("ib-ndr", "switch": "qm9700")" : '"' + link + '"');
  if (faulty) return "without \"at\" and \"for\" a part is down for the whole run, and no other path is left";
  return "topsim topo check finds what is not joined";
}
}  // namespace

std::optional<Problem> unreachable_rank(const topology::Router& router, bool faulty,
                                        const std::string& link) {
  const topology::Topology& topology = router.topology();
  const auto ranks = topology.accelerators();
  for (const DeviceId rank : ranks) {
    topology::RouteQuery query;
    query.from = ranks.front(), query.to = rank;
    topology::Route route;
    router.route(query, route);
    if (rank == ranks.front() || route.reachable()) continue;
    Problem problem;
    const bool listed = topology.has_explicit_names();
    const bool alone = !listed && topology.fabric_kind == topology::FabricKind::none;
    problem.path = faulty && !alone ? "faults" : listed ? "topology" : "topology.fabric";
    problem.message = router.why_unreachable(query);
    problem.help = help_with(topology, faulty, link);
    return problem;
  }
  return std::nullopt;
}
}  // namespace topsim::scenario
