// Numbers at the beginning of a text, in any locale: where a Python host has set de_DE, strtod() and stod()
// take "1.5" for 1.
#pragma once

#include <algorithm>
#include <charconv>
#include <optional>
#include <string_view>

namespace topsim {

// Blanks and a plus sign before it are skipped, and the text goes on behind it. Nothing, and the same text,
// where there is no number or one that `Number` does not hold.
template <class Number>
[[nodiscard]] std::optional<Number> take_number(std::string_view& text) {
  std::string_view rest = text;
  rest.remove_prefix(std::min(rest.find_first_not_of(" \t\r\n"), rest.size()));
  if (rest.starts_with('+')) rest.remove_prefix(1);
  Number value{};
  const auto [end, status] = std::from_chars(rest.data(), rest.data() + rest.size(), value);
  if (status != std::errc{}) return std::nullopt;
  rest.remove_prefix(static_cast<std::size_t>(end - rest.data()));
  text = rest;
  return value;
}
}  // namespace topsim
