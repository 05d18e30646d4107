#include "topology/build.hpp"

#include <filesystem>
#include <span>

#include "sim/base/error.hpp"
#include "topology/build/explicit.hpp"
#include "topology/build/fabric.hpp"
#include "topology/build/hardware.hpp"
#include "topology/build/node.hpp"
#include "topology/import/native.hpp"

namespace topsim::topology {

Topology build_file(const std::string& path, const Catalogue& catalogue, const BuildOptions& options) {
  const config::Document document = config::Document::read_file(path);
  const TopologySpec spec = read_topology(document);
  if (!spec.file.empty())
    throw ConfigError({Problem{document.root().find("file").place(),
                               "file",
                               path + " names another file",
                               {},
                               "name that one",
                               {}}});
  try {
    return build(spec, catalogue, options);
  } catch (const ConfigError& error) {
    // The paths of problems are those of a scenario; the file has the section's keys at its top level.
    std::vector<Problem> problems = error.problems();
    constexpr std::string_view kSection = "topology.";
    for (Problem& problem : problems)
      if (problem.path.starts_with(kSection)) problem.path.erase(0, kSection.size());
    throw ConfigError(document.locate(std::move(problems)));
  }
}

std::vector<Problem> unknown_names(const TopologySpec& spec, const Catalogue& catalogue) {
  const Hardware hardware(catalogue);
  std::vector<Problem> problems;
  const auto look_up = [&](const std::string& id, auto find) {
    if (id.empty()) return;
    try {
      find(id);
    } catch (const ConfigError& error) {
      problems.insert(problems.end(), error.problems().begin(), error.problems().end());
    }
  };
  const std::string node = "topology.node", fabric = "topology.fabric";
  look_up(spec.node.use, [&](const std::string& id) { (void)hardware.node(id, node); });
  look_up(spec.node.accelerator.value_or(""),
          [&](const std::string& id) { (void)hardware.accelerator(id, node + ".accelerator"); });
  look_up(spec.node.nic.value_or(""), [&](const std::string& id) { (void)hardware.nic(id, node + ".nic"); });
  if (spec.node.nvlink)
    look_up(spec.node.nvlink->use, [&](const std::string& id) { (void)hardware.link(id, node + ".nvlink"); });
  look_up(spec.fabric.use, [&](const std::string&) { (void)resolve_fabric(spec.fabric, catalogue); });
  look_up(spec.fabric.link.use, [&](const std::string& id) { (void)hardware.link(id, fabric + ".link"); });
  look_up(spec.fabric.uplink.use,
          [&](const std::string& id) { (void)hardware.link(id, fabric + ".uplink"); });
  const auto switches = [&](const SwitchChoice& choice, const std::string& key) {
    look_up(choice.use, [&](const std::string& id) { (void)hardware.switch_entry(id, fabric + key); });
  };
  switches(spec.fabric.switch_model, ".switch");
  switches(spec.fabric.spine_switch, ".spine_switch");
  switches(spec.fabric.core_switch, ".core_switch");
  return problems;
}

namespace {
// The coordinates of chips that form a torus within every node: node, then place in it.
void number_chips(const NodeStamp& stamp, std::span<const std::uint32_t> first_device, Topology& facts) {
  if (stamp.torus.empty()) return;
  facts.torus_dimensions = {static_cast<int>(first_device.size())};
  facts.torus_dimensions.insert(facts.torus_dimensions.end(), stamp.torus.begin(), stamp.torus.end());
  for (const std::uint32_t node : first_device)
    for (const std::uint32_t chip : stamp.accelerators) facts.torus_chips.emplace_back(node + chip);
}
}  // namespace

Topology build(const TopologySpec& spec, const Catalogue& catalogue, const BuildOptions& options) {
  const Hardware hardware(catalogue, options);
  std::vector<Problem> unknown = unknown_names(spec, catalogue);
  if (!unknown.empty()) throw ConfigError(std::move(unknown));
  if (!spec.file.empty()) {
    const std::filesystem::path path = std::filesystem::path(spec.directory) / spec.file;
    if (std::error_code error; !std::filesystem::exists(path, error)) {
      const std::string tried = std::filesystem::absolute(path, error).lexically_normal().string();
      throw ConfigError({Problem{{},
                                 "topology.file",
                                 "no such file: \"" + spec.file + '"',
                                 {},
                                 "looked for " + tried + "; topsim topo export writes such files",
                                 {}}});
    }
    return build_file(path.string(), catalogue, options);
  }
  if (!spec.devices.empty()) return build_explicit(spec, hardware);
  TopologyBuilder builder;
  const NodeStamp stamp = make_node(spec, hardware, builder);
  const auto nodes = static_cast<std::size_t>(spec.nodes);
  const std::size_t cables = stamp.nics.size() * 6 + stamp.accelerators.size() * 2;
  const std::size_t kept = stamp.domain_nodes <= 1 ? 1 : nodes;  // of equal nodes only one is kept
  builder.reserve(kept * stamp.devices.size() + nodes, kept * stamp.links.size() + nodes * cables);
  builder.set_nodes(static_cast<std::uint32_t>(spec.nodes));
  builder.facts().peer_to_peer = stamp.peer_to_peer;
  builder.facts().nvlink_sharp = stamp.nvlink_sharp;
  const std::vector<std::uint32_t> first = place_nodes(stamp, spec.nodes, builder);
  number_chips(stamp, first, builder.facts());
  std::vector<DeviceId> ranks = build_fabric(spec, catalogue, stamp, first, options, builder);
  Topology topology = std::move(builder).finish();
  return ranks.empty() ? std::move(topology) : topology.with_ranks_on(std::move(ranks));
}

}  // namespace topsim::topology
