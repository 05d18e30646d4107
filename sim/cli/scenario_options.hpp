// The options of every command that reads a scenario: SCENARIO, --set, --network, --seed.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "sim/cli/command.hpp"
#include "sim/scenario/scenario.hpp"
#include "sim/scenario/shipped.hpp"

namespace topsim::cli {

struct ScenarioOptions {
  std::string path;
  std::vector<std::string> assignments;
  std::string network;
  std::optional<std::string> seed;  // checked as run.seed is

  void declare(CLI::App& app);          // all of them
  void declare_changes(CLI::App& app);  // without SCENARIO, for commands that read several
  [[nodiscard]] scenario::Scenario load() const { return load(path); }
  [[nodiscard]] scenario::Scenario load(const std::string& file) const;
};

using scenario::shipped_catalogue;
using scenario::shipped_library;
}  // namespace topsim::cli
