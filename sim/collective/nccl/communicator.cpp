#include "sim/collective/nccl/communicator.hpp"

#include <algorithm>
#include <limits>
#include <map>
#include <set>

#include "sim/collective/nccl/mesh.hpp"
#include "sim/collective/nccl/search.hpp"

namespace topsim::collective::nccl {
namespace {

GraphSummary least(const std::vector<const Box*>& boxes, ChannelGraph Box::*graph) {
  GraphSummary result;
  for (const Box* box : boxes) {
    const ChannelGraph& g = box->*graph;
    if (box == boxes.front()) {
      result = {g.pattern,    g.count(),    g.bandwidth_intra, g.bandwidth_inter,
                g.type_intra, g.type_inter, g.same_channels};
      continue;
    }
    result.pattern = std::max(result.pattern, g.pattern);
    result.channels = std::min(result.channels, g.count());
    result.bandwidth_intra = std::min<double>(result.bandwidth_intra, g.bandwidth_intra);
    result.bandwidth_inter = std::min<double>(result.bandwidth_inter, g.bandwidth_inter);
    result.type_intra = std::max(result.type_intra, g.type_intra);
    result.type_inter = std::max(result.type_inter, g.type_inter);
    result.same_channels = result.same_channels && g.same_channels;
  }
  return result;
}

// More than 16 channels gain nothing on Hopper; Blackwell needs more unless the NICs are the limit anyway.
int nvls_channels(const CommunicatorFacts& facts) {
  if (facts.min_capability < 100) return 16;
  if (facts.nodes == 1) return 24;
  const bool many_ranks_on_fast_nics = facts.min_net_bandwidth >= 96 && facts.min_local_ranks > 8;
  return facts.min_net_bandwidth >= 48 && !many_ranks_on_fast_nics ? 24 : 32;
}

float slowest_net(const Box& box) {
  float slowest = std::numeric_limits<float>::max();
  if (!box.system.searchable()) return slowest;
  for (int g = 0; g < box.system.gpus(); ++g)
    for (const int n : box.system.nets_of_gpu(g))
      slowest = std::min(slowest, box.system.gpu_to_net(g, n).bandwidth);
  return slowest;
}

double slowest_pcie_wire(const System& system) {
  double slowest = 0;
  for (int g = 0; g < system.gpus(); ++g)
    if (const double wire = system.gpu(g).wire; wire > 0 && (slowest == 0 || wire < slowest)) slowest = wire;
  return slowest;
}

// The tree is limited by the GPU whose PCIe link carries the most per byte: an edge of a chain uses it once
// each way.
double tree_wire(const Box& box) {
  std::vector<double> uses(static_cast<std::size_t>(box.system.gpus()));
  for (const Channel& channel : box.tree.channels)
    for (std::size_t i = 0; i + 1 < channel.gpus.size(); ++i) {
      const int a = channel.gpus[i], b = channel.gpus[i + 1];
      if (!box.system.searchable() || box.system.gpu_to_gpu(a, b).type <= PathType::nvb) continue;
      for (const int gpu : {a, b}) uses[static_cast<std::size_t>(gpu)] += 1.0 / box.tree.count();
    }
  double slowest = 0;
  for (int g = 0; g < box.system.gpus(); ++g)
    if (const double use = uses[static_cast<std::size_t>(g)]; use > 0)
      slowest = least_known(slowest, box.system.gpu(g).wire / use);
  return slowest;
}

double wire_of_net(const System& system, int net) {
  double wire = system.net(net).wire;
  for (const int e : system.net(net).edges) {
    const Vertex& nic = system.vertex(system.edges()[static_cast<std::size_t>(e)].to);
    if (nic.kind == VertexKind::nic && nic.wire > 0) wire = std::min(wire, nic.wire);
  }
  return wire;
}

// A job that is given part of a box sends over the NICs that its own GPUs prefer.
double nic_wire(const System& system) {
  std::set<int> used;
  for (int g = 0; g < system.gpus(); ++g)
    for (const int net : system.nets_of_gpu(g)) used.insert(net);
  double sum = 0;
  for (const int net : used) sum += wire_of_net(system, net);
  return sum;
}

// The ring is limited by the channel with the smallest share of its NIC; channels share NICs.
double ring_wire(const Box& box) {
  std::map<int, int> entering, leaving;
  for (const Channel& channel : box.ring.channels) {
    if (channel.enter_net < 0 || channel.leave_net < 0) return 0;
    ++entering[channel.enter_net];
    ++leaving[channel.leave_net];
  }
  double slowest = 0;
  for (const auto& uses : {entering, leaving})
    for (const auto& [net, channels] : uses) {
      const double share = wire_of_net(box.system, net) / channels;
      if (slowest == 0 || share < slowest) slowest = share;
    }
  return slowest * box.ring.count();
}

}  // namespace

Box make_box(System system, bool nvlink_sharp, bool sharp) {
  Box box{std::move(system), {}, {}, {}, {}, {}, false};
  const auto find = [&](Pattern pattern, int min_channels, int max_channels, bool reducing) {
    return search(box.system, {pattern, min_channels, max_channels, reducing});
  };
  box.ring = find(Pattern::ring, 1, kMaxChannels / 2, false);
  const std::optional<ChannelGraph> mesh = mesh_rings(box.system);
  if (mesh) box.ring = *mesh;
  box.mesh = mesh.has_value();
  const int rings = box.ring.count();
  box.tree = find(Pattern::balanced_tree, rings, rings, false);
  if (mesh) {  // a tree for each path, over the NIC by which the path enters
    box.tree = *mesh;
    box.tree.pattern = Pattern::tree;
  }
  // RCCL builds rings and trees from one list of orders, so neither has fewer channels than the other.
  if (box.system.infinity_fabric() > 0 && box.tree.count() < rings) {
    box.tree = box.ring;
    box.tree.pattern = Pattern::tree;
  }
  box.nvls.pattern = Pattern::nvls;
  if (nvlink_sharp) box.nvls = find(Pattern::nvls, 1, kMaxChannels, false);
  box.collnet_chain.pattern = Pattern::tree;
  box.collnet_direct.pattern = Pattern::collnet_direct;
  if (sharp && box.system.inter()) {
    box.collnet_chain = find(Pattern::tree, rings, rings, true);
    box.collnet_direct = find(Pattern::collnet_direct, 1, kMaxChannels, true);
  }
  return box;
}

namespace {

using Boxes = std::vector<const Box*>;

void agree_on_graphs(const Boxes& boxes, CommunicatorFacts& facts) {
  facts.ring = least(boxes, &Box::ring);
  facts.tree = least(boxes, &Box::tree);
  facts.nvls_graph = least(boxes, &Box::nvls);
  facts.collnet_chain = least(boxes, &Box::collnet_chain);
  facts.collnet_direct = least(boxes, &Box::collnet_direct);
}

void agree_on_machines(const Boxes& boxes, CommunicatorFacts& facts) {
  const System& first = boxes.front()->system;
  facts.min_capability = first.min_compute_capability();
  facts.max_capability = first.max_compute_capability();
  facts.nvlink_bandwidth = first.total_bandwidth() * first.nvlink_share();
  facts.nvlink_share = first.nvlink_share();
  facts.min_net_bandwidth = std::numeric_limits<float>::max();
  facts.nvswitch = true;
  facts.rccl = true;
  for (const Box* box : boxes) {
    const System& system = box->system;
    facts.min_capability = std::min(facts.min_capability, system.min_compute_capability());
    facts.max_capability = std::max(facts.max_capability, system.max_compute_capability());
    facts.amd_host |= system.cpu_vendor() == CpuVendor::amd;
    facts.x86_host =
        facts.x86_host && system.cpu_vendor() != CpuVendor::arm && system.cpu_vendor() != CpuVendor::power;
    facts.nvswitch = facts.nvswitch && system.has_nvswitch();
    facts.min_net_bandwidth = std::min(facts.min_net_bandwidth, slowest_net(*box));
    facts.nvlink_bandwidth =
        std::min(facts.nvlink_bandwidth, system.total_bandwidth() * system.nvlink_share());
    facts.nvlink_share = std::min(facts.nvlink_share, system.nvlink_share());
    facts.rccl = facts.rccl && box->mesh && system.infinity_fabric() > 0;
    facts.infinity_fabric = least_known(facts.infinity_fabric, system.infinity_fabric());
  }
  facts.mesh = facts.nodes == 1 && boxes.size() == 1 && boxes.front()->mesh;
}

// What network plugins set counts for one box, too; their latencies only between boxes.
void heed_plugins(const Boxes& boxes, const BufferSizes& asked, CommunicatorFacts& facts) {
  facts.buffers = asked;
  for (const Box* box : boxes)
    for (const NetPlugin& plugin : box->system.plugins()) {
      facts.simple_only |= plugin.simple_only;
      facts.rings_and_trees |= plugin.rings_and_trees;
      facts.buffers = facts.buffers.otherwise({plugin.buffer, plugin.nvls_chunk, plugin.nvls_tree_most});
      if (facts.nodes == 1) continue;
      facts.told_latency = std::max(facts.told_latency, plugin.told.count());
      facts.hop_latency = std::max(facts.hop_latency, plugin.hop.count());
    }
  facts.buffers = facts.buffers.otherwise(default_buffers(facts.nodes));
}

void measure_wires(const Boxes& boxes, CommunicatorFacts& facts) {
  for (const Box* box : boxes) {
    facts.pcie_wire = least_known(facts.pcie_wire, slowest_pcie_wire(box->system));
    facts.through_host_memory |= box->system.through_host_memory();
    facts.tree_wire = least_known(facts.tree_wire, tree_wire(*box));
    if (facts.nodes == 1) continue;
    facts.ring_wire = least_known(facts.ring_wire, ring_wire(*box));
    const double nics = nic_wire(box->system);
    facts.nic_wire = least_known(facts.nic_wire, nics);
    facts.exits.push_back({box->system.gpus(), nics});
  }
}

// Rings and trees run twice over each channel of the graph, so that two transfers overlap in it.
void count_channels(CommunicatorFacts& facts) {
  facts.rings = facts.ring.channels;
  const int found = std::min(facts.ring.channels, facts.tree.channels);
  facts.ring.channels = facts.tree.channels = found;
  facts.channels = facts.own_channels = std::min(kMaxChannels, 2 * found);
  if (facts.collnet && facts.collnet_chain.bandwidth_intra > facts.collnet_chain.bandwidth_inter &&
      facts.ranks > facts.nodes)
    facts.channels = std::min(kMaxChannels, facts.channels + facts.channels / 2);
  if (facts.min_capability >= 90 && facts.nodes > 1 && facts.ring.bandwidth_intra > 45)
    for (int* channels : {&facts.channels, &facts.own_channels})
      if (*channels < 16) *channels *= 2;
}

}  // namespace

CommunicatorFacts agree(const std::vector<const Box*>& boxes, int nodes, int ranks, int min_local,
                        int max_local, bool sharp, const BufferSizes& asked) {
  CommunicatorFacts facts;
  facts.nodes = nodes;
  facts.ranks = ranks;
  facts.min_local_ranks = min_local;
  facts.max_local_ranks = max_local;
  agree_on_graphs(boxes, facts);
  agree_on_machines(boxes, facts);
  heed_plugins(boxes, asked, facts);
  measure_wires(boxes, facts);
  facts.nvls = facts.nvls_graph.channels > 0 && min_local > 1;
  const bool rccl = facts.infinity_fabric > 0;  // simulated without the switches' sums
  facts.collnet = sharp && !rccl && nodes > 1 && facts.collnet_chain.channels > 0;
  if (facts.nvls) facts.nvls_channels = nvls_channels(facts);
  count_channels(facts);
  return facts;
}
}  // namespace topsim::collective::nccl
