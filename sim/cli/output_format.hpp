// --format: which words a command knows.
#pragma once

#include <string>
#include <vector>

namespace topsim::cli {
// Throws ConfigError with the closest known one and the list.
void check_format(const std::string& format, const std::vector<std::string>& known);
}  // namespace topsim::cli
