// rail: NIC i of every node of a group goes to leaf i of the group; spines join the leaves of all rails.
// rail-only: the same without links between rails. fat-tree: all NICs of a node go to the same leaf (or to as
// few as hold them). Planes are independent copies of the whole; a rail may have several leaves (dual ToR).
#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "sim/base/error.hpp"
#include "topology/build/attach.hpp"
#include "topology/build/clos_plan.hpp"
#include "topology/build/fabric.hpp"
#include "topology/line_rates.hpp"

namespace topsim::topology {
namespace {

double ratio_of(const FabricSpec& spec, std::size_t tier) {
  return tier < spec.oversubscription.size() ? spec.oversubscription[tier] : 1.0;
}

class Clos {
 public:
  Clos(const FabricInput& in, const Attachment& a, TopologyBuilder& builder)
      : in_(in), a_(a), builder_(builder) {}

  void leaves() {
    for (int l = 0; l < a_.leaves(); ++l) leaves_.push_back(add_switch(in_, builder_, 1, l));
    std::vector<Link> cables;  // by port
    for (const NodePort& port : a_.ports) cables.push_back(nic_cable(in_, port.cables, port.rate));
    for (int node = 0; node < in_.nodes; ++node)
      for (std::size_t p = 0; p < cables.size(); ++p) {
        const NodePort& port = a_.ports[p];
        join_nic(in_, builder_, node, port.nic, leaf(node / a_.nodes_per_group, port.rail, port.leaf),
                 cables[p]);
      }
  }

  // One switch for each half of a node's NICs, and nothing above: cables between the two.
  void pair() {
    const double wanted = a_.nodes_per_group * a_.ports_per_node / ratio_of(in_.spec, 0);
    const int down = a_.nodes_per_group * a_.ports_per_node;
    const int most = free_uplinks(in_.leaf().radix, in_.leaf().uplink_radix, down);
    // Rounded up, except from less than a thousandth of a cable.
    const int cables = static_cast<int>(std::min<double>(wanted / a_.uplink_speed + kJustBelow, most));
    if (cables > 0) join_switches(in_, builder_, leaves_[0], leaves_[1], cables, 1);
  }

  // Spines (and cores) over some of the rails of one plane.
  void spines(int plane, int first_rail, int rails) {
    ClosDemand demand;
    demand.rails = rails * a_.leaves_in_plane();
    demand.leaves = demand.rails * a_.groups;
    demand.down_ports = a_.nodes_per_group * a_.ports_per_node;
    demand.radix = in_.leaf().radix;
    demand.uplink_radix = in_.leaf().uplink_radix;
    demand.spine_radix = in_.tiers[1].uplink_radix;
    demand.core_radix = in_.tiers[2].uplink_radix;
    demand.uplink_speed = a_.uplink_speed;
    demand.pod_rails = a_.leaves_in_plane();  // the leaves of a rail serve the same nodes
    demand.leaves_per_pod = in_.spec.leaves_per_pod.value_or(0) / a_.leaves_in_plane();
    if (in_.spec.nodes_per_pod) {
      demand.pod_rails = demand.rails;
      demand.leaves_per_pod = std::max(1, *in_.spec.nodes_per_pod / a_.nodes_per_group);
    }
    demand.tiers = in_.spec.tiers.value_or(0);
    if (demand.tiers == 0 && in_.spec.nodes_per_pod && in_.nodes > *in_.spec.nodes_per_pod) demand.tiers = 3;
    demand.leaf_ratio = ratio_of(in_.spec, 0);
    demand.spine_ratio = ratio_of(in_.spec, 1);
    const ClosPlan plan = plan_clos(demand);
    constexpr int kMostTogether = std::numeric_limits<decltype(Link::count)>::max();
    const int together = plan.spines * std::max({plan.leaf_cables, plan.cores, plan.spine_uplinks()});
    const bool merge =
        in_.even_split() && plan.spines > in_.merge_switches_above && together <= kMostTogether;
    // Leaves of the plane, in the order in which they fill pods.
    std::vector<std::vector<DeviceId>> pods;  // spines of each
    const int per_pod = plan.tiers == 2 ? a_.groups : plan.leaves_per_pod;
    const bool by_nodes = plan.tiers == 2 || in_.spec.nodes_per_pod;
    const auto join_leaves = [&](int group, int rail) {
      for (int l = plane; l < a_.leaves_per_rail; l += a_.planes)
        uplinks(leaf(group, rail, l), pods.back(), plan, merge);
    };
    if (by_nodes) {
      for (int group = 0; group < a_.groups; ++group) {
        if (group % per_pod == 0) pods.push_back(pod(plan, merge));
        for (int rail = first_rail; rail < first_rail + rails; ++rail) join_leaves(group, rail);
      }
    } else {
      for (int rail = first_rail; rail < first_rail + rails; ++rail)
        for (int group = 0; group < a_.groups; ++group) {
          if (group % per_pod == 0) pods.push_back(pod(plan, merge));
          join_leaves(group, rail);
        }
    }
    if (plan.tiers == 3) cores(plan, pods, merge);
  }

 private:
  DeviceId leaf(int group, int rail, int which) const {
    return leaves_[static_cast<std::size_t>((group * a_.rails + rail) * a_.leaves_per_rail + which)];
  }

  std::vector<DeviceId> pod(const ClosPlan& plan, bool merge) {
    if (merge) return {add_switch(in_, builder_, 2, spine_++, plan.spines)};
    std::vector<DeviceId> spines;
    for (int s = 0; s < plan.spines; ++s) spines.push_back(add_switch(in_, builder_, 2, spine_++));
    return spines;
  }

  void uplinks(DeviceId leaf, const std::vector<DeviceId>& spines, const ClosPlan& plan, bool merge) {
    for (const DeviceId spine : spines)
      join_switches(in_, builder_, leaf, spine, merge ? plan.uplinks() : plan.leaf_cables, 2);
  }

  // Connects spine j of every pod to the same cores.
  void cores(const ClosPlan& plan, const std::vector<std::vector<DeviceId>>& pods, bool merge) {
    if (merge) {
      const DeviceId core = add_switch(in_, builder_, 3, core_++, plan.spines * plan.cores);
      for (const auto& pod : pods)
        join_switches(in_, builder_, pod.front(), core, plan.spines * plan.spine_uplinks(), 3);
      return;
    }
    for (std::size_t j = 0; j < static_cast<std::size_t>(plan.spines); ++j)
      for (int c = 0; c < plan.cores; ++c) {
        const DeviceId core = add_switch(in_, builder_, 3, core_++);
        for (const auto& pod : pods) join_switches(in_, builder_, pod[j], core, plan.spine_cables, 3);
      }
  }

  const FabricInput& in_;
  const Attachment& a_;
  TopologyBuilder& builder_;
  std::vector<DeviceId> leaves_;
  int spine_ = 0, core_ = 0;
};

}  // namespace

void build_clos(const FabricInput& in, TopologyBuilder& builder) {
  const Attachment a = attach_nodes(in);
  Clos clos(in, a, builder);
  clos.leaves();
  if (in.spec.tiers == 1) {
    if (a.leaves() == 2 && a.planes == 1) clos.pair();
    return;
  }
  for (int plane = 0; plane < a.planes; ++plane) {
    if (traits(in.spec.kind).rails == Rails::apart) {
      for (int rail = 0; rail < a.rails && a.groups * a.leaves_in_plane() > 1; ++rail)
        clos.spines(plane, rail, 1);
    } else if (a.groups * a.rails * a.leaves_in_plane() > 1) {
      clos.spines(plane, 0, a.rails);
    }
  }
}

}  // namespace topsim::topology
