// rail: NIC i of every node of a group goes to leaf i of the group; spines join the leaves of all rails.
// rail-only: the same without anything between rails. fat-tree: all NICs of a node go to the same leaf (to as
// few as hold them).
#include <fmt/format.h>

#include <algorithm>

#include "sim/base/error.hpp"
#include "topology/build/clos_plan.hpp"
#include "topology/build/fabric.hpp"

namespace topsim::topology {
namespace {

double ratio_of(const FabricSpec& spec, std::size_t tier) {
  return tier < spec.oversubscription.size() ? spec.oversubscription[tier] : 1.0;
}

[[noreturn]] void refuse(const char* path, std::string message, std::string help) {
  throw ConfigError({Problem{{}, path, std::move(message), {}, std::move(help), {}}});
}

// Which leaf each NIC goes to.
struct Arrangement {
  int rails = 1, groups = 1, nodes_per_group = 1;
  int ports_per_node = 1;  // on one leaf
  [[nodiscard]] int leaves() const { return rails * groups; }
};

int all_ports(const NodeStamp& stamp) {
  int ports = 0;
  for (const NicPort& nic : stamp.nics) ports += nic.ports;
  return ports;
}

Arrangement arrange(const FabricInput& in) {
  Arrangement a;
  const auto nics = static_cast<int>(in.stamp.nics.size());
  const int most = down_ports_of(in.radix, ratio_of(in.spec, 0)), ports = all_ports(in.stamp);
  // Every NIC its own leaf, or all of a node on one leaf (on as few as hold them).
  a.rails = in.spec.kind == "fat-tree" ? 1 : nics;
  while (a.rails < nics && (nics % a.rails != 0 || ports / a.rails > most)) ++a.rails;
  a.ports_per_node = (ports + a.rails - 1) / a.rails;
  const int on_one_leaf = in.radix / a.ports_per_node;
  // Without spines every port of a leaf may face the nodes.
  const bool own_leaves = in.spec.kind == "rail-only" || (in.spec.kind == "fat-tree" && a.rails == 1);
  const bool may_do_without = own_leaves && in.spec.tiers.value_or(1) == 1;
  const bool single =
      (may_do_without || in.spec.tiers == 1) && in.nodes <= on_one_leaf && !in.spec.nodes_per_leaf;
  int nodes = single ? on_one_leaf : down_ports_of(in.radix, ratio_of(in.spec, 0)) / a.ports_per_node;
  if (!single && in.unit_nodes > 0) nodes = std::min(nodes, in.unit_nodes);
  if (in.spec.nodes_per_leaf) nodes = *in.spec.nodes_per_leaf;
  if (nodes < 1)
    refuse("topology.fabric.switch",
           fmt::format("a node has {} ports for one leaf, more than half of the switch's {}",
                       a.ports_per_node, in.radix),
           "use kind rail, or a switch with more ports");
  if (nodes * a.ports_per_node > in.radix)
    refuse("topology.fabric.nodes_per_leaf",
           fmt::format("{} nodes with {} ports each need {} ports of a leaf; the switch has {}", nodes,
                       a.ports_per_node, nodes * a.ports_per_node, in.radix),
           fmt::format("at most {} nodes fit a leaf", on_one_leaf));
  if (in.spec.tiers == 1 && in.nodes > nodes)
    refuse("topology.fabric.tiers", fmt::format("one tier carries {} nodes, not {}", nodes, in.nodes),
           "use tiers 2, or leave tiers out");
  a.nodes_per_group = std::min(nodes, in.nodes);
  a.groups = (in.nodes + a.nodes_per_group - 1) / a.nodes_per_group;
  return a;
}

class Clos {
 public:
  Clos(const FabricInput& in, const Arrangement& a, TopologyBuilder& builder)
      : in_(in), a_(a), builder_(builder) {}

  void leaves() {
    for (int l = 0; l < a_.leaves(); ++l) leaves_.push_back(add_switch(in_, builder_, 1, l));
    for (int node = 0; node < in_.nodes; ++node)
      for (std::size_t nic = 0; nic < in_.stamp.nics.size(); ++nic) {
        const int group = node / a_.nodes_per_group;
        const auto rail = static_cast<int>(nic) * a_.rails / static_cast<int>(in_.stamp.nics.size());
        const int leaf = group * a_.rails + rail;
        join_nic(in_, builder_, node, nic, leaves_[static_cast<std::size_t>(leaf)]);
      }
  }

  // Spines (and cores) over some of the rails.
  void spines(int first_rail, int rails) {
    ClosDemand demand;
    demand.rails = rails;
    demand.leaves = rails * a_.groups;
    demand.down_ports = a_.nodes_per_group * a_.ports_per_node;
    demand.radix = in_.radix;
    demand.leaves_per_pod = in_.spec.leaves_per_pod.value_or(0);
    demand.tiers = in_.spec.tiers.value_or(0);
    demand.leaf_ratio = ratio_of(in_.spec, 0);
    demand.spine_ratio = ratio_of(in_.spec, 1);
    const ClosPlan plan = plan_clos(demand);
    const bool merge = in_.even_split() && plan.spines > in_.merge_switches_above;
    std::vector<std::vector<DeviceId>> pods;  // spines of each pod
    if (plan.tiers == 2) {
      pods.push_back(pod(plan, merge));
      for (int group = 0; group < a_.groups; ++group)
        for (int rail = first_rail; rail < first_rail + rails; ++rail)
          uplinks(leaf(group, rail), pods[0], plan, merge);
      return;
    }
    for (int rail = first_rail; rail < first_rail + rails; ++rail)
      for (int group = 0; group < a_.groups; ++group) {
        if (group % plan.leaves_per_pod == 0) pods.push_back(pod(plan, merge));
        uplinks(leaf(group, rail), pods.back(), plan, merge);
      }
    cores(plan, pods, merge);
  }

 private:
  DeviceId leaf(int group, int rail) const {
    return leaves_[static_cast<std::size_t>(group * a_.rails + rail)];
  }

  std::vector<DeviceId> pod(const ClosPlan& plan, bool merge) {
    if (merge) return {add_switch(in_, builder_, 2, spine_++, plan.spines)};
    std::vector<DeviceId> spines;
    for (int s = 0; s < plan.spines; ++s) spines.push_back(add_switch(in_, builder_, 2, spine_++));
    return spines;
  }

  void uplinks(DeviceId leaf, const std::vector<DeviceId>& spines, const ClosPlan& plan, bool merge) {
    for (const DeviceId spine : spines)
      join_switches(in_, builder_, leaf, spine, merge ? plan.uplinks() : plan.leaf_cables);
  }

  // Plane j: spine j of every pod to the same cores.
  void cores(const ClosPlan& plan, const std::vector<std::vector<DeviceId>>& pods, bool merge) {
    if (merge) {
      const DeviceId core = add_switch(in_, builder_, 3, core_++, plan.spines * plan.cores);
      for (const auto& pod : pods)
        join_switches(in_, builder_, pod.front(), core, plan.spines * plan.spine_uplinks());
      return;
    }
    for (std::size_t plane = 0; plane < static_cast<std::size_t>(plan.spines); ++plane)
      for (int c = 0; c < plan.cores; ++c) {
        const DeviceId core = add_switch(in_, builder_, 3, core_++);
        for (const auto& pod : pods) join_switches(in_, builder_, pod[plane], core, plan.spine_cables);
      }
  }

  const FabricInput& in_;
  const Arrangement& a_;
  TopologyBuilder& builder_;
  std::vector<DeviceId> leaves_;
  int spine_ = 0, core_ = 0;
};

}  // namespace

void build_clos(const FabricInput& in, TopologyBuilder& builder) {
  const Arrangement a = arrange(in);
  Clos clos(in, a, builder);
  clos.leaves();
  const bool spined = in.spec.tiers != 1;
  if (in.spec.kind == "rail-only") {
    for (int rail = 0; rail < a.rails && a.groups > 1; ++rail) clos.spines(rail, 1);
  } else if (spined && a.leaves() > 1) {
    clos.spines(0, a.rails);
  }
}

}  // namespace topsim::topology
