// Reduction in the switches.
// NVLS: the data is divided among the heads (usually every GPU of the box). A head reads its share from all
// GPUs through the NVSwitch, which reduces on the way (each GPU sends 1 byte per byte, the head receives
// 1/h), and writes the result back once, which the switch copies to all (the head sends 1/h, each GPU
// receives 1). So all-reduce costs every NVLink 1 + 1/h per byte in each direction; reduce-scatter is the
// first half, all-gather the second. Between boxes a head exchanges with the heads of the same number: over a
// double binary tree (half the share on each tree), or by sending its share to a reducing fabric and
// receiving the result, once per cable for any number of boxes.
#include <map>

#include "sim/collective/lowering.hpp"
#include "sim/collective/wiring.hpp"

namespace topsim::collective {
namespace {

using topology::DeviceKind;

// Calls up and down for the links from a GPU to its NVSwitches and back.
template <class Up, class Down>
void for_each_switch_link(const topology::Topology& topology, DeviceId gpu, const Up& up, const Down& down) {
  int chips = 0;
  for (const LinkId l : topology.links_from(gpu))
    if (topology.device(topology.link(l).to).kind == DeviceKind::nvswitch) ++chips;
  for (const LinkId l : topology.links_from(gpu)) {
    const DeviceId chip = topology.link(l).to;
    if (topology.device(chip).kind != DeviceKind::nvswitch) continue;
    up(l, 1.0 / chips);
    if (const auto back = topology.find_link(chip, gpu)) down(*back, 1.0 / chips);
  }
}

// Adds `up` and `down` bytes per byte to the NVLinks of every GPU.
void over_switch(const PlacedBox& box, double up, double down, UsageBuilder& usage) {
  for (const DeviceId gpu : box.gpus)
    for_each_switch_link(
        usage.topology(), gpu, [&](LinkId l, double share) { usage.add(l, up * share); },
        [&](LinkId l, double share) { usage.add(l, down * share); });
}

int heads_of(const Placement& placement) {
  return placement.tuner->facts().nvls_graph.channels;
}

// Reduction in the fabric's switches: the union of the paths to the first box, each cable once each way.
void reduce_in_fabric(const Placement& placement, const nccl::ChannelGraph nccl::Box::*graph, int heads,
                      UsageBuilder& usage) {
  const auto& boxes = placement.boxes;
  const auto end = [&](std::size_t b, int head, bool nic) {
    const nccl::Channel& channel = (boxes[b].graphs->*graph).channels[static_cast<std::size_t>(head)];
    return nic ? boxes[b].nics[static_cast<std::size_t>(channel.enter_net)]
               : boxes[b].gpus[static_cast<std::size_t>(channel.gpus.front())];
  };
  topology::Route route;
  for (int h = 0; h < heads; ++h) {
    std::map<LinkId, double> once;
    for (std::size_t b = 1; b < boxes.size(); ++b)
      for (const bool up : {true, false}) {
        const std::size_t from = up ? b : 0, to = up ? 0 : b;
        usage.router().route({.from = end(from, h, false),
                              .to = end(to, h, false),
                              .connection = static_cast<std::uint64_t>(h),
                              .from_nic = end(from, h, true),
                              .to_nic = end(to, h, true)},
                             route);
        for (const topology::LinkShare& use : route.links) {
          double& share = once[use.link];
          share = std::max(share, use.share);
        }
      }
    for (const auto& [link, share] : once) usage.add(link, share / heads);
  }
}

}  // namespace

void lower_nvls(CollectiveKind kind, const Placement& placement, UsageBuilder& usage) {
  const double share = 1.0 / std::max(1, heads_of(placement));
  const bool reduces = kind != CollectiveKind::all_gather, gathers = kind != CollectiveKind::reduce_scatter;
  for (const PlacedBox& box : placement.boxes)
    over_switch(box, (reduces ? 1 : 0) + (gathers ? share : 0), (reduces ? share : 0) + (gathers ? 1 : 0),
                usage);
}

void lower_nvls_tree(const Placement& placement, UsageBuilder& usage) {
  lower_nvls(CollectiveKind::all_reduce, placement, usage);
  const int heads = heads_of(placement);
  const double coefficient = 0.5 / heads;  // each of the two trees carries half a head's share
  for (int h = 0; h < heads; ++h)
    for (const bool second : {false, true})
      for (const Hop& hop : head_tree_of(placement, h, second))
        for (const Hop& way : {hop, hop.back()})
          usage.add_hop(way.query(head_connection(h, second)), coefficient);
}

void lower_nvls_sharp(const Placement& placement, UsageBuilder& usage) {
  lower_nvls(CollectiveKind::all_reduce, placement, usage);
  reduce_in_fabric(placement, &nccl::Box::nvls, heads_of(placement), usage);
}

void lower_collnet_direct(const Placement& placement, UsageBuilder& usage) {
  // Every GPU sends each head its share of the data and gets the result back.
  const int heads = placement.tuner->facts().collnet_direct.channels;
  for (const PlacedBox& box : placement.boxes)
    for (int h = 0; h < heads; ++h) {
      const DeviceId head = box.gpus[static_cast<std::size_t>(
          box.graphs->collnet_direct.channels[static_cast<std::size_t>(h)].gpus.front())];
      for (const DeviceId gpu : box.gpus) {
        if (gpu == head) continue;
        usage.add({.from = gpu, .to = head}, 1.0 / heads);
        usage.add({.from = head, .to = gpu}, 1.0 / heads);
      }
    }
  reduce_in_fabric(placement, &nccl::Box::collnet_direct, heads, usage);
}
}  // namespace topsim::collective
