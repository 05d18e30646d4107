// The network between the nodes, from its recipe.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "topology/build.hpp"
#include "topology/build/hardware.hpp"
#include "topology/build/node.hpp"

namespace topsim::topology {

// Switches of one tier. A switch whose ports run at two speeds spends 1 / radix of itself on every cable.
struct TierSwitch {
  std::uint32_t model = 0;
  int radix = 0;                // ports at the speed of the nodes' cables
  int uplink_radix = 0;         // ports at the speed of the cables between switches
  Duration latency{};           // of a link towards such a switch, from below
  std::optional<Duration> own;  // the switch's alone; none where a measured figure has the fibre in it
};

// Everything a fabric builder needs, resolved.
struct FabricInput {
  FabricInput(const NodeStamp& node, const std::vector<std::uint32_t>& first)
      : stamp(node), first_device(first) {}

  FabricSpec spec;  // catalogue recipe and overrides merged
  LinkFigures link, uplink;
  std::uint16_t link_type = 0, uplink_type = 0;
  std::array<TierSwitch, 3> tiers;  // leaf, spine, core
  Duration to_nic{};                // latency of a link towards a NIC
  Routing routing = Routing::adaptive;
  int merge_switches_above = 0;
  bool cables_apart = false;
  int nodes = 0;
  const NodeStamp& stamp;
  const std::vector<std::uint32_t>& first_device;  // of each node

  [[nodiscard]] bool even_split() const { return routing == Routing::adaptive || routing == Routing::spray; }
  [[nodiscard]] const TierSwitch& leaf() const { return tiers[0]; }
  // Of cables up to that tier, from 0, where the scenario or its recipe says one.
  [[nodiscard]] CableLength length_said(std::size_t tier) const {
    const bool said = !spec.length.empty() || !spec.usual_length.empty();
    return said ? CableLength(spec.cable_length(tier)) : CableLength();
  }
  // Device of compute NIC `nic` of `node`.
  [[nodiscard]] DeviceId nic_device(int node, std::size_t nic) const {
    return DeviceId(first_device[static_cast<std::size_t>(node)] + stamp.nics[nic].nic);
  }
};

// Adds the fabric's devices and links and sets the topology's fabric facts. Returns the accelerators in rank
// order where that is not node by node, else nothing.
[[nodiscard]] std::vector<DeviceId> build_fabric(const TopologySpec& spec, const Catalogue& catalogue,
                                                 const NodeStamp& stamp,
                                                 const std::vector<std::uint32_t>& first_device,
                                                 const BuildOptions& options, TopologyBuilder& builder);

// A key that the kind of fabric does not use is a ConfigError, so that it does not seem to have an effect.
void refuse_idle_keys(const FabricSpec& asked, FabricKind kind);
// The same for a list of ratios with more entries than there can be tiers.
void refuse_idle_ratios(const FabricSpec& asked);

// Helpers shared by the kinds.
[[nodiscard]] DeviceId add_switch(const FabricInput& in, TopologyBuilder& builder, int tier, int index,
                                  int count = 1);
// `cables` between two switches: one Link where every message may use all, else one Link a cable. `upper`:
// the tier of the farther one.
void join_switches(const FabricInput& in, TopologyBuilder& builder, DeviceId a, DeviceId b, int cables,
                   int upper);
// `cables` of a NIC, each at no more than `rate` (0: the link's), to one switch; and the same made
// beforehand, without ends, to join many NICs.
[[nodiscard]] Link nic_cable(const FabricInput& in, int cables, BytesPerSecond rate);
void join_nic(const FabricInput& in, TopologyBuilder& builder, int node, std::size_t nic, DeviceId leaf,
              Link cable);

// One file per family.
void build_clos(const FabricInput& in, TopologyBuilder& builder);  // rail, fat-tree, rail-only
void build_dragonfly(const FabricInput& in, TopologyBuilder& builder);
// torus, mesh: without switches. Accelerators by coordinate.
[[nodiscard]] std::vector<DeviceId> build_torus(const FabricInput& in, TopologyBuilder& builder);
void build_direct(const FabricInput& in, TopologyBuilder& builder);  // two nodes, NIC to NIC
}  // namespace topsim::topology
