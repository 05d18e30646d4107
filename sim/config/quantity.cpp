#include "sim/config/quantity.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdlib>

#include "sim/base/error.hpp"
#include "sim/base/suggest.hpp"
#include "sim/config/unit_table.hpp"

namespace topsim::config {
namespace {

// Smaller than any meaningful quantity with a fraction.
constexpr double kLeast = 1e-9;

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}
bool is_space(char c) {
  return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

// Length of the decimal number at the beginning of a text; 0 if there is none.
std::size_t number_length(std::string_view text) {
  std::size_t i = 0;
  if (i < text.size() && (text[i] == '-' || text[i] == '+')) ++i;
  const std::size_t first = i;
  while (i < text.size() && is_digit(text[i])) ++i;
  std::size_t digits = i - first;
  if (i < text.size() && text[i] == '.') {
    const std::size_t fraction = ++i;
    while (i < text.size() && is_digit(text[i])) ++i;
    digits += i - fraction;
  }
  if (digits == 0) return 0;
  if (i < text.size() && (text[i] == 'e' || text[i] == 'E')) {
    std::size_t j = i + 1;
    if (j < text.size() && (text[j] == '-' || text[j] == '+')) ++j;
    if (j < text.size() && is_digit(text[j])) {
      while (j < text.size() && is_digit(text[j])) ++j;
      i = j;
    }
  }
  return i;
}

// What follows the "e".
long exponent_of(std::string_view digits) {
  return std::clamp(std::strtol(std::string(digits).c_str(), nullptr, 10), -100000L, 100000L);
}

// Whether a decimal that no double holds is too large for one; else it is too small.
bool is_too_large(std::string_view decimal) {
  const std::size_t e = std::min(decimal.find_first_of("eE"), decimal.size());
  const std::size_t point = std::min(decimal.find('.'), e), first = decimal.find_first_of("123456789");
  const long exponent = e < decimal.size() ? exponent_of(decimal.substr(e + 1)) : 0;
  return exponent + static_cast<long>(point) - static_cast<long>(first) > 0;
}

// decimal x whole, rounded to the nearest integer; nothing if it exceeds int64. Doubles would lose the last
// digits.
std::optional<std::int64_t> scale_exactly(std::string_view decimal, std::int64_t whole) {
  __extension__ using Wide = __int128;
  constexpr Wide kMantissaLimit = Wide{1'000'000'000'000'000'000};
  constexpr Wide kLimit = Wide{std::numeric_limits<std::int64_t>::max()};
  Wide mantissa = 0;
  long exponent = 0;
  bool negative = false, fraction = false;
  std::size_t i = 0;
  if (decimal[i] == '-' || decimal[i] == '+') negative = decimal[i++] == '-';
  for (; i < decimal.size() && (is_digit(decimal[i]) || decimal[i] == '.'); ++i) {
    if (decimal[i] == '.') {
      fraction = true;
    } else if (mantissa < kMantissaLimit) {
      mantissa = mantissa * 10 + (decimal[i] - '0');
      if (fraction) --exponent;
    } else if (!fraction) {
      ++exponent;
    }
  }
  if (i < decimal.size()) {
    exponent += exponent_of(decimal.substr(i + 1));
  }
  Wide value = mantissa * whole;
  for (; exponent > 0 && value != 0; --exponent) {
    if (value > kLimit) return std::nullopt;
    value *= 10;
  }
  Wide divisor = 1;
  for (; exponent < 0 && divisor < kLimit * 1'000'000'000; ++exponent) divisor *= 10;
  value = exponent < 0 ? 0 : (value + divisor / 2) / divisor;
  if (value > kLimit) return std::nullopt;
  return static_cast<std::int64_t>(negative ? -value : value);
}
}  // namespace

std::string_view name_of(Dimension dimension) {
  return facts_of(dimension).name;
}
std::string_view example_of(Dimension dimension) {
  return facts_of(dimension).example;
}

std::vector<std::string> unit_names(Dimension dimension, bool other_spellings) {
  std::vector<std::string> names;
  for (const Unit& unit : facts_of(dimension).units) {
    const bool ascii = static_cast<unsigned char>(unit.name[0]) < 0x80U;
    if (ascii || other_spellings) names.emplace_back(unit.name);
  }
  return names;
}

ParsedQuantity parse_quantity(Dimension dimension, std::string_view text) {
  ParsedQuantity result;
  const DimensionFacts& facts = facts_of(dimension);
  const auto fail = [&](std::string message, std::string label) {
    result.error = QuantityError{std::move(message), std::move(label),
                                 "units of " + std::string(facts.name) + ": " + join(unit_names(dimension))};
    return result;
  };
  const std::string_view whole_text = text;
  while (!text.empty() && is_space(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_space(text.back())) text.remove_suffix(1);
  std::string_view number = text.substr(0, number_length(text));
  std::string_view unit = text.substr(number.size());
  while (!unit.empty() && is_space(unit.front())) unit.remove_prefix(1);
  constexpr std::size_t kShown = 60;
  const std::string shown(whole_text.substr(0, kShown));
  if (number.empty() || unit.find_first_of("0123456789") != std::string_view::npos) {
    return fail('"' + shown + "\" is not " + std::string(facts.name),
                "a number and a unit, e.g. \"" + std::string(facts.example) + '"');
  }
  double value = 0;
  const std::string_view digits = number.front() == '+' ? number.substr(1) : number;
  const auto status = std::from_chars(digits.data(), digits.data() + digits.size(), value).ec;
  if (status != std::errc{} && is_too_large(digits)) {
    return fail('"' + shown + "\" is too large", {});
  }
  if (status != std::errc{}) return fail('"' + shown + "\" is too small", {});
  if (unit.empty()) {
    if (value == 0) return result;
    return fail('"' + shown + "\" needs a unit", "e.g. \"" + std::string(facts.example) + '"');
  }
  const Unit* found = find_unit(facts, unit);
  if (found == nullptr) {
    result.error = wrong_unit(dimension, number.substr(0, kShown), unit.substr(0, kShown));
    return result;
  }
  result.value = value * found->factor;
  if (found->whole == 0 && !(std::abs(result.value) <= facts.most))
    return fail('"' + shown + "\" is too large", "at most " + format_quantity(dimension, facts.most));
  if (found->whole == 0 && value != 0 && std::abs(result.value) < kLeast)
    return fail('"' + shown + "\" is too small", "0, or at least " + format_quantity(dimension, kLeast));
  if (found->whole != 0) {
    const auto scaled = scale_exactly(number, found->whole);
    if (!scaled) {
      return fail('"' + shown + "\" is too large",
                  "at most " + format_exact(dimension, std::numeric_limits<std::int64_t>::max()));
    }
    result.exact = *scaled;
    result.value = static_cast<double>(*scaled);
  }
  return result;
}

std::string format_exact(Dimension dimension, std::int64_t value) {
  const DimensionFacts& facts = facts_of(dimension);
  if (facts.units[0].whole == 0) throw InternalError("format_exact needs time or a size");
  const bool is_size = dimension == Dimension::size;
  const Unit* chosen = &facts.units[facts.base];
  for (const Unit& unit : facts.units) {
    if (!unit.printed || value == 0) continue;
    // Sizes stay whole numbers (2560 MiB, 25 MB); times use the largest unit that they reach.
    if (is_size ? value % unit.whole == 0 : std::abs(value) >= unit.whole) chosen = &unit;
  }
  if (value == 0 && !is_size) return "0 s";
  std::string text = value < 0 ? "-" : "";
  text += std::to_string(std::abs(value / chosen->whole));
  if (std::int64_t rest = std::abs(value % chosen->whole); rest != 0) {
    text += '.';
    for (std::int64_t place = chosen->whole / 10; rest != 0; place /= 10) {
      text += static_cast<char>('0' + rest / place);
      rest %= place;
    }
  }
  return text + ' ' + std::string(chosen->name);
}

std::string format_quantity(Dimension dimension, double value) {
  const DimensionFacts& facts = facts_of(dimension);
  const auto with = [](double number, std::string_view unit) {
    std::array<char, 40> buffer{};
    const auto end = std::to_chars(buffer.data(), buffer.data() + buffer.size(), number).ptr;
    return std::string(buffer.data(), end) + ' ' + std::string(unit);
  };
  for (std::size_t i = facts.units.size(); i-- > 0;) {
    const Unit& unit = facts.units[i];
    if (!unit.printed || std::abs(value) < unit.factor) continue;
    std::string text = with(value / unit.factor, unit.name);
    if (parse_quantity(dimension, text).value == value) return text;
  }
  return with(value, facts.units[facts.base].name);
}

std::string to_text(Duration v) {
  return format_exact(Dimension::time, v.count());
}
std::string to_text(Bytes v) {
  return format_exact(Dimension::size, v.value());
}
std::string to_text(BytesPerSecond v) {
  return format_quantity(Dimension::bandwidth, v.value());
}
std::string to_text(FlopsPerSecond v) {
  return format_quantity(Dimension::flop_rate, v.value());
}
std::string to_text(Watts v) {
  return format_quantity(Dimension::power, v.value());
}
std::string to_text(Metres v) {
  return format_quantity(Dimension::length, v.value());
}
}  // namespace topsim::config
