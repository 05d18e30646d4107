// JSON Schemas of the files that users write.
#pragma once

#include <string>
#include <vector>

namespace topsim::scenario {

// By name: "scenario" or one of its parts. Throws ConfigError with the closest known name.
[[nodiscard]] std::string schema(const std::string& name);
[[nodiscard]] std::vector<std::string> schema_names();
}  // namespace topsim::scenario
