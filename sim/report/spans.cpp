#include "sim/report/spans.hpp"

#include <fmt/format.h>

#include <charconv>

#include "sim/base/error.hpp"

namespace topsim::report {
namespace {

std::uint32_t take_number(std::string_view& text) {
  std::uint32_t number = 0;
  const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (failed != std::errc())
    throw ConfigError("not a set of numbers: \"" + std::string(text) + '"', "one reads 0-7,16-120:8,300");
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return number;
}

bool take(std::string_view& text, char c) {
  if (text.empty() || text.front() != c) return false;
  text.remove_prefix(1);
  return true;
}
}  // namespace

std::string to_spans(std::span<const std::uint32_t> numbers) {
  std::string text;
  const std::uint32_t* const end = numbers.data() + numbers.size();
  for (const std::uint32_t* first = numbers.data(); first != end;) {
    // Extends the span as long as the stride stays the same; two numbers alone are not a span.
    const std::uint32_t* last = first;
    const std::uint32_t stride = first + 1 != end ? first[1] - first[0] : 1;
    while (last + 1 != end && last[1] - last[0] == stride) ++last;
    if (last == first + 1 && stride != 1) last = first;
    const auto append = [&](char before, std::uint32_t number) {
      if (before != 0) text += before;
      const fmt::format_int digits(number);
      text.append(digits.data(), digits.size());
    };
    append(text.empty() ? '\0' : ',', *first);
    if (last > first) append('-', *last);
    if (last > first && stride != 1) append(':', stride);
    first = last + 1;
  }
  return text;
}

bool in_spans(std::string_view spans, std::uint32_t number) {
  while (!spans.empty()) {
    const std::uint32_t first = take_number(spans);
    const std::uint32_t last = take(spans, '-') ? take_number(spans) : first;
    const std::uint32_t stride = take(spans, ':') ? take_number(spans) : 1;
    if (number >= first && number <= last && stride > 0 && (number - first) % stride == 0) return true;
    if (!spans.empty() && !take(spans, ',')) (void)take_number(spans);
  }
  return false;
}
}  // namespace topsim::report
