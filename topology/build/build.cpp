#include "topology/build.hpp"

#include <filesystem>

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
    // Paths are those of a scenario; the file has the section's keys at its top.
    std::vector<Problem> problems = error.problems();
    constexpr std::string_view kSection = "topology.";
    for (Problem& problem : problems)
      if (problem.path.starts_with(kSection)) problem.path.erase(0, kSection.size());
    throw ConfigError(document.locate(std::move(problems)));
  }
}

Topology build(const TopologySpec& spec, const Catalogue& catalogue, const BuildOptions& options) {
  const Hardware hardware(catalogue);
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
  builder.reserve(nodes * (stamp.devices.size() + 1), nodes * (stamp.links.size() + cables));
  builder.set_nodes(static_cast<std::uint32_t>(spec.nodes));
  builder.facts().peer_to_peer = stamp.peer_to_peer;
  builder.facts().nvlink_sharp = stamp.nvlink_sharp;
  const std::vector<std::uint32_t> first = place_nodes(stamp, spec.nodes, builder);
  std::vector<DeviceId> ranks = build_fabric(spec, catalogue, stamp, first, options, builder);
  Topology topology = std::move(builder).finish();
  return ranks.empty() ? std::move(topology) : topology.with_ranks_on(std::move(ranks));
}

}  // namespace topsim::topology
