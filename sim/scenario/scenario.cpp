#include "sim/scenario/scenario.hpp"

#include <fmt/core.h>

#include <filesystem>

namespace topsim::scenario {

collective::Overrides library_choices(const Scenario& scenario) {
  collective::Overrides choices = scenario.network.nccl;
  if (!choices.custom_all_reduce && !scenario.workload.trace)
    choices.custom_all_reduce = workloads::serves(scenario.workload.task);
  return choices;
}

network::packet::PacketSpec packet_spec(const Scenario& scenario, bool infiniband) {
  network::packet::PacketSpec spec = scenario.network.packet.resolved(infiniband);
  spec.seed = scenario.run.seed;
  return spec;
}

std::vector<std::string> files_read(const Scenario& scenario) {
  std::vector<std::string> files;
  if (scenario.document) files = scenario.document->files();
  const std::filesystem::path folder = scenario.topology.directory;
  if (!scenario.topology.file.empty()) files.push_back((folder / scenario.topology.file).string());
  if (scenario.workload.trace) files.push_back((folder / scenario.workload.trace->path).string());
  return files;
}

std::string place_text(const Scenario& scenario, const std::string& path) {
  if (!scenario.document) return {};
  const config::Node node = scenario.document->root().at_path(path);
  if (!node || node.key_place().file != scenario.document->name()) return {};
  return fmt::format(" at {}:{}", node.key_place().line, node.key_place().column);
}

ConfigError located(const ConfigError& error, const Scenario& scenario) {
  return scenario.document ? ConfigError(scenario.document->locate(error.problems())) : error;
}
}  // namespace topsim::scenario
