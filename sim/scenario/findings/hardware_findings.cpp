#include "sim/scenario/findings/hardware_findings.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <string>
#include <vector>

#include "sim/collective/nccl/net_plugins.hpp"
#include "sim/collective/nccl/tuner.hpp"
#include "sim/collective/sockets.hpp"
#include "sim/collective/torus.hpp"
#include "sim/scenario/findings/cable_findings.hpp"
#include "sim/scenario/findings/described_parts.hpp"
#include "sim/scenario/findings/fabric_software.hpp"
#include "sim/scenario/findings/layout_findings.hpp"
#include "sim/scenario/findings/packet_findings.hpp"
#include "sim/scenario/findings/plan_findings.hpp"
#include "topology/build.hpp"
#include "topology/catalogue/device_entries.hpp"
#include "topology/catalogue/link_entry.hpp"
#include "topology/catalogue/node_recipe.hpp"
#include "topology/generation.hpp"
#include "workloads/compute/compute_model.hpp"
#include "workloads/compute/formats.hpp"
#include "workloads/model.hpp"

namespace topsim::scenario {
namespace {
using topology::DeviceKind;

void find_formats(const Scenario& scenario, const topology::Topology& topology,
                  const topology::Catalogue& catalogue, std::vector<report::Finding>& out) {
  const workloads::WorkloadSpec& workload = scenario.workload;
  if (workload.trace || workload.model.layers == 0 || !workload.compute.stage_times.forward.empty() ||
      topology.accelerators().empty())
    return;
  const topology::Accelerator& entry =
      catalogue.accelerator(topology.model_of(topology.accelerators().front()));
  const std::string_view units = workloads::units_of(workload.precision.gemm);
  if (entry.dense_flops.empty()) return;
  if (entry.dense_flops.contains(units)) {
    if (workload.precision.gemm == workloads::Precision::mxfp8 && !workloads::scales_blocks(entry))
      out.push_back(
          {report::Severity::warning,
           fmt::format("{} has fp8 units, but none that scale blocks of 32; mxfp8 is simulated as if "
                       "they did",
                       entry.name),
           "workload.precision", "fp8 has a scale for each tensor, fp8-blockwise one for 128 elements"});
    return;
  }
  if (workload.precision.gemm == workloads::Precision::bf16 && workloads::widens_bf16(entry)) {
    const double* const best = entry.best_product("bf16");
    out.push_back(
        {report::Severity::warning,
         fmt::format("{} has no bf16 units: products in bf16 run on its fp32 units{}", entry.name,
                     best == nullptr ? "" : fmt::format(", at {:.3g} TFLOP/s at best", *best * 1e-12)),
         "workload.precision",
         entry.dense_flops.contains("fp16")
             ? fmt::format("fp16 has units of {:g} TFLOP/s", entry.dense_flops.at("fp16") * 1e-12)
             : std::string()});
    return;
  }
  out.push_back(
      {report::Severity::warning,
       fmt::format(
           "{} has no {} units that the catalogue knows of; the rate of the nearest format stands for theirs",
           entry.name, units),
       "workload.precision", "topsim list hardware " + entry.id + " shows its formats"});
}

// Parts of a model that are described but have no effect.
void find_idle_parts(const workloads::WorkloadSpec& workload, std::vector<report::Finding>& out) {
  if (workload.trace || workload.model.layers == 0) return;
  const workloads::ExpertSpec &experts = workload.model.experts, none;
  if (experts.count == 0 &&
      (experts.top_k != none.top_k || experts.shared != none.shared || experts.imbalance != none.imbalance ||
       experts.capacity_factor != none.capacity_factor || experts.node_limit != none.node_limit))
    out.push_back({report::Severity::warning, "experts are described, but there are none: the model is dense",
                   "workload.model.experts", "add count, for example 8"});
  const workloads::AttentionSpec& attention = workload.model.attention;
  if (attention.kind != workloads::AttentionKind::mla &&
      (attention.kv_lora_rank > 0 || attention.q_lora_rank > 0))
    out.push_back({report::Severity::warning,
                   "latent attention is described, but keys and values are not compressed",
                   "workload.model.attention", "\"kind\": \"mla\""});
}

// What the file says of a sequence in two places. Learned positions have a table of the model's length.
void find_two_sequences(const Scenario& scenario, std::vector<report::Finding>& out) {
  const workloads::WorkloadSpec& workload = scenario.workload;
  if (scenario.document == nullptr || !workload.sequence) return;
  const config::Node stated = scenario.document->root().find("workload").find("model").find("sequence");
  if (!stated || !stated.is_number() || workload.model.sequence == *workload.sequence ||
      workloads::positions_of(workload.model) == workloads::Positions::learned)
    return;
  out.push_back({report::Severity::note,
                 fmt::format("sequences have the {} tokens of workload.sequence, not the {} of the model's",
                             *workload.sequence, workload.model.sequence),
                 "workload.model.sequence", "say it in one place"});
}

// A NIC in another's place may be slower or faster than the node's own.
void find_other_nics(const Scenario& scenario, const topology::Topology& topology,
                     const topology::Catalogue& catalogue, std::vector<report::Finding>& out) {
  const topology::NodeChoice& node = scenario.topology.node;
  if (!node.nic || topology.nodes() < 2) return;
  const topology::NodeRecipe& recipe = catalogue.node(node.use);
  const auto group = std::find_if(recipe.nics.begin(), recipe.nics.end(),
                                  [](const topology::NicGroup& each) { return each.compute; });
  const auto nics = topology.nics_of_node(0);
  if (group == recipe.nics.end() || group->nic == *node.nic || nics.empty()) return;
  double now = 0;  // of a NIC to the fabric, in bytes/s
  for (const LinkId l : topology.links_from(nics.front()))
    if (const topology::Link link = topology.link(l); topology.device(link.to).node != 0)
      now += link.line_rate.value();
  const double own = group->rate.value() * group->ports;
  if (now <= 0 || std::abs(now - own) < 0.01 * own) return;
  out.push_back({report::Severity::warning,
                 fmt::format("{} brings {:g} Gbit/s to a node ({} NICs of {:g}); {} has {} of {:g} itself",
                             *node.nic, static_cast<double>(nics.size()) * now * 8e-9, nics.size(),
                             now * 8e-9, recipe.id, group->count, own * 8e-9),
                 "topology.node.nic", "leave nic out for the node's own"});
}

// Over TCP every byte is copied by a core on either host, slower than fast NICs.
void find_host_copies(const Scenario& scenario, const topology::Topology& topology,
                      std::vector<report::Finding>& out) {
  if (topology.nodes() < 2 || !collective::over_tcp(topology)) return;
  double cables = 0;  // of the NICs of a node
  for (const DeviceId nic : topology.nics_of_node(0))
    for (const LinkId l : topology.links_from(nic))
      if (const topology::Link link = topology.link(l); topology.device(link.to).node != 0)
        cables = std::max(cables, link.capacity.value());
  const int threads = scenario.network.nccl.socket_threads.value_or(0);
  const DeviceId one(0), other(1);  // two accelerators that send to each other
  const double core = collective::socket_cap({{one, other, 1, 1}, {other, one, 1, 1}}, threads);
  if (core >= cables) return;
  out.push_back(
      {report::Severity::warning,
       fmt::format("TCP: limited by the hosts' copies: {} {:.3g} GB/s each way, a NIC {:.3g}",
                   threads > 0
                       ? fmt::format("{} thread{} of a connection cop{}", threads, threads == 1 ? "" : "s",
                                     threads == 1 ? "ies" : "y")
                       : std::string("the one thread of an accelerator that serves NCCL's sockets copies"),
                   core / 1e9, cables / 1e9),
       "topology.fabric.link",
       "network.nccl.socket_nthreads (NCCL_SOCKET_NTHREADS) adds threads; RDMA, as roce-200g, needs none"});
}

// A plugin's hop time is fixed, whatever latency the cables are given.
void find_plugin_latency(const Scenario& scenario, const topology::Topology& topology,
                         std::vector<report::Finding>& out) {
  const topology::FabricSpec& fabric = scenario.topology.fabric;
  if ((!fabric.link.latency && !fabric.nic_latency) || topology.nodes() < 2) return;
  for (const DeviceId nic : topology.nics_of_node(0)) {
    const auto* plugin = collective::nccl::net_plugin_of(topology.model_of(nic));
    if (plugin == nullptr || plugin->hop.count() == 0) continue;
    out.push_back(
        {report::Severity::note,
         fmt::format("a hop of collectives over {} takes the {:g} us of AWS' network plugin: shorter "
                     "latencies of cables and NICs change nothing in them",
                     topology.model_of(nic), plugin->hop.count()),
         fabric.link.latency ? "topology.fabric.link.latency" : "topology.fabric.nic_latency",
         "bench p2p, and latencies beyond the plugin's, follow them"});
    return;
  }
}

// Switches above a leaf that all nodes share would pass nothing on, so there are none, whatever "tiers" says.
std::string several_leaves(const topology::TopologySpec& spec) {
  return fmt::format("more nodes{} make several leaves, and switches above them",
                     spec.nodes > 1 ? fmt::format(", or \"nodes_per_leaf\": {},", (spec.nodes + 1) / 2) : "");
}

void find_other_tiers(const Scenario& scenario, const topology::Topology& topology,
                      std::vector<report::Finding>& out) {
  const int asked = scenario.topology.fabric.tiers.value_or(1);
  int built = 0;
  for (const topology::Device& device : topology.devices())
    if (device.kind == DeviceKind::fabric_switch) built = std::max<int>(built, device.tier);
  if (built != 1 || asked <= built) return;
  out.push_back({report::Severity::warning,
                 fmt::format("the fabric has one tier of switches, not {} as asked: {}", asked,
                             traits(topology.fabric_kind).rails == topology::Rails::apart
                                 ? "the leaf of a rail serves all nodes, and nothing joins rails"
                                 : "one leaf serves all nodes"),
                 "topology.fabric.tiers", several_leaves(scenario.topology)});
}

// Cables and switches come in whole numbers, so the fabric built seldom has exactly the requested ratio; a
// leaf that nodes do not fill keeps all of its uplinks. A tier that so few nodes do not need is not a
// mistake: its ratio applies with more nodes. Ratios of tiers that a kind of fabric never has are refused
// (topology/build).
void find_other_ratios(const Scenario& scenario, const topology::Topology& topology,
                       std::vector<report::Finding>& out) {
  const std::vector<double>& ratios = scenario.topology.fabric.oversubscription;
  // Line rates into a switch from below, and out of it upwards. Those that nodes do not fill have less below
  // them: what was asked for is the ratio of the full ones.
  struct Rates {
    double below = 0, above = 0;
  };
  std::vector<Rates> of(topology.devices().size());
  for (const LinkId id : topology.cables()) {
    const topology::Link& link = topology.link(id);
    const topology::Device& to = topology.device(link.to);
    if (to.kind != DeviceKind::fabric_switch) continue;
    const topology::Device& from = topology.device(link.from);
    const std::size_t low = from.kind == DeviceKind::fabric_switch ? from.tier : 0;
    if (to.tier <= low) continue;
    of[link.to.index()].below += link.line_rate.value();
    of[link.from.index()].above += link.line_rate.value();
  }
  std::vector<double> most(ratios.size());  // 0: nothing is above this tier
  for (std::size_t i = 0; i < of.size(); ++i) {
    const topology::Device& device = topology.device(DeviceId(i));
    if (device.kind != DeviceKind::fabric_switch || device.tier == 0 || device.tier > ratios.size()) continue;
    if (of[i].above > 0) most[device.tier - 1U] = std::max(most[device.tier - 1U], of[i].below / of[i].above);
  }
  constexpr double kClose = 0.05;
  for (std::size_t t = 0; t < ratios.size(); ++t) {
    const char* const tier = t == 0 ? "leaves" : "spines";
    if (most[t] > 0) {
      const double built = most[t];
      if (std::abs(built / ratios[t] - 1) > kClose)
        out.push_back(
            {report::Severity::note,
             fmt::format("the {} are built {:.3g}:1 oversubscribed, not {:g}:1 as asked: cables and "
                         "switches come whole",
                         tier, built, ratios[t]),
             "topology.fabric.oversubscription", "a number of nodes that fills the leaves comes closest"});
    } else if (ratios[t] != 1) {
      out.push_back(
          {report::Severity::warning,
           fmt::format("nothing is oversubscribed {:g}:1: the {} of this fabric have no uplinks", ratios[t],
                       tier),
           "topology.fabric.oversubscription",
           t == 0 && scenario.topology.fabric.tiers != 1
               ? several_leaves(scenario.topology)
               : fmt::format("\"tiers\": {} puts switches above them where there are several", t + 2)});
    }
  }
}

// Routers send each packet where queues are short, so their parts follow the load; ours are fixed
// (topology/routing/group_routes.hpp).
void find_detours(const Scenario& scenario, const topology::Topology& topology,
                  std::vector<report::Finding>& out) {
  if (topology::traits(topology.fabric_kind).family != topology::FabricFamily::dragonfly ||
      topology.routing != topology::Routing::adaptive)
    return;
  if (topology.dragonfly_dimensions.empty()) {
    const bool packets = scenario.network.traits().packets;
    out.push_back({report::Severity::note,
                   fmt::format("{} between groups of the dragonfly take its shortest paths only: where few "
                               "groups talk to one another, detours through others would carry more",
                               packets ? "packets" : "messages"),
                   "topology.fabric.routing",
                   packets ? "--network flow takes them"
                           : "topology.fabric.dimensions says which switches form a group"});
    return;
  }
  std::uint32_t last = 0;  // group with a NIC
  for (const DeviceId nic : topology.nics_of_node(topology.nodes() - 1))
    for (const LinkId cable : topology.links_from(nic))
      if (const topology::Device& to = topology.device(topology.link(cable).to);
          to.kind == DeviceKind::fabric_switch)
        last = std::max(last, to.local / static_cast<std::uint32_t>(topology.dragonfly_dimensions[1]));
  if (last == 0 || topology.dragonfly_dimensions[0] < 3) return;
  out.push_back(
      {report::Severity::note,
       "messages between two groups of the dragonfly divide in fixed parts, whatever the load: what their "
       "cables could not carry if all of a group sent to the other goes through third groups, which no "
       "other job uses; all-to-alls take the shortest paths",
       "topology.fabric.routing", "a fat-tree with the same link is the upper bound"});
}

// Of a torus: slices of a pod seldom have the links that join the ends of all axes.
void find_lines(const Scenario& scenario, const topology::Topology& topology,
                const topology::Catalogue& catalogue, std::vector<report::Finding>& out) {
  if (!topology::traits(topology.fabric_kind).rings || scenario.topology.fabric.rings) return;
  std::vector<int> lines;
  for (std::size_t d = 0; d < topology.torus_dimensions.size(); ++d)
    if (topology.torus_dimensions[d] > 2 && !collective::is_ring(topology, d))
      lines.push_back(topology.torus_dimensions[d]);
  const std::string use = topology::resolve_fabric(scenario.topology.fabric, catalogue).link.use;
  if (lines.empty() || use.empty()) return;
  const topology::LinkEntry& link = catalogue.link(use);
  const std::string where = link.ring_cube > 0
                                ? fmt::format("in slices of whole cubes of {0} x {0} x {0}", link.ring_cube)
                                : fmt::format("along axes of {}", link.ring_axis);
  out.push_back({report::Severity::note,
                 fmt::format("the ends of the axes of {} are not joined: {} has links for that only {}; "
                             "gathers along a line take about twice as long as round a ring",
                             fmt::join(lines, " and "), link.label, where),
                 "topology.fabric.dimensions", "topology.fabric.rings=true joins them all the same"});
}

// AWS publishes which steps Neuron's collectives take (awsdocs-neuron, "Inter-node Collective
// Communications"), but not their times.
void find_node_torus(const Scenario& scenario, const topology::Topology& topology,
                     const topology::Catalogue& catalogue, std::vector<report::Finding>& out) {
  const topology::NodeRecipe& node = catalogue.node(scenario.topology.node.use);
  if (node.scale_up.kind != topology::ScaleUp::Kind::torus || topology.accelerators().size() < 2) return;
  out.push_back(
      {report::Severity::note,
       fmt::format("collectives of {} follow the links of its torus, and between nodes rings of chips of "
                   "one place; no measured time of its own library stands behind them",
                   node.name),
       "topology.node", "nccl-tests' counterpart there is nccom-test: compare topsim bench with it"});
}

// With either network model one queue pair uses one port of a bond.
void find_ports_by_turns(const Scenario& scenario, const topology::Topology& topology,
                         std::vector<report::Finding>& out) {
  const bool apart =
      topology.routing == topology::Routing::ecmp || topology.routing == topology::Routing::static_;
  const std::uint32_t pairs = scenario.network.packet.queue_pairs();
  if (!apart || topology.nodes() < 2) return;
  for (const DeviceId nic : topology.nics_of_node(0)) {
    std::set<DeviceId> leaves;
    for (const LinkId link : topology.links_from(nic))
      if (topology.device(topology.link(link).to).kind == DeviceKind::fabric_switch)
        leaves.insert(topology.link(link).to);
    if (leaves.size() <= pairs || leaves.size() < 2) continue;
    out.push_back(
        {report::Severity::note,
         fmt::format("a NIC here has ports on {} leaves, and a connection of {} queue pair{} uses {} of "
                     "them: a message between two accelerators has that share of the NIC's rate",
                     leaves.size(), pairs, pairs == 1 ? "" : "s", pairs),
         "network.packet.queue_pairs",
         fmt::format("network.packet.queue_pairs={} uses all (NCCL_IB_QPS_PER_CONNECTION)", leaves.size())});
    return;
  }
}

// All messages of a job use one lane, so there is nothing to arbitrate between lanes.
void find_lanes(const Scenario& scenario, std::vector<report::Finding>& out) {
  const network::packet::VirtualLanes& lanes = scenario.network.packet.spec.lanes;
  if (!scenario.network.traits().packets ||
      (lanes.count <= 1 && lanes.weight.empty() && lanes.high_priority == 0))
    return;
  out.push_back({report::Severity::note,
                 "a job's messages all go on one virtual lane: count, weight and priority of lanes change "
                 "nothing here",
                 "network.packet.virtual_lanes",
                 "topsim bench victim --lane puts a flow on a lane of its own"});
}
}  // namespace

std::optional<report::Finding> empty_nodes(const topology::TopologySpec& spec,
                                           const topology::Catalogue& catalogue) {
  if (spec.node.use.empty() || !spec.accelerators) return {};
  const bool listed = spec.placement.kind == topology::PlacementKind::list;
  const int nodes = listed ? static_cast<int>(spec.placement.nodes.size()) : spec.nodes;
  const int each = spec.node.accelerators.value_or(catalogue.node(spec.node.use).accelerators);
  const int filled = (*spec.accelerators + each - 1) / each;
  if (filled >= nodes) return {};
  const bool divides = *spec.accelerators % nodes == 0;
  return report::Finding{
      report::Severity::note,
      fmt::format("the job's {} accelerators fill {} of the {} {}nodes, {} in each; the others have no rank",
                  *spec.accelerators, filled, nodes, listed ? "listed " : "",
                  std::min(each, *spec.accelerators)),
      "topology.accelerators",
      fmt::format("topology.node.accelerators={} in its place takes {} in every node",
                  divides ? std::to_string(*spec.accelerators / nodes) : "N", divides ? "as many" : "N")};
}

std::vector<report::Finding> hardware_findings(const Scenario& scenario, const topology::Topology& topology,
                                               const topology::Catalogue& catalogue) {
  std::vector<report::Finding> out = packet_findings(scenario, topology);
  find_lanes(scenario, out);
  find_idle_parts(scenario.workload, out);
  for (report::Finding& each : plan_findings(scenario.workload)) out.push_back(std::move(each));
  find_two_sequences(scenario, out);
  find_ports_by_turns(scenario, topology, out);
  for (report::Finding& each : cable_findings(scenario, topology, catalogue)) out.push_back(std::move(each));
  for (report::Finding& each : fabric_software_findings(topology, catalogue)) out.push_back(std::move(each));
  find_host_copies(scenario, topology, out);
  for (report::Finding& each : layout_findings(scenario, topology, catalogue)) out.push_back(std::move(each));
  find_plugin_latency(scenario, topology, out);
  if (scenario.topology.node.use.empty()) {
    for (report::Finding& each : described_parts(topology, catalogue)) out.push_back(std::move(each));
    return out;
  }
  find_other_nics(scenario, topology, catalogue, out);
  if (const auto empty = empty_nodes(scenario.topology, catalogue)) out.push_back(*empty);
  find_formats(scenario, topology, catalogue, out);
  find_detours(scenario, topology, out);
  find_node_torus(scenario, topology, catalogue, out);
  find_lines(scenario, topology, catalogue, out);
  find_other_tiers(scenario, topology, out);
  find_other_ratios(scenario, topology, out);
  return out;
}
}  // namespace topsim::scenario
