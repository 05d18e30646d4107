#include "sim/scenario/findings/cable_findings.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <string>

#include "sim/base/suggest.hpp"
#include "topology/build.hpp"
#include "topology/catalogue/device_entries.hpp"
#include "topology/catalogue/link_entry.hpp"
#include "topology/catalogue/node_recipe.hpp"
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

}  // namespace

std::vector<report::Finding> cable_findings(const Scenario& scenario, const topology::Topology& topology,
                                            const topology::Catalogue& catalogue) {
  std::vector<report::Finding> out;
  find_hashed_infiniband(topology, out);
  if (scenario.topology.node.use.empty()) return out;
  const topology::FabricSpec fabric = topology::resolve_fabric(scenario.topology.fabric, catalogue);
  if (!fabric.link.use.empty()) find_links(topology, catalogue, scenario.topology.node, fabric.link, out);
  return out;
}
}  // namespace topsim::scenario
