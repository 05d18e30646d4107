#include "sim/scenario/cluster/load_topology.hpp"

#include <algorithm>
#include <filesystem>
#include <limits>

#include "sim/base/suggest.hpp"
#include "sim/scenario/read/directories.hpp"
#include "topology/build.hpp"
#include "topology/catalogue/node_meant.hpp"

namespace topsim::scenario {
namespace {

bool is_node(const topology::Catalogue& catalogue, const std::string& name) {
  const auto entries = catalogue.entries();
  return std::any_of(entries.begin(), entries.end(),
                     [&](const auto& entry) { return entry.category == "node" && entry.id == name; });
}

// A name that is neither a file nor shipped may be a misspelt node: suggests the closest name.
void suggest_node(const std::string& name) {
  if (name.find_first_of("./") != std::string::npos) return;
  const std::vector<std::string> meant = topology::nodes_meant(catalogue_layers(config_directories()), name);
  if (!meant.empty())
    throw ConfigError("no scenario and no node is called \"" + name + '"',
                      "did you mean the node " + join(meant) + "?");
}

bool is_shipped(const std::string& name) {
  const auto directories = config_directories();
  return std::any_of(directories.begin(), directories.end(), [&](const std::string& directory) {
    return std::filesystem::is_regular_file(std::filesystem::path(directory) / (name + ".json"));
  });
}

bool is_topology_file(const std::string& path) {
  if (!std::filesystem::is_regular_file(path)) return false;
  return !config::Document::read_file(path).root().find("topology");
}
}  // namespace

topology::BuildOptions build_options(const Scenario& scenario) {
  topology::BuildOptions build;
  // Packet sizes apply to every network model: the fluid models use the share of the rate that packets leave
  // as payload.
  const PacketSection& packets = scenario.network.packet;
  if (packets.mtu || packets.header || packets.gap) {
    const auto bytes = [&](bool infiniband) {
      const network::packet::Framing framing = *packets.resolved(infiniband).framing;
      return topology::PacketBytes{framing.mtu, framing.header + framing.gap};
    };
    build.ethernet = bytes(false), build.infiniband = bytes(true);
  }
  if (!scenario.network.traits().packets) return build;
  // The packet model needs every switch separately; the fluid models do not (topology/build.hpp).
  build.merge_switches_above = std::numeric_limits<int>::max();
  // Packets that choose paths individually fill parallel cables evenly; packets of one flow or flowlet share
  // a cable with other flows.
  using network::packet::PathChoice;
  const auto path = scenario.network.packet.spec.path;
  build.cables_apart = path && *path != PathChoice::adaptive && *path != PathChoice::spray;
  return build;
}

void as_packets_choose(const Scenario& scenario, topology::Topology& topology) {
  if (!scenario.network.traits().packets) return;
  topology.dragonfly_dimensions.clear();
  if (topology.routing == topology::Routing::ecmp &&
      scenario.network.packet.spec.path == network::packet::PathChoice::flowlet)
    topology.routing = topology::Routing::adaptive;
}

topology::Topology build_topology(const Scenario& scenario, const topology::Catalogue& catalogue) {
  try {
    return topology::build(scenario.topology, catalogue);
  } catch (const ConfigError& error) {
    throw located(error, scenario);
  }
}

topology::Topology load_topology(const std::string& what, const topology::Catalogue& catalogue,
                                 const std::function<Scenario()>& read_scenario) {
  if (is_topology_file(what)) return topology::build_file(what, catalogue);
  // If a scenario and a node have the same name, it means the scenario, as in `run`.
  if (!std::filesystem::exists(what) && !is_shipped(what) && is_node(catalogue, what)) {
    topology::TopologySpec spec;
    spec.node.use = what;
    return topology::build(spec, catalogue);
  }
  try {
    return build_topology(read_scenario(), catalogue);
  } catch (const ConfigError& error) {
    const bool here = what == "-" || std::filesystem::exists(what) ||
                      std::filesystem::exists(what + ".json") || is_shipped(what);
    const std::string& help = error.problems().front().help;
    if (!here && help.find("did you mean") == std::string::npos) suggest_node(what);
    throw;
  }
}
}  // namespace topsim::scenario
