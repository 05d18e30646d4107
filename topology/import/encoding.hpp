// Files of other tools are text in ASCII or UTF-8.
#pragma once

#include <string>
#include <string_view>

namespace topsim::topology {

// By its byte order mark, or by the zero byte that a first letter has there.
[[nodiscard]] bool is_utf16(std::string_view text);

// Throws ConfigError with the remedy.
void refuse_utf16(std::string_view text, const std::string& file);
}  // namespace topsim::topology
