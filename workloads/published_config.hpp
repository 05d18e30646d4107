// A model's published config.json (transformers' keys) in the keys of a scenario, for the message that asks
// for them.
#pragma once

#include <optional>
#include <string>

#include "sim/config/document.hpp"

namespace topsim::workloads {

// What to write in the place of `root`, or why it has no place here; nothing if `root` is no such file.
[[nodiscard]] std::optional<std::string> written_out(const config::Node& root);
}  // namespace topsim::workloads
