#include "sim/scenario/findings/cable_findings.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <string>

#include "sim/base/suggest.hpp"
#include "topology/build.hpp"
#include "topology/cables.hpp"
#include "topology/catalogue/device_entries.hpp"
#include "topology/catalogue/link_entry.hpp"
#include "topology/catalogue/node_recipe.hpp"
#include "topology/credits.hpp"
#include "topology/line_rates.hpp"

namespace topsim::scenario {
namespace {
using topology::DeviceKind;

// Whether a NIC that speaks these links does that one. EFA, TCPXO and Slingshot need NICs of their own, which
// in the case of EFA and TCPXO do no RoCE; TCP runs on all Ethernet.
bool speaks(const std::vector<std::string>& spoken, const topology::LinkEntry& link,
            const topology::Catalogue& catalogue) {
  const auto own = [](const std::string& transport) { return transport == "srd" || transport == "tcpxo"; };
  const bool special = own(link.transport) || link.transport == "slingshot";
  return std::any_of(spoken.begin(), spoken.end(), [&](const std::string& id) {
    const topology::LinkEntry& each = catalogue.link(id);
    if (each.kind != link.kind) return false;
    return each.transport == link.transport ||
           !(special || (link.transport == "roce" && own(each.transport)));
  });
}

// Nodes of the catalogue with these accelerators whose NICs do a link at no less than its rate.
std::vector<std::string> nodes_with(const std::string& accelerator, const topology::LinkEntry& link,
                                    const topology::Catalogue& catalogue) {
  std::vector<std::string> out;
  for (const topology::CatalogueEntry& entry : catalogue.entries()) {
    if (entry.category != "node") continue;
    const topology::NodeRecipe& node = catalogue.node(entry.id);
    const bool does = std::any_of(node.nics.begin(), node.nics.end(), [&](const topology::NicGroup& group) {
      return group.compute && speaks(catalogue.nic(group.nic).links, link, catalogue) &&
             link.line_rate <= topology::kJustAbove * group.rate;
    });
    if (does && node.accelerator == accelerator && node.accelerators > 1) out.push_back(entry.id);
  }
  return out;
}

void find_links(const topology::Topology& topology, const topology::Catalogue& catalogue,
                const topology::NodeChoice& node, const topology::LinkChoice& choice,
                std::vector<report::Finding>& out) {
  topology::LinkEntry link = catalogue.link(choice.use);
  if (choice.bandwidth) {
    link.line_rate = *choice.bandwidth;
    link.label += fmt::format(" at {:g} Gbit/s", link.line_rate.value() * 8e-9);
  }
  std::vector<bool> seen(topology.models().size());
  const auto other_kind = [&](const std::vector<std::string>& spoken) {
    return std::none_of(spoken.begin(), spoken.end(),
                        [&](const std::string& id) { return catalogue.link(id).kind == link.kind; });
  };
  for (const LinkId cable : topology.cables()) {
    const topology::Link& each = topology.link(cable);
    if (each.kind != link.kind) continue;
    const topology::Device& device = topology.device(each.from);
    if (seen[device.model]) continue;
    seen[device.model] = true;
    const std::string& model = topology.models()[device.model];
    if (device.kind == DeviceKind::nic) {
      const topology::NicEntry& nic = catalogue.nic(model);
      // A node may run the ports of its NICs below their rate.
      const BytesPerSecond port = each.line_rate * (1.0 / each.count);
      const bool other = !speaks(nic.links, link, catalogue);
      if (!other && link.line_rate <= topology::kJustAbove * port) continue;
      std::string message =
          other ? fmt::format("{} does not do {}; it is simulated as if it did", nic.name, link.label)
                : fmt::format("a port of {} runs at {:g} Gbit/s{}, which is what {} carries here", nic.name,
                              port.value() * 8e-9,
                              port < nic.port_rate * topology::kJustBelow ? " in this node" : "", link.label);
      const std::vector<std::string> others =
          nodes_with(node.accelerator.value_or(catalogue.node(node.use).accelerator), link, catalogue);
      constexpr std::size_t kMost = 5;
      std::string remedy = "topology.node.nic names another NIC";
      if (!others.empty())
        remedy = fmt::format(
            "topology.node names another node, with NICs for it: {}; topology.node.nic another NIC",
            join(others, kMost));
      else if (!other && port < nic.port_rate * topology::kJustBelow)
        remedy = fmt::format("topsim list hardware {} shows how many NICs it has, and their rate", node.use);
      out.push_back(
          {report::Severity::warning, std::move(message), "topology.fabric.link", std::move(remedy)});
    } else if (device.kind == DeviceKind::fabric_switch) {
      const topology::SwitchEntry& entry = catalogue.network_switch(model);
      const bool slower = std::all_of(entry.links.begin(), entry.links.end(), [&](const std::string& id) {
        return link.line_rate > topology::kJustAbove * catalogue.link(id).line_rate;
      });
      if (entry.links.empty() || (!other_kind(entry.links) && !slower)) continue;
      out.push_back({report::Severity::warning,
                     fmt::format("{}{}{}; it is simulated as if it had", entry.name, kNoPorts, link.label),
                     "topology.fabric.switch", "topsim list hardware names the switches of each fabric"});
    }
  }
}

// A subnet manager writes one port for each destination into a switch's table (IBTA vol. 1,
// LinearForwardingTable), or with adaptive routing a group of ports.
void find_hashed_infiniband(const topology::Topology& topology, std::vector<report::Finding>& out) {
  if (!topology.fabric_is_infiniband || topology.routing != topology::Routing::ecmp) return;
  out.push_back({report::Severity::warning,
                 "InfiniBand's switches hash no queue pairs: they choose paths by destination (static) or by "
                 "how long their queues are (adaptive); connections collide here as on Ethernet",
                 "topology.fabric.routing", "\"adaptive\" is what InfiniBand has where the key is left out"});
}

// Where the scenario says how far it is.
std::string distance_key(const topology::TopologySpec& spec) {
  if (spec.node.use.empty()) return "topology.links";
  return spec.fabric.length.empty() ? "topology.fabric.link.latency" : "topology.fabric.length";
}

// Of all such cables the one that loses the largest share.
void find_long_infiniband(const topology::TopologySpec& spec, const topology::Topology& topology,
                          std::vector<report::Finding>& out) {
  struct Held {
    topology::Link there, back;
    double share;
  };
  std::optional<Held> worst;
  for (const LinkId id : topology.cables()) {
    const topology::Link there = topology.link(id);
    if (!topology::may_wait_for_credits(topology, there)) continue;
    const double share = there.capacity / there.line_rate;
    if (worst && share >= worst->share) continue;
    const std::optional<LinkId> other = topology::other_direction(topology, id);
    if (!other || !topology::waits_for_credits(topology, there, topology.link(*other))) continue;
    worst = {there, topology.link(*other), share};
  }
  if (!worst) return;
  const double trip = seconds(worst->there.latency + worst->back.latency);
  // As long as the cable's whole rate would need.
  const double short_enough = trip * worst->share;
  const double too_long = (trip - short_enough) / (2 * seconds(topology::kPropagationPerMetre));
  out.push_back(
      {report::Severity::warning,
       fmt::format(
           "a cable from {} to {} carries {:.0f} of {:.4g} Gbit/s: there and back take {:.3g} us, and "
           "an InfiniBand lane has at most {} blocks of {} B on the way",
           topology.name(worst->there.from), topology.name(worst->there.to),
           worst->there.capacity.value() * 8e-9 / worst->there.count,
           worst->there.line_rate.value() * 8e-9 / worst->there.count, trip * 1e6, topology::kMostCredits,
           topology::kCreditBlock),
       distance_key(spec),
       fmt::format("at most {:.3g} us keep its rate, {:.0f} m less of cable; farther, take systems for long "
                   "distances such as NVIDIA MetroX, or Ethernet whose headroom is as large as the distance",
                   short_enough * 1e6, std::ceil(too_long))});
}

// What PFC finds under way on each cable into a switch, three times rate x one-way delay [HPCC]
// (network/packet/pfc_queue.hpp), is set aside in the buffer that its ports share.
void find_long_pfc(const Scenario& scenario, const topology::Topology& topology,
                   std::vector<report::Finding>& out) {
  const network::packet::PacketSpec& spec = scenario.network.packet.spec;
  if (spec.flow_control_on(false) != network::packet::FlowControl::pfc || spec.buffer.headroom) return;
  struct Kept {
    double bytes = 0;
    std::uint32_t cables = 0;
  };
  std::map<DeviceId, Kept> kept;
  for (const LinkId id : topology.cables()) {
    const topology::Link link = topology.link(id);
    if (link.kind != topology::LinkKind::ethernet || topology.type_of(id).transport != "roce") continue;
    // The mean of both directions; each adds its half.
    const double half = 1.5 * link.line_rate.value() * seconds(link.latency) * spec.lanes.count;
    for (const DeviceId end : {link.from, link.to}) {
      const topology::Device device = topology.device(end);
      if (device.kind != DeviceKind::fabric_switch) continue;
      kept[end].bytes += half / device.count;
      if (end == link.to) kept[end].cables += link.count / device.count;
    }
  }
  const auto share_of = [&](const auto& row) {
    const Bytes buffer = spec.buffer.total.value_or(topology.facts_of(row.first).buffer);
    return buffer.value() == 0 ? 0 : row.second.bytes / static_cast<double>(buffer.value());
  };
  const auto worst = std::max_element(
      kept.begin(), kept.end(), [&](const auto& a, const auto& b) { return share_of(a) < share_of(b); });
  if (worst == kept.end() || share_of(*worst) <= 1) return;
  const auto& [device, each] = *worst;
  out.push_back(
      {report::Severity::warning,
       fmt::format("what PFC finds under way on the {} cables of {} is {:.3g} MB, and its ports share "
                   "{:.3g} MB: packets would be lost",
                   each.cables, topology.name(device), each.bytes * 1e-6,
                   each.bytes * 1e-6 / share_of(*worst)),
       distance_key(scenario.topology),
       "shorter cables, fewer of them on a switch, or a switch with a deep buffer"});
}

}  // namespace

std::vector<report::Finding> cable_findings(const Scenario& scenario, const topology::Topology& topology,
                                            const topology::Catalogue& catalogue) {
  std::vector<report::Finding> out;
  find_hashed_infiniband(topology, out);
  find_long_infiniband(scenario.topology, topology, out);
  find_long_pfc(scenario, topology, out);
  if (scenario.topology.node.use.empty()) return out;
  const topology::FabricSpec fabric = topology::resolve_fabric(scenario.topology.fabric, catalogue);
  if (!fabric.link.use.empty()) find_links(topology, catalogue, scenario.topology.node, fabric.link, out);
  return out;
}
}  // namespace topsim::scenario
