// The network between the nodes, from its recipe.
#pragma once

#include <cstdint>
#include <vector>

#include "topology/build.hpp"
#include "topology/build/hardware.hpp"
#include "topology/build/node.hpp"

namespace topsim::topology {

// Everything a fabric builder needs, resolved.
struct FabricInput {
  FabricInput(const NodeStamp& node, const std::vector<std::uint32_t>& first)
      : stamp(node), first_device(first) {}

  FabricSpec spec;     // catalogue recipe and overrides merged
  int unit_nodes = 0;  // of the catalogue recipe: nodes that share leaves, where the ports allow
  LinkFigures link;
  std::uint16_t link_type = 0;
  int radix = 0;
  Duration to_switch{}, to_nic{};  // latency of a link by its far end
  std::uint32_t switch_model = 0;
  Routing routing = Routing::adaptive;
  int merge_switches_above = 0;
  int nodes = 0;
  const NodeStamp& stamp;
  const std::vector<std::uint32_t>& first_device;  // of each node

  [[nodiscard]] bool even_split() const { return routing == Routing::adaptive || routing == Routing::spray; }
  // Device of compute NIC `nic` of `node`.
  [[nodiscard]] DeviceId nic_device(int node, std::size_t nic) const {
    return DeviceId(first_device[static_cast<std::size_t>(node)] + stamp.nics[nic].nic);
  }
};

// Adds the fabric's devices and links and sets the topology's fabric facts.
void build_fabric(const TopologySpec& spec, const Hardware& hardware, const NodeStamp& stamp,
                  const std::vector<std::uint32_t>& first_device, const BuildOptions& options,
                  TopologyBuilder& builder);

// Helpers shared by the kinds.
[[nodiscard]] DeviceId add_switch(const FabricInput& in, TopologyBuilder& builder, int tier, int index,
                                  int count = 1);
// `cables` between two switches: one Link where every message may use all, else one Link a cable.
void join_switches(const FabricInput& in, TopologyBuilder& builder, DeviceId a, DeviceId b, int cables);
// All ports of a NIC to one switch.
void join_nic(const FabricInput& in, TopologyBuilder& builder, int node, std::size_t nic, DeviceId leaf);

// One file a family.
void build_clos(const FabricInput& in, TopologyBuilder& builder);  // rail, fat-tree, rail-only
void build_dragonfly(const FabricInput& in, TopologyBuilder& builder);
void build_torus(const FabricInput& in, TopologyBuilder& builder);  // torus, mesh: without switches
}  // namespace topsim::topology
