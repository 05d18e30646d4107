#include "sim/report/text.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "sim/report/result.hpp"

namespace topsim::report {
namespace {
bool starts_character(char c) {
  return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U;
}

struct Scale {
  double factor;
  std::string_view unit;
};

// The largest unit in which the value is at least 1 after rounding to three digits (999.6 us reads 1.00 ms).
template <std::size_t N>
std::string scaled(double value, const std::array<Scale, N>& scales) {
  if (value == 0) return fmt::format("0 {}", scales[0].unit);
  std::size_t best = 0;
  for (std::size_t i = 0; i < N; ++i) {
    if (std::abs(value) >= scales[i].factor * 0.9995) best = i;
  }
  return fmt::format("{} {}", three_digits(value / scales[best].factor), scales[best].unit);
}

constexpr std::array<Scale, 5> kBytes{{{1, "B"}, {1e3, "kB"}, {1e6, "MB"}, {1e9, "GB"}, {1e12, "TB"}}};
constexpr std::array<Scale, 5> kMemory{
    {{1, "B"}, {0x1p10, "KiB"}, {0x1p20, "MiB"}, {0x1p30, "GiB"}, {0x1p40, "TiB"}}};
constexpr std::array<Scale, 4> kRates{{{1, "B/s"}, {1e3, "kB/s"}, {1e6, "MB/s"}, {1e9, "GB/s"}}};
constexpr std::array<Scale, 5> kTimes{{{1, "ps"}, {1e3, "ns"}, {1e6, "us"}, {1e9, "ms"}, {1e12, "s"}}};
}  // namespace

std::string three_digits(double value) {
  if (value == 0 || !std::isfinite(value)) return fmt::format("{}", value);
  const int exponent = static_cast<int>(std::floor(std::log10(std::abs(value)) + 1e-12));
  const double unit = std::pow(10.0, exponent - 2);
  const double rounded = std::round(value / unit) * unit;
  const bool carried = std::abs(rounded) >= std::pow(10.0, exponent + 1) * (1 - 1e-12);
  const int decimals = std::clamp(2 - exponent - (carried ? 1 : 0), 0, 15);
  return fmt::format("{:.{}f}", rounded, decimals);
}

std::string duration_text(Duration time) {
  return scaled(static_cast<double>(time.count()), kTimes);
}

std::string days_text(double seconds) {
  constexpr double kMinute = 60, kHour = 3600;
  if (seconds >= 2 * kSecondsPerDay) return three_digits(seconds / kSecondsPerDay) + " days";
  if (seconds >= kHour) return three_digits(seconds / kHour) + " h";
  if (seconds >= kMinute) return three_digits(seconds / kMinute) + " min";
  return three_digits(seconds) + " s";
}

std::string bytes_text(double bytes) {
  return scaled(bytes, kBytes);
}

std::string memory_text(Bytes bytes) {
  return scaled(static_cast<double>(bytes.value()), kMemory);
}
std::string capacity_text(const Memory& memory) {
  const std::string all = memory_text(memory.capacity);
  return memory.usable > Bytes{}
             ? fmt::format("{}, of which engines fill {}", all, memory_text(memory.usable))
             : all;
}

std::string message_text(Bytes bytes) {
  constexpr std::array<Scale, 3> units{{{0x1p30, "GiB"}, {0x1p20, "MiB"}, {0x1p10, "KiB"}}};
  const auto value = static_cast<double>(bytes.value());
  for (const Scale& scale : units) {
    // Multiples of a quarter of the unit are probably chosen sizes: 0.25, 62.5 MiB.
    const double units_of_it = value / scale.factor;
    if (units_of_it >= 1 && units_of_it < 10'000 && std::fmod(value * 4, scale.factor) == 0) {
      return fmt::format("{} {}", units_of_it, scale.unit);
    }
  }
  return memory_text(bytes);
}

std::string rate_text(double bytes_per_second) {
  return scaled(bytes_per_second, kRates);
}

std::string dollars_text(double dollars) {
  return count_text(dollars) + " USD";
}

std::string percent_text(double share) {
  if (std::abs(share) >= 0.9995) return fmt::format("{:.0f} %", share * 100);
  return fmt::format("{:.1f} %", share * 100);
}

std::string signed_percent_text(double share) {
  constexpr double kShown = 0.005;  // in percent; smaller values would need more than two decimals
  const double percent = share * 100, size = std::abs(percent);
  if (size < kShown) return "0 %";
  return fmt::format("{}{} %", percent > 0 ? "+" : "-",
                     size < 1 ? fmt::format("{:.2f}", size) : three_digits(size));
}

namespace {
std::string in_threes(std::string digits) {
  for (std::size_t i = digits.size(); i > 3; i -= 3) digits.insert(i - 3, 1, ' ');
  return digits;
}
}  // namespace

std::string count_text(double count) {
  if (count < 1000) return count == std::floor(count) ? fmt::format("{:.0f}", count) : three_digits(count);
  return in_threes(three_digits(count));
}

std::string exact_count_text(std::uint64_t count) {
  return in_threes(std::to_string(count));
}

std::string plural(double count, std::string_view thing) {
  return fmt::format("{} {}{}", count, thing, count == 1 ? "" : "s");
}

std::size_t width(std::string_view text) {
  return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), starts_character));
}

std::string pad_right(std::string_view text, std::size_t columns) {
  std::string padded(text);
  padded.append(columns - std::min(columns, width(text)), ' ');
  return padded;
}

std::string pad_left(std::string_view text, std::size_t columns) {
  return std::string(columns - std::min(columns, width(text)), ' ') + std::string(text);
}

namespace {
// Keeps the first `head` and the last `tail` characters around an ellipsis.
std::string cut(std::string_view text, std::size_t head, std::size_t tail) {
  const std::size_t tail_begin = width(text) - tail;
  std::string result;
  std::size_t column = 0;
  for (char c : text) {
    if (starts_character(c)) {
      if (column == head) result += "\u2026";
      ++column;
    }
    if (column <= head || column > tail_begin) result += c;
  }
  return result;
}
}  // namespace

std::string clip(std::string_view text, std::size_t columns) {
  if (width(text) <= columns || columns < 2) return std::string(text);
  return cut(text, columns / 2, columns - columns / 2 - 1);
}

std::string clip_end(std::string_view text, std::size_t columns) {
  if (width(text) <= columns || columns < 2) return std::string(text);
  return cut(text, columns - 1, 0);
}

namespace {
// A space that no line ends at: before a per cent sign, and between the thousands of a number ("124 000").
bool keeps_together(std::string_view text, std::size_t space) {
  const auto digit = [&](std::size_t at) { return at < text.size() && text[at] >= '0' && text[at] <= '9'; };
  if (space == 0 || space + 1 >= text.size() || !digit(space - 1)) return false;
  return text[space + 1] == '%' ||
         (digit(space + 1) && digit(space + 2) && digit(space + 3) && !digit(space + 4));
}
}  // namespace

std::vector<std::string> wrap(std::string_view text, std::size_t columns, std::size_t indent) {
  std::vector<std::string> lines(1);
  // The first line's own indentation is part of the text.
  const std::size_t margin = std::min(text.find_first_not_of(' '), text.size());
  lines.back().assign(margin, ' ');
  bool fresh = true;
  for (std::size_t at = margin; at < text.size();) {
    std::size_t space = std::min(text.find(' ', at), text.size());
    while (keeps_together(text, space)) space = std::min(text.find(' ', space + 1), text.size());
    const std::string_view word = text.substr(at, space - at);
    if (!fresh && width(lines.back()) + 1 + width(word) > columns) {
      lines.emplace_back(indent, ' ');
      fresh = true;
    }
    if (!fresh) lines.back() += ' ';
    lines.back() += word;
    fresh = false;
    at = space + 1;
  }
  return lines;
}

std::string bar(double share, std::size_t columns) {
  constexpr std::array<const char*, 8> eighths{"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
  const auto units =
      static_cast<std::size_t>(std::lround(std::clamp(share, 0.0, 1.0) * static_cast<double>(columns) * 8));
  std::string text;
  for (std::size_t i = 0; i < units / 8; ++i) text += "█";
  return text + eighths[units % 8];
}
}  // namespace topsim::report
