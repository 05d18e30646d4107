#include "sim/scenario/cluster/sharp_faults.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

namespace topsim::scenario {
namespace {
using collective::Algorithm;

bool sums_in_switches(const fold::Activity& activity) {
  const Algorithm algorithm = activity.choice.algorithm;
  return algorithm == Algorithm::collnet_direct || algorithm == Algorithm::collnet_chain ||
         algorithm == Algorithm::nvls;  // inside one box it uses no link of the fabric
}
}  // namespace

std::vector<SharpStop> sharp_stops(const fold::System& system, const topology::Topology& topology,
                                   const std::vector<executor::CapacityChange>& changes) {
  std::vector<SharpStop> stops;
  if (!topology.sharp) return stops;
  std::map<std::uint32_t, Algorithm> summed_over;  // by link class
  for (const fold::Activity& activity : system.activities)
    if (sums_in_switches(activity))
      for (const network::Usage& usage : fold::Activity::view(activity.usage))
        summed_over.try_emplace(usage.link, activity.choice.algorithm);
  std::map<LinkId, Algorithm> links;
  for (const auto& [link_class, algorithm] : summed_over)
    for (const LinkId link : system.links[link_class].members)
      if (topology.link(link).kind == topology::LinkKind::infiniband) links.emplace(link, algorithm);
  std::set<LinkId> seen;
  for (const executor::CapacityChange& change : changes) {
    const auto found = links.find(change.link);
    if (found == links.end() || change.factor > 0 || !seen.insert(change.link).second) continue;
    SharpStop stop{change.at, {}};
    stop.problem.path = "faults";
    stop.problem.message = fmt::format(
        "{} fails at {:.6g} s, and {} sums over it in the switches: SHARP stops a job whose tree loses a "
        "link",
        topology.name(change.link), seconds(change.at.time_since_epoch()), name_of(found->second));
    stop.problem.help =
        "\"sharp\": false lets NCCL take other paths; without \"at\" and \"for\" the job starts around "
        "what is down; what a restart costs, gpu_down with \"reliability\" counts";
    stops.push_back(std::move(stop));
  }
  std::stable_sort(stops.begin(), stops.end(),
                   [](const SharpStop& a, const SharpStop& b) { return a.at < b.at; });
  return stops;
}
}  // namespace topsim::scenario
