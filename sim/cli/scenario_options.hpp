// The options of every command that reads a scenario: SCENARIO, --set, --network, --seed.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "sim/cli/command.hpp"
#include "sim/scenario/read/shipped.hpp"
#include "sim/scenario/scenario.hpp"

namespace topsim::cli {

// Input that cannot be read twice: `-` for stdin, a pipe, a shell's <(command). Each is read once and kept.
class Streams {
 public:
  [[nodiscard]] static bool is_stream(const std::string& file);
  [[nodiscard]] std::string text(const std::string& file);

 private:
  std::mutex mutex_;
  std::map<std::string, std::string> texts_;
};

struct ScenarioOptions {
  std::string path;
  std::vector<std::string> assignments;
  std::string network;
  std::optional<std::string> seed;  // checked as run.seed is
  std::shared_ptr<Streams> streams = std::make_shared<Streams>();

  // All of them; `network_text` says what --network does.
  void declare(CLI::App& app, const std::string& network_text = kNetworkText);
  void declare_changes(CLI::App& app);   // without SCENARIO, for commands that read several
  void declare_topology(CLI::App& app);  // SCENARIO and --set, for commands that simulate nothing
  [[nodiscard]] scenario::Scenario load() const { return load(path); }
  [[nodiscard]] scenario::Scenario load(const std::string& file) const;
  [[nodiscard]] scenario::Scenario load_cluster() const;  // of which only the topology is needed
  // What --set, --network and --seed set, as --set takes it.
  [[nodiscard]] std::vector<std::string> all_assignments() const;

 private:
  static constexpr const char* kNetworkText = "Network model (default: the file's, else flow)";
  void declare_set(CLI::App& app);
  void declare_run(CLI::App& app, const std::string& network_text);
};

using scenario::shipped_catalogue;
using scenario::shipped_library;
}  // namespace topsim::cli
