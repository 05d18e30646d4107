// From files and texts to scenarios, and back.
#pragma once

#include <span>
#include <string>

#include "sim/config/reader.hpp"
#include "sim/scenario/scenario.hpp"

namespace topsim::scenario {

// A file or folder of the configuration directories by the path that their folder has in the project
// ("configs/traces/ring8.goal", "traces/ring8.goal"); empty where there is none.
[[nodiscard]] std::string find_shipped(const std::string& path, const config::Library& library);

// Path as the user typed it: relative to the working directory, else in the configuration directories
// ("8xH100-ib", "configs/8xH100-ib.json" from anywhere). Throws ConfigError with the closest known one.
[[nodiscard]] std::string find_scenario(const std::string& path, const config::Library& library);

// Reads, follows "file" includes, applies `assignments` (--set PATH=VALUE). Throws ConfigError with all
// mistakes of the file.
[[nodiscard]] Scenario read_scenario(const std::string& path, std::span<const std::string> assignments,
                                     const config::Library& library);
// The same from text; `name` stands for the file in messages, includes are relative to `directory` (empty:
// the working directory).
[[nodiscard]] Scenario parse_scenario(std::string text, const std::string& name,
                                      std::span<const std::string> assignments,
                                      const config::Library& library, const std::string& directory = {});

// The same of files that may lack a workload: showing a cluster, or sending messages over it, needs only the
// topology. A node of the catalogue ("hgx-h100") is one of it alone.
[[nodiscard]] Scenario read_cluster(const std::string& path, std::span<const std::string> assignments,
                                    const config::Library& library);
[[nodiscard]] Scenario parse_cluster(std::string text, const std::string& name,
                                     std::span<const std::string> assignments,
                                     const config::Library& library);
// Throws ConfigError where such a scenario lacks a workload that is needed.
void require_workload(const Scenario& scenario);

// The resolved scenario as JSON, defaults written out but for what the framework decides
// (workloads/framework); parse_scenario() reads it back to the same.
[[nodiscard]] std::string to_json(const Scenario& scenario);
// The same with absolute paths of its files, so that it can be read from any folder.
[[nodiscard]] std::string standalone_json(const Scenario& scenario);
}  // namespace topsim::scenario
