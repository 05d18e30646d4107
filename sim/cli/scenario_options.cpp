#include "sim/cli/scenario_options.hpp"

#include <fmt/format.h>

#include <charconv>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <limits>

#include "sim/base/error.hpp"
#include "sim/cli/declare.hpp"
#include "sim/network/factory.hpp"
#include "sim/scenario/read/read.hpp"

namespace topsim::cli {
namespace fs = std::filesystem;

namespace {
// Before the scenario reads it, which would call it run.seed.
std::int64_t seed_of(const std::string& text) {
  std::int64_t seed = -1;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), seed);
  if (error == std::errc{} && end == text.data() + text.size() && seed >= 0) return seed;
  throw ConfigError(
      '"' + text + "\" is no seed for --seed",
      fmt::format("a whole number from 0 to {}, e.g. --seed 2", std::numeric_limits<std::int64_t>::max()));
}
}  // namespace

void ScenarioOptions::declare(CLI::App& app, const std::string& network_text) {
  declare_topology(app);
  declare_run(app, network_text);
}

void ScenarioOptions::declare_changes(CLI::App& app) {
  declare_set(app);
  declare_run(app, kNetworkText);
}

void ScenarioOptions::declare_topology(CLI::App& app) {
  add_option(app, "scenario", path, "Scenario file, or the name of a shipped one")
      .required()
      .type_name("SCENARIO");
  declare_set(app);
}

void ScenarioOptions::declare_set(CLI::App& app) {
  add_option(app, "--set", assignments, "Change a value, e.g. --set workload.sequence=4096 (repeatable)")
      .type_name("PATH=VALUE")
      .one_each();
}

void ScenarioOptions::declare_run(CLI::App& app, const std::string& network_text) {
  add_option(app, "--network", network, network_text)
      .type_name(word_list(network::model_names()))
      .check([](const std::string& name) {
        (void)network::find_model(name);  // throws an error with the closest name
        return std::string();
      });
  add_option(app, "--seed", seed, "Seed of everything drawn at random (default: the file's, else 1)")
      .type_name("N")
      .check([](const std::string& text) {
        (void)seed_of(text);
        return std::string();
      });
}

namespace {
std::string name_of_stream(const std::string& file) {
  return file == "-" ? "stdin" : fs::path(file).stem().string();
}
}  // namespace

bool Streams::is_stream(const std::string& file) {
  std::error_code error;
  return file == "-" || (fs::exists(file, error) && fs::is_other(file, error));
}

std::string Streams::text(const std::string& file) {
  const std::lock_guard lock(mutex_);
  const auto [known, fresh] = texts_.try_emplace(file);
  if (fresh) {
    std::ifstream stream(file == "-" ? "/dev/stdin" : file, std::ios::binary);
    known->second.assign(std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>());
  }
  return known->second;
}

std::vector<std::string> ScenarioOptions::all_assignments() const {
  std::vector<std::string> all = assignments;
  if (!network.empty()) {
    all.push_back("network.model=\"" + std::string(network::find_model(network).name) + '"');
  }
  if (seed) all.push_back("run.seed=" + std::to_string(seed_of(*seed)));
  return all;
}

scenario::Scenario ScenarioOptions::load(const std::string& file) const {
  const std::vector<std::string> all = all_assignments();
  if (!Streams::is_stream(file)) return scenario::read_scenario(file, all, shipped_library());
  const std::string name = name_of_stream(file);
  scenario::Scenario scenario = scenario::parse_scenario(streams->text(file), name, all, shipped_library());
  scenario.name = name;
  return scenario;
}

scenario::Scenario ScenarioOptions::load_cluster() const {
  const std::vector<std::string> all = all_assignments();
  if (!Streams::is_stream(path)) return scenario::read_cluster(path, all, shipped_library());
  return scenario::parse_cluster(streams->text(path), name_of_stream(path), all, shipped_library());
}
}  // namespace topsim::cli
