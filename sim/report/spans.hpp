// Sets of numbers in few characters: "0-7,16-120:8,300" is 0 to 7, every eighth from 16 to 120, and 300.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace topsim::report {

// REQUIRES: ascending, no number twice.
[[nodiscard]] std::string to_spans(std::span<const std::uint32_t> numbers);
// Throws ConfigError for text of another form.
[[nodiscard]] bool in_spans(std::string_view spans, std::uint32_t number);
}  // namespace topsim::report
