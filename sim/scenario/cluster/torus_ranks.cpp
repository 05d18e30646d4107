#include "sim/scenario/cluster/torus_ranks.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>
#include <string>
#include <tuple>

namespace topsim::scenario {
namespace {
using topology::Topology;

// An axis of the plan: groups of `size` ranks that are `stride` apart.
struct LogicalAxis {
  const char* name;
  int stride, size;
};

// The axes with the most communication first.
std::vector<LogicalAxis> logical_axes(const workloads::Plan& plan) {
  const std::vector<LogicalAxis> all{{"tp", 1, plan.tp},
                                     {"cp", plan.tp, plan.cp},
                                     {"ep", plan.etp, plan.ep},
                                     {"dp", plan.tp * plan.cp, plan.dp},
                                     {"pp", plan.tp * plan.cp * plan.dp, plan.pp}};
  std::vector<LogicalAxis> axes;
  std::copy_if(all.begin(), all.end(), std::back_inserter(axes), [](const auto& a) { return a.size > 1; });
  return axes;
}

bool laid_by_coordinate(const Topology& topology) {
  return topology::by_coordinate(topology.fabric_kind) && !topology.accelerators().empty() &&
         !topology.torus_chips.empty();
}

// How an axis of the plan is placed if ranks fill a torus of these `sizes`, the last dimension first: over
// how many whole dimensions, and the largest of them; 0 if it takes only part of one.
struct Fit {
  int axes = 0, largest = 0;
};
Fit fit_of(const LogicalAxis& axis, const std::vector<int>& sizes) {
  Fit fit;
  int at = 1;
  for (std::size_t i = sizes.size(); i-- > 0 && at < axis.stride * axis.size; at *= sizes[i]) {
    if (at * sizes[i] <= axis.stride || sizes[i] == 1) continue;
    if (at < axis.stride || at * sizes[i] > axis.stride * axis.size) return {};
    ++fit.axes;
    fit.largest = std::max(fit.largest, sizes[i]);
  }
  return fit;
}

// The order of the torus' dimensions; the last one is filled first.
std::vector<std::size_t> best_order(const std::vector<int>& dims, const std::vector<LogicalAxis>& axes) {
  std::vector<std::size_t> order(dims.size()), best;
  std::iota(order.begin(), order.end(), 0);
  using Score = std::tuple<int, std::vector<int>, std::vector<int>>;
  std::optional<Score> most;
  do {
    std::vector<int> sizes, liking;
    for (const std::size_t d : order) sizes.push_back(dims[d]);
    int whole = 0;
    for (const LogicalAxis& axis : axes) {
      const Fit fit = fit_of(axis, sizes);
      whole += fit.axes > 0 ? 1 : 0;
      liking.insert(liking.end(), {fit.axes, -fit.largest});
    }
    // Ties are broken by sizes alone, because the order in which dimensions are listed means nothing.
    if (Score score{whole, std::move(liking), std::move(sizes)}; !most || score > *most) {
      most = std::move(score);
      best = order;
    }
  } while (std::next_permutation(order.begin(), order.end()));
  return best;
}
}  // namespace

bool leaves_ranks_open(const Scenario& scenario) {
  return scenario.topology.placement.kind == topology::PlacementKind::packed &&
         scenario.workload.plan.rank_order.empty();
}

std::optional<std::vector<DeviceId>> torus_order(const Topology& topology, const workloads::Plan& plan) {
  if (!laid_by_coordinate(topology)) return std::nullopt;
  const std::vector<int>& dims = topology.torus_dimensions;
  const std::vector<std::size_t> order = best_order(dims, logical_axes(plan));
  std::vector<std::size_t> stride(dims.size(), 1);
  for (std::size_t d = dims.size() - 1; d-- > 0;)
    stride[d] = stride[d + 1] * static_cast<std::size_t>(dims[d + 1]);
  std::vector<DeviceId> devices;
  for (std::size_t rank = 0; rank < topology.accelerators().size(); ++rank) {
    std::size_t left = rank, place = 0;
    for (std::size_t i = order.size(); i-- > 0;) {
      const auto size = static_cast<std::size_t>(dims[order[i]]);
      place += left % size * stride[order[i]];
      left /= size;
    }
    devices.push_back(topology.torus_chips[place]);
  }
  return devices;
}

std::optional<report::Finding> parts_of_axes(const Topology& topology, const workloads::Plan& plan) {
  if (!laid_by_coordinate(topology) || !topology::traits(topology.fabric_kind).rings) return std::nullopt;
  const std::vector<LogicalAxis> axes = logical_axes(plan);
  std::vector<int> sizes;
  for (const std::size_t d : best_order(topology.torus_dimensions, axes))
    sizes.push_back(topology.torus_dimensions[d]);
  std::vector<std::string> parts;
  for (const LogicalAxis& axis : axes)
    if (std::string_view(axis.name) != "pp" && fit_of(axis, sizes).axes == 0)  // stages send to neighbours
      parts.push_back(fmt::format("{} {}", axis.name, axis.size));
  if (parts.empty()) return std::nullopt;
  return report::Finding{
      report::Severity::note,
      fmt::format("{} on a torus of {}: its ranks lie along parts of axes, whose ends do not meet",
                  fmt::join(parts, ", "), fmt::join(topology.torus_dimensions, " x ")),
      "workload.plan", "sizes that are products of whole axes have rings: JAX's meshes ask for them, too"};
}
}  // namespace topsim::scenario
