#include "topology/build/fabric.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "sim/base/error.hpp"

namespace topsim::topology {
namespace {

constexpr const char* kPath = "topology.fabric";

bool uplink_says_nothing(const LinkChoice& l) {
  return l.use.empty() && !l.bandwidth && !l.capacity && !l.latency;
}

[[noreturn]] void refuse(const char* path, std::string message, std::string help) {
  throw ConfigError({Problem{{}, path, std::move(message), {}, std::move(help), {}}});
}

// The switch of a tier; a choice without a name copies the switch of the tier below, with its own changes.
struct Chosen {
  const SwitchEntry* entry;
  std::optional<int> ports;
  std::optional<Duration> latency;
};

Chosen choose_switch(const SwitchChoice& choice, const char* path, const Chosen& below,
                     const Hardware& hardware) {
  Chosen chosen = below;
  if (!choice.use.empty()) {
    chosen.entry = &hardware.switch_entry(choice.use, path);
    chosen.ports.reset();
  }
  if (choice.ports) chosen.ports = choice.ports;
  if (choice.latency) chosen.latency = choice.latency;
  return chosen;
}

int radix_of(const Chosen& chosen, const LinkFigures& cable, const LinkFigures& link, const char* path) {
  constexpr double kMost = 65'536;  // cables of a slower kind into one switch
  const int radix =
      chosen.ports
          ? static_cast<int>(std::min(*chosen.ports * (link.line_rate / cable.line_rate) + 1e-9, kMost))
          : chosen.entry->radix(cable.line_rate);
  if (radix < 2)
    refuse(path, fmt::format("{} has no ports for {}", chosen.entry->id, cable.type.label),
           fmt::format("its ports run at {:.0f} Gbit/s", chosen.entry->port_rate.value() * 8e-9));
  return radix;
}

// Whether the measured latency per switch applies to a switch of that tier: the scenario sets no other
// latency, and the switch alone is not slower, as deep-buffered chassis are, for which it was not measured.
bool hop_holds(const FabricInput& in, const Chosen& chosen, std::size_t tier) {
  const LinkFigures& cable = tier == 0 ? in.link : in.uplink;
  const LinkChoice& said = tier == 0 || uplink_says_nothing(in.spec.uplink) ? in.spec.link : in.spec.uplink;
  if (!cable.hop || !in.spec.length.empty() || chosen.latency) return false;
  return said.latency || chosen.entry->port_to_port <= *cable.hop;
}

// The latency of a link up to a switch of that tier.
void set_latency(const FabricInput& in, const Chosen& chosen, std::size_t tier, TierSwitch& out) {
  const LinkFigures& cable = tier == 0 ? in.link : in.uplink;
  if (hop_holds(in, chosen, tier)) {
    out.latency = *cable.hop;
    return;
  }
  out.own = chosen.latency.value_or(chosen.entry->port_to_port) + cable.fec;
  out.latency = *out.own + fibre(in.spec.cable_length(tier));
}

// NVLink, PCIe and their like do not leave a node, or the domain that their own switches make of several.
void refuse_links_of_nodes(const LinkFigures& link, const char* path) {
  constexpr std::array kinds = {LinkKind::nvlink, LinkKind::c2c,    LinkKind::infinity_fabric,
                                LinkKind::pcie,   LinkKind::socket, LinkKind::torus};
  if (std::find(kinds.begin(), kinds.end(), link.kind) == kinds.end()) return;
  const bool torus = link.kind == LinkKind::torus;
  refuse(path,
         fmt::format("{} joins {}; between nodes this fabric has cables from NIC to NIC", link.type.label,
                     torus ? "the chips of a torus" : "the parts of a node"),
         fmt::format("a link like \"ib-ndr\" or \"roce-400g\"{}",
                     torus                           ? "; or kind torus, for nodes with such chips"
                     : link.kind == LinkKind::nvlink ? "; topology.scale_up_domain joins nodes by NVLink"
                                                     : ""));
}

void refuse_without_nics(const FabricInput& in, const TopologySpec& spec) {
  if (in.stamp.nics.empty())
    refuse(kPath, fmt::format("node {} has no NIC for the compute fabric", spec.node.use),
           "use fabric kind none, or a node with NICs");
  refuse_links_of_nodes(in.link, "topology.fabric.link");
  refuse_links_of_nodes(in.uplink, "topology.fabric.uplink");
}

// Tori and meshes have no switches and no NICs: chips themselves pass on what is for others.
void refuse_without_own_links(const FabricInput& in, const TopologySpec& spec, const Hardware& hardware) {
  const std::string& own = in.stamp.torus_link;
  if (!own.empty() && hardware.link(LinkChoice{own, {}, {}, {}}, kPath).kind == LinkKind::torus) return;
  refuse("topology.fabric.kind",
         fmt::format("a {} joins accelerators by links of their own, which those of {} do not have",
                     name_of(in.spec.kind), spec.node.use),
         in.stamp.nics.empty()
             ? "leave the fabric out, or choose a node with such links, as tpu-v5p-host"
             : "kind rail, fat-tree, rail-only or dragonfly joins their NICs; or choose a node "
               "with such links, as tpu-v5p-host");
}

void set_switches(FabricInput& in, const TopologySpec& spec, const Hardware& hardware,
                  TopologyBuilder& builder) {
  refuse_without_nics(in, spec);
  builder.facts().sharp = in.spec.sharp;
  constexpr std::array paths = {"topology.fabric.switch", "topology.fabric.spine_switch",
                                "topology.fabric.core_switch"};
  const SwitchChoice* choices[] = {&in.spec.switch_model, &in.spec.spine_switch, &in.spec.core_switch};
  Chosen chosen{in.spec.switch_model.use.empty()
                    ? &hardware.usual_switch(in.spec.link.use, "topology.fabric.link")
                    : nullptr,
                {},
                {}};
  for (std::size_t tier = 0; tier < in.tiers.size(); ++tier) {
    chosen = choose_switch(*choices[tier], paths[tier], chosen, hardware);
    const std::uint32_t model = builder.model(chosen.entry->id);
    ModelFacts facts;
    facts.buffer = chosen.entry->buffer;
    builder.model_facts(model, facts);
    in.tiers[tier] = {model,
                      tier == 0 ? radix_of(chosen, in.link, in.link, paths[tier]) : 0,
                      radix_of(chosen, in.uplink, in.link, paths[tier]),
                      {},
                      {}};
    set_latency(in, chosen, tier, in.tiers[tier]);
    if (in.spec.sharp && !chosen.entry->sharp)
      refuse("topology.fabric.sharp", fmt::format("{} has no in-network reduction", chosen.entry->id),
             "use an InfiniBand switch with SHARP, or leave sharp out");
    if (tier == 0 && !hop_holds(in, chosen, tier)) in.to_nic = fibre(in.spec.cable_length(0));
  }
}

std::string kinds_of_nodes() {
  std::vector<std::string_view> names;
  for (const FabricTraits& each : kFabricTraits)
    if (each.of_nodes) names.push_back(each.name);
  return fmt::format("{}", fmt::join(names, ", "));
}

// A single host of a torus: the links among its chips exist, those out of the host are idle.
void take_own_block(FabricSpec& spec, const NodeStamp& stamp) {
  if (stamp.torus_block.empty() || stamp.torus_link.empty()) return;
  spec.kind = FabricKind::mesh;
  spec.link.use = stamp.torus_link;
  for (const int size : stamp.torus_block)
    if (size > 1) spec.dimensions.push_back(size);
}

}  // namespace

DeviceId add_switch(const FabricInput& in, TopologyBuilder& builder, int tier, int index, int count) {
  Device device{};
  device.kind = DeviceKind::fabric_switch;
  device.tier = static_cast<std::uint8_t>(tier);
  device.count = static_cast<std::uint16_t>(count);
  device.local = static_cast<std::uint32_t>(index);
  device.model = in.tiers[static_cast<std::size_t>(tier - 1)].model;
  return builder.device(device);
}

void join_switches(const FabricInput& in, TopologyBuilder& builder, DeviceId a, DeviceId b, int cables,
                   int upper) {
  const bool together = in.even_split() && !in.cables_apart;
  Link link = bundle(in.uplink, in.uplink_type, together ? cables : 1);
  link.from = a;
  link.to = b;
  link.length = in.length_said(static_cast<std::size_t>(upper - 1));
  link.latency = in.tiers[static_cast<std::size_t>(upper - 1)].latency;
  Link back = link;
  std::swap(back.from, back.to);
  // The same cable, with the length of the upper tier.
  const TierSwitch& lower = in.tiers[static_cast<std::size_t>(std::max(upper - 2, 0))];
  back.latency = lower.own ? *lower.own + fibre(in.spec.cable_length(static_cast<std::size_t>(upper - 1)))
                           : lower.latency;
  for (int i = 0; i < (together ? 1 : cables); ++i) {
    builder.link(link);
    builder.link(back);
  }
}

Link nic_cable(const FabricInput& in, int cables, BytesPerSecond rate) {
  return bundle(rate.value() > 0 ? Hardware::limited(in.link, rate) : in.link, in.link_type, cables, true);
}

void join_nic(const FabricInput& in, TopologyBuilder& builder, int node, std::size_t nic, DeviceId leaf,
              Link cable) {
  cable.from = in.nic_device(node, nic);
  cable.to = leaf;
  cable.length = in.length_said(0);
  cable.latency = in.leaf().latency;
  builder.link(cable);
  std::swap(cable.from, cable.to);
  cable.latency = in.to_nic;
  builder.link(cable);
}

std::vector<DeviceId> build_fabric(const TopologySpec& spec, const Catalogue& catalogue,
                                   const NodeStamp& stamp, const std::vector<std::uint32_t>& first_device,
                                   const BuildOptions& options, TopologyBuilder& builder) {
  const Hardware hardware(catalogue, options);
  FabricInput in(stamp, first_device);
  in.spec = resolve_fabric(spec.fabric, catalogue);
  if (!traits(in.spec.kind).of_nodes)
    refuse("topology.fabric.kind", "kind explicit belongs to \"devices\" and \"links\"", kinds_of_nodes());
  refuse_idle_keys(spec.fabric, in.spec.kind);
  if (in.spec.kind == FabricKind::none && spec.nodes == 1) take_own_block(in.spec, stamp);
  Topology& facts = builder.facts();
  facts.fabric_kind = in.spec.kind;
  if (in.spec.kind == FabricKind::none) return {};
  if (by_coordinate(in.spec.kind)) refuse_without_own_links(in, spec, hardware);
  in.nodes = spec.nodes;
  in.merge_switches_above = options.merge_switches_above;
  in.cables_apart = options.cables_apart;
  if (in.spec.link.use.empty()) in.spec.link.use = stamp.default_link;
  if (in.spec.link.use.empty())
    refuse(kPath, "the fabric names no link", "add \"link\": \"ib-ndr\" or another of topsim list hardware");
  in.link = hardware.link(in.spec.link, "topology.fabric.link");
  in.link_type = builder.link_type(in.link.type);
  LinkChoice uplink = in.spec.uplink;
  if (uplink.use.empty()) uplink.use = in.spec.link.use;
  in.uplink = uplink_says_nothing(in.spec.uplink) ? in.link : hardware.link(uplink, "topology.fabric.uplink");
  in.uplink_type = builder.link_type(in.uplink.type);
  facts.fabric_is_infiniband = in.link.kind == LinkKind::infiniband;
  in.routing = in.spec.routing.value_or(in.link.routing);
  facts.routing = in.routing;
  facts.nic_latency = in.spec.nic_latency.value_or(in.link.nic_base);
  switch (in.spec.kind) {
    case FabricKind::none:       // left above: it has no cables
    case FabricKind::explicit_:  // refused above
      break;
    case FabricKind::rail:
    case FabricKind::fat_tree:
    case FabricKind::rail_only:
      set_switches(in, spec, hardware, builder);
      refuse_idle_ratios(spec.fabric);
      build_clos(in, builder);
      break;
    case FabricKind::dragonfly:
      set_switches(in, spec, hardware, builder);
      build_dragonfly(in, builder);
      break;
    case FabricKind::torus:
    case FabricKind::mesh:
      // Dimension order: the chips themselves forward packets.
      facts.routing = in.spec.routing.value_or(Routing::static_);
      return build_torus(in, builder);
    case FabricKind::direct:
      refuse_without_nics(in, spec);
      build_direct(in, builder);
      break;
  }
  return {};
}

}  // namespace topsim::topology
