#include "sim/cli/scenario_options.hpp"

#include "sim/cli/declare.hpp"
#include "sim/network/factory.hpp"

namespace topsim::cli {

void ScenarioOptions::declare(CLI::App& app) {
  add_option(app, "scenario", path, "Scenario file, or the name of a shipped one")
      .required()
      .type_name("SCENARIO");
  declare_changes(app);
}

void ScenarioOptions::declare_changes(CLI::App& app) {
  add_option(app, "--set", assignments, "Change a value, e.g. --set topology.nodes=16 (repeatable)")
      .type_name("PATH=VALUE")
      .one_each();
  std::string names;
  for (const network::Model& model : network::models())
    names += (names.empty() ? "" : "|") + std::string(model.name);
  add_option(app, "--network", network, "Network model").type_name(names).check([](const std::string& name) {
    (void)network::find_model(name);  // throws with the closest
    return std::string();
  });
  add_option(app, "--seed", seed, "Seed of everything drawn at random").type_name("N").not_empty();
}

scenario::Scenario ScenarioOptions::load(const std::string& file) const {
  std::vector<std::string> all = assignments;
  if (!network.empty()) {
    all.push_back("network.model=\"" + std::string(network::find_model(network).name) + '"');
  }
  if (seed) all.push_back("run.seed=" + *seed);
  return scenario::read_scenario(file, all, shipped_library());
}
}  // namespace topsim::cli
