#include "topology/routing/path_capacities.hpp"

#include <algorithm>
#include <limits>
#include <set>

namespace topsim::topology {

PathCapacities::PathCapacities(const Topology& topology, const Hops& hops, std::span<const SlowLink> slow)
    : topology_(&topology), hops_(&hops) {
  for (const SlowLink& each : slow) factors_[each.link] = each.factor;
}

double PathCapacities::of(LinkId link) const {
  const double whole = topology_->link(link).capacity.value();
  const auto slow = factors_.find(link);
  return slow == factors_.end() ? whole : whole * slow->second;
}

bool PathCapacities::is_another(LinkId link, Alike& alike) const {
  const Link& row = topology_->link(link);
  const double cable = of(link) / row.count;
  const std::pair<int, int> tiers{topology_->device(row.from).tier, topology_->device(row.to).tier};
  return alike.try_emplace(tiers, cable).first->second != cable;
}

bool PathCapacities::differ() const {
  Alike alike;
  return std::any_of(hops_->begin(), hops_->end(), [&](const std::vector<Hop>& out) {
    return std::any_of(out.begin(), out.end(), [&](const Hop& hop) { return is_another(hop.link, alike); });
  });
}

bool PathCapacities::differ_around(std::uint32_t from, const Distances& far) const {
  Alike alike;
  for (const Hop& hop : (*hops_)[from]) {
    if (far[hop.to] > 1) continue;
    if (is_another(hop.link, alike)) return true;
    if (far[hop.to] == 0) continue;
    for (const Hop& second : (*hops_)[hop.to])
      if (far[second.to] == 0 && is_another(second.link, alike)) return true;
  }
  return false;
}

// A vertex passes on no more than its hops and what is behind each of them carry, and no more than all that
// it reaches at any later step: several of its neighbours may have to share what is behind them.
std::map<std::uint32_t, double> PathCapacities::onwards(std::uint32_t from, const Distances& far) const {
  using Vertices = std::set<std::uint32_t>;
  const auto next_of = [&](const Vertices& here, const auto& visit) {
    Vertices next;
    for (const std::uint32_t at : here)
      for (const Hop& hop : (*hops_)[at])
        if (far[hop.to] + 1 == far[at]) visit(hop), next.insert(hop.to);
    return next;
  };
  Alike alike;
  bool differ = false;
  std::vector<Vertices> steps{{from}};
  while (far[*steps.back().begin()] > 0)
    steps.push_back(
        next_of(steps.back(), [&](const Hop& hop) { differ = is_another(hop.link, alike) || differ; }));
  std::map<std::uint32_t, double> onwards;
  if (!differ) return onwards;
  onwards[*steps.back().begin()] = std::numeric_limits<double>::infinity();
  for (std::size_t step = steps.size() - 1; step-- > 0;) {
    for (const std::uint32_t at : steps[step]) {
      double carries = 0;
      Vertices reached =
          next_of({at}, [&](const Hop& hop) { carries += std::min(of(hop.link), onwards.at(hop.to)); });
      while (far[*reached.begin()] > 0) {
        double all = 0;
        for (const std::uint32_t each : reached) all += onwards.at(each);
        carries = std::min(carries, all);
        reached = next_of(reached, [](const Hop&) {});
      }
      onwards[at] = carries;
    }
  }
  return onwards;
}
}  // namespace topsim::topology
