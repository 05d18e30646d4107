#include "topology/build/clos_plan.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "sim/base/error.hpp"

namespace topsim::topology {
namespace {

// How `uplinks` cables are spread over the switches above.
struct Spread {
  int switches = 0, cables = 0;  // cables to each of them
};

// REQUIRES: uplinks > 0. `below` switches share the upper ones, each of which has `ports` ports for them.
std::optional<Spread> spread(int uplinks, int most_uplinks, int below, int ports) {
  std::optional<Spread> rounded, exact;
  for (int switches = 1; switches <= most_uplinks; ++switches) {
    const int cables = (uplinks + switches - 1) / switches;
    if (switches * cables > most_uplinks || below * cables > ports) continue;
    if (!rounded) rounded = Spread{switches, cables};
    if (switches * cables == uplinks) {
      exact = Spread{switches, cables};
      break;
    }
  }
  // The exact ratio, unless it needs more than twice the switches of a slightly better ratio.
  if (exact && exact->switches <= 2 * rounded->switches) return exact;
  return rounded;
}

int ceil_ratio(int ports, double ratio) {
  constexpr double kMost = 1e9;  // more than any switch has
  return static_cast<int>(std::clamp(std::ceil(ports / ratio - 1e-9), 1.0, kMost));
}

std::optional<ClosPlan> two_tiers(const ClosDemand& d) {
  const auto up = spread(ceil_ratio(d.down_ports, d.leaf_ratio * d.uplink_speed),
                         free_uplinks(d.radix, d.uplink_radix, d.down_ports), d.leaves, d.spine_radix);
  if (!up) return std::nullopt;
  ClosPlan plan;
  plan.leaves_per_pod = d.leaves;
  plan.spines = up->switches;
  plan.leaf_cables = up->cables;
  return plan;
}

std::optional<ClosPlan> three_tiers(const ClosDemand& d) {
  const int spine_down = down_ports_of(d.spine_radix, d.spine_radix, d.spine_ratio);
  const int uplinks = ceil_ratio(d.down_ports, d.leaf_ratio * d.uplink_speed);
  const int most_up = free_uplinks(d.radix, d.uplink_radix, d.down_ports);
  const int most = d.leaves_per_pod > 0 ? d.leaves_per_pod : spine_down;
  const int groups = d.leaves / d.rails;
  for (int per_pod = std::min({most, spine_down / d.pod_rails, groups}); per_pod > 0; --per_pod) {
    const auto up = spread(uplinks, most_up, per_pod * d.pod_rails, spine_down);
    if (!up) continue;
    const int pods = d.rails / d.pod_rails * ((groups + per_pod - 1) / per_pod);
    const int down = per_pod * d.pod_rails * up->cables;
    const auto core = spread(ceil_ratio(down, d.spine_ratio), d.spine_radix - down, pods, d.core_radix);
    if (!core) return std::nullopt;
    return ClosPlan{3, pods, per_pod, up->switches, up->cables, core->switches, core->cables};
  }
  return std::nullopt;
}

}  // namespace

int free_uplinks(int radix, int uplink_radix, int down) {
  return static_cast<int>((1 - static_cast<double>(down) / radix) * uplink_radix + 1e-6);
}

int down_ports_of(int radix, int uplink_radix, double down_per_up) {
  for (int down = radix - 1; down > 1; --down)
    if (ceil_ratio(down, down_per_up) <= free_uplinks(radix, uplink_radix, down)) return down;
  return 1;
}

ClosPlan plan_clos(const ClosDemand& asked) {
  ClosDemand demand = asked;
  if (demand.uplink_radix == 0) demand.uplink_radix = demand.radix;
  if (demand.spine_radix == 0) demand.spine_radix = demand.uplink_radix;
  if (demand.core_radix == 0) demand.core_radix = demand.spine_radix;
  if (demand.tiers != 3)
    if (const auto plan = two_tiers(demand)) return *plan;
  if (demand.tiers != 2)
    if (const auto plan = three_tiers(demand)) return *plan;
  const auto endpoints = static_cast<long long>(demand.leaves) * demand.down_ports;
  const long long two =
      static_cast<long long>(demand.spine_radix) *
      down_ports_of(demand.radix, demand.uplink_radix, demand.leaf_ratio * demand.uplink_speed);
  const long long three = two * down_ports_of(demand.core_radix, demand.core_radix, demand.spine_ratio);
  throw ConfigError({Problem{
      {},
      "topology.fabric",
      fmt::format("{} leaf switches with {} ports down each do not fit a {}-tier fabric of {}-port switches",
                  demand.leaves, demand.down_ports, demand.tiers == 2 ? 2 : 3, demand.spine_radix),
      {},
      fmt::format("{} ports are needed; two tiers of this switch carry {}, three carry {}. Use a switch with "
                  "more ports, a higher oversubscription{}",
                  endpoints, two, three, demand.tiers == 2 ? ", or tiers 3" : ", or fewer nodes"),
      {}}});
}

}  // namespace topsim::topology
