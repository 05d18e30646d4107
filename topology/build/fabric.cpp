#include "topology/build/fabric.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "sim/base/error.hpp"

namespace topsim::topology {
namespace {

constexpr const char* kPath = "topology.fabric";

// Keys that the scenario left out come from the recipe it names.
FabricSpec with_recipe(FabricSpec spec, const Hardware& hardware, int& unit_nodes) {
  if (spec.use.empty()) return spec;
  const FabricRecipe& recipe = hardware.fabric(spec.use, "topology.fabric.use");
  if (spec.kind == "none") spec.kind = recipe.kind;
  if (spec.link.use.empty()) spec.link.use = recipe.link;
  if (!spec.routing && !recipe.routing.empty()) {
    const auto names = routing_names();
    const auto found = std::find(names.begin(), names.end(), recipe.routing);
    if (found != names.end()) spec.routing = static_cast<Routing>(found - names.begin());
  }
  if (!recipe.tiers.empty()) {
    if (spec.switch_model.use.empty()) spec.switch_model.use = recipe.tiers.front().switch_id;
    if (spec.oversubscription.empty())
      for (const FabricTier& tier : recipe.tiers) spec.oversubscription.push_back(tier.oversubscription);
  }
  if (!spec.leaves_per_pod && recipe.pod_nodes > 0 && recipe.unit_nodes > 0)
    spec.leaves_per_pod = std::max(1, recipe.pod_nodes / recipe.unit_nodes);
  unit_nodes = recipe.unit_nodes;
  if (spec.dimensions.empty()) {
    spec.dimensions = recipe.dims;
    if (recipe.groups > 0)
      spec.dimensions = {recipe.groups, recipe.routers, recipe.terminals, recipe.global_links};
  }
  return spec;
}

// Latencies of links towards a switch and towards a NIC.
void set_latencies(FabricInput& in, const SwitchEntry& entry) {
  const bool asked = in.spec.length || in.spec.switch_model.latency;
  if (in.link.hop && !asked) {
    in.to_switch = *in.link.hop;
    return;
  }
  const double metres = in.spec.cable_length().value();
  const Duration fibre(static_cast<std::int64_t>(metres * static_cast<double>(kPropagationPerMetre.count())));
  in.to_switch = in.spec.switch_model.latency.value_or(entry.port_to_port) + in.link.fec + fibre;
  in.to_nic = fibre;
}

}  // namespace

DeviceId add_switch(const FabricInput& in, TopologyBuilder& builder, int tier, int index, int count) {
  Device device{};
  device.kind = DeviceKind::fabric_switch;
  device.tier = static_cast<std::uint8_t>(tier);
  device.count = static_cast<std::uint16_t>(count);
  device.local = static_cast<std::uint32_t>(index);
  device.model = in.switch_model;
  return builder.device(device);
}

void join_switches(const FabricInput& in, TopologyBuilder& builder, DeviceId a, DeviceId b, int cables) {
  const bool together = in.even_split();
  Link link = bundle(in.link, in.link_type, together ? cables : 1);
  link.from = a;
  link.to = b;
  link.latency = in.to_switch;
  for (int i = 0; i < (together ? 1 : cables); ++i) builder.cable(link);
}

void join_nic(const FabricInput& in, TopologyBuilder& builder, int node, std::size_t nic, DeviceId leaf) {
  const NicPort& port = in.stamp.nics[nic];
  const LinkFigures cable = port.rate.value() > 0 ? Hardware::limited(in.link, port.rate) : in.link;
  Link link = bundle(cable, in.link_type, port.ports, true);
  link.from = in.nic_device(node, nic);
  link.to = leaf;
  link.latency = in.to_switch;
  builder.link(link);
  std::swap(link.from, link.to);
  link.latency = in.to_nic;
  builder.link(link);
}

void build_fabric(const TopologySpec& spec, const Hardware& hardware, const NodeStamp& stamp,
                  const std::vector<std::uint32_t>& first_device, const BuildOptions& options,
                  TopologyBuilder& builder) {
  FabricInput in(stamp, first_device);
  in.spec = with_recipe(spec.fabric, hardware, in.unit_nodes);
  builder.facts().fabric_kind = in.spec.kind;
  if (in.spec.kind == "none") return;
  in.nodes = spec.nodes;
  in.merge_switches_above = options.merge_switches_above;
  if (in.spec.link.use.empty()) in.spec.link.use = stamp.default_link;
  if (in.spec.link.use.empty())
    throw ConfigError({Problem{{},
                               kPath,
                               "the fabric names no link",
                               {},
                               "add \"link\": \"ib-ndr\" or another of topsim list hardware",
                               {}}});
  in.link = hardware.link(in.spec.link, "topology.fabric.link");
  in.link_type = builder.link_type(in.link.type);
  Topology& facts = builder.facts();
  facts.fabric_is_infiniband = in.link.kind == LinkKind::infiniband;
  in.routing = in.spec.routing.value_or(facts.fabric_is_infiniband ? Routing::adaptive : Routing::ecmp);
  facts.routing = in.routing;
  facts.nic_latency = in.link.nic_base;
  if (in.spec.kind == "torus" || in.spec.kind == "mesh") {
    // Dimension order: the chips forward packets themselves.
    facts.routing = in.spec.routing.value_or(Routing::static_);
    return build_torus(in, builder);
  }

  if (stamp.nics.empty())
    throw ConfigError({Problem{{},
                               kPath,
                               fmt::format("node {} has no NIC for the compute fabric", spec.node.use),
                               {},
                               "use fabric kind none, or a node with NICs",
                               {}}});
  const SwitchEntry& entry = in.spec.switch_model.use.empty()
                                 ? hardware.usual_switch(in.spec.link.use, "topology.fabric.link")
                                 : hardware.switch_entry(in.spec.switch_model.use, "topology.fabric.switch");
  in.radix = in.spec.switch_model.ports.value_or(entry.radix(in.link.line_rate));
  if (in.radix < 2)
    throw ConfigError({Problem{{},
                               "topology.fabric.switch",
                               fmt::format("{} has no ports for {}", entry.id, in.link.type.label),
                               {},
                               fmt::format("its ports run at {:.0f} Gbit/s", entry.port_rate.value() * 8e-9),
                               {}}});
  in.switch_model = builder.model(entry.id);
  facts.sharp = in.spec.sharp;
  if (in.spec.sharp && !entry.sharp)
    throw ConfigError({Problem{{},
                               "topology.fabric.sharp",
                               fmt::format("{} has no in-network reduction", entry.id),
                               {},
                               "use an InfiniBand switch with SHARP, or leave sharp out",
                               {}}});
  set_latencies(in, entry);
  if (in.spec.kind == "dragonfly") return build_dragonfly(in, builder);
  constexpr std::array kinds = {"rail", "rail-only", "fat-tree"};
  if (std::find(kinds.begin(), kinds.end(), in.spec.kind) == kinds.end())
    throw ConfigError({Problem{{},
                               "topology.fabric.kind",
                               fmt::format("unknown fabric kind \"{}\"", in.spec.kind),
                               {},
                               "none, rail, fat-tree, rail-only, dragonfly, torus, mesh",
                               {}}});
  build_clos(in, builder);
}

}  // namespace topsim::topology
