#include "sim/config/quantity.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cmath>
#include <cstdlib>

#include "sim/base/error.hpp"
#include "sim/base/lower_case.hpp"
#include "sim/base/suggest.hpp"

namespace topsim::config {
namespace {

struct Unit {
  std::string_view name;
  double factor;           // base units in one
  std::int64_t whole = 0;  // the same, exactly, for time and sizes
  bool printed = true;     // false: a second spelling, read only
};

constexpr Unit exact(std::string_view name, std::int64_t whole, bool printed = true) {
  return {name, static_cast<double>(whole), whole, printed};
}

// Ascending. Bits exist only here: 1 bit/s is 1/8 byte/s.
constexpr std::array kTime = {exact("ps", 1),
                              exact("ns", 1'000),
                              exact("us", 1'000'000),
                              exact("\xC2\xB5s", 1'000'000, false),
                              exact("\xCE\xBCs", 1'000'000, false),
                              exact("ms", 1'000'000'000),
                              exact("s", 1'000'000'000'000),
                              exact("min", 60'000'000'000'000, false),
                              exact("h", 3'600'000'000'000'000, false),
                              exact("days", 86'400'000'000'000'000, false)};
constexpr std::array kSize = {exact("B", 1),
                              exact("kB", 1'000),
                              exact("KiB", std::int64_t{1} << 10),
                              exact("MB", 1'000'000),
                              exact("MiB", std::int64_t{1} << 20),
                              exact("GB", 1'000'000'000),
                              exact("GiB", std::int64_t{1} << 30),
                              exact("TB", 1'000'000'000'000),
                              exact("TiB", std::int64_t{1} << 40),
                              exact("PB", 1'000'000'000'000'000)};
constexpr std::array kBandwidth = {Unit{"bit/s", 0.125, 0, false},
                                   Unit{"B/s", 1},
                                   Unit{"kbit/s", 125, 0, false},
                                   Unit{"kB/s", 1e3},
                                   Unit{"KiB/s", 1024, 0, false},
                                   Unit{"Mbit/s", 1.25e5, 0, false},
                                   Unit{"MB/s", 1e6},
                                   Unit{"MiB/s", 1048576, 0, false},
                                   Unit{"Gbit/s", 1.25e8, 0, false},
                                   Unit{"GB/s", 1e9},
                                   Unit{"GiB/s", 1073741824, 0, false},
                                   Unit{"Tbit/s", 1.25e11, 0, false},
                                   Unit{"TB/s", 1e12}};
constexpr std::array kFlops = {Unit{"FLOP", 1},     Unit{"MFLOP", 1e6},  Unit{"GFLOP", 1e9},
                               Unit{"TFLOP", 1e12}, Unit{"PFLOP", 1e15}, Unit{"EFLOP", 1e18},
                               Unit{"ZFLOP", 1e21}};
constexpr std::array kFlopRate = {Unit{"FLOP/s", 1},
                                  Unit{"MFLOP/s", 1e6},
                                  Unit{"GFLOP/s", 1e9},
                                  Unit{"TFLOP/s", 1e12},
                                  Unit{"TFLOPS", 1e12, 0, false},
                                  Unit{"PFLOP/s", 1e15},
                                  Unit{"PFLOPS", 1e15, 0, false}};
constexpr std::array kPower = {Unit{"W", 1}, Unit{"kW", 1e3}, Unit{"MW", 1e6}};
constexpr std::array kLength = {Unit{"mm", 1e-3}, Unit{"cm", 1e-2}, Unit{"m", 1}, Unit{"km", 1e3}};
constexpr std::array kEnergyPrice = {Unit{"USD/MWh", 1e-3}, Unit{"USD/kWh", 1}};
constexpr std::array kMoney = {Unit{"USD", 1}, Unit{"kUSD", 1e3}, Unit{"MUSD", 1e6}};

struct Facts {
  std::string_view name, example;
  const Unit* units;
  std::size_t count;
  std::size_t base;  // index of the unit whose factor is 1
  double most;       // beyond what there is by far: memories move some 1e16 B/s, clusters some 1e21 FLOP/s
};
constexpr double kLeast = 1e-9;

template <std::size_t N>
constexpr Facts facts(std::string_view name, std::string_view example, const std::array<Unit, N>& units,
                      double most = 1e18) {
  std::size_t base = 0;
  while (units[base].factor != 1) ++base;
  return {name, example, units.data(), N, base, most};
}

// In the order of Dimension.
constexpr std::array kDimensions = {facts("a duration", "500 ns", kTime),
                                    facts("a size", "16 MiB", kSize),
                                    facts("a bandwidth", "400 Gbit/s", kBandwidth),
                                    facts("an amount of work", "5 TFLOP", kFlops, 1e30),
                                    facts("a compute rate", "989 TFLOP/s", kFlopRate, 1e30),
                                    facts("a power", "700 W", kPower),
                                    facts("a length", "20 m", kLength),
                                    facts("an energy price", "0.1 USD/kWh", kEnergyPrice),
                                    facts("a price", "30000 USD", kMoney)};

const Facts& facts_of(Dimension dimension) {
  return kDimensions.at(static_cast<std::size_t>(dimension));
}

const Unit* find_unit(const Facts& facts, std::string_view name) {
  for (std::size_t i = 0; i < facts.count; ++i) {
    if (facts.units[i].name == name) return &facts.units[i];
  }
  return nullptr;
}

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}
bool is_space(char c) {
  return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

// Length of the decimal number at the beginning of a text, 0 when there is none.
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

// decimal x whole, rounded to the nearest integer; nothing beyond int64. Doubles would lose the last digits.
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
    exponent +=
        std::clamp(std::strtol(std::string(decimal.substr(i + 1)).c_str(), nullptr, 10), -100000L, 100000L);
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

std::string quoted(std::string_view number, std::string_view unit) {
  return '"' + std::string(number) + ' ' + std::string(unit) + '"';
}

std::string_view spelled_out(std::string_view unit) {
  struct Spelling {
    std::string_view written, unit;
  };
  constexpr std::array kSpellings = {
      Spelling{"sec", "s"},     Spelling{"secs", "s"},      Spelling{"second", "s"},
      Spelling{"seconds", "s"}, Spelling{"msec", "ms"},     Spelling{"usec", "us"},
      Spelling{"nsec", "ns"},   Spelling{"minutes", "min"}, Spelling{"hr", "h"},
      Spelling{"hour", "h"},    Spelling{"hours", "h"},     Spelling{"day", "days"},
      Spelling{"d", "days"},    Spelling{"bytes", "B"},     Spelling{"byte", "B"},
      Spelling{"watts", "W"},   Spelling{"watt", "W"},      Spelling{"metres", "m"},
      Spelling{"meters", "m"},  Spelling{"$", "USD"},       Spelling{"flops", "FLOP/s"}};
  for (const Spelling& s : kSpellings) {
    if (s.written == lower_case(unit)) return s.unit;
  }
  return {};
}

// "Gb/s", "Gbps", "GBps", "G": bits or bytes, thousands or 1024s?
std::string explain_prefix(Dimension dimension, std::string_view number, std::string_view unit) {
  const std::string text = lower_case(unit);
  if (dimension == Dimension::size && text.size() == 2 && text[1] == 'b' && unit[1] == 'b') {
    const char prefix =
        text[0] == 'k' ? 'k' : static_cast<char>(std::toupper(static_cast<unsigned char>(unit[0])));
    return "a small b may mean bits: did you mean " + quoted(number, std::string(1, prefix) + "B") + "?";
  }
  if (dimension == Dimension::size && text.size() == 1 &&
      std::string_view("kmgt").find(text[0]) != std::string::npos) {
    const char prefix = static_cast<char>(std::toupper(static_cast<unsigned char>(text[0])));
    return "did you mean " +
           quoted(number, (prefix == 'K' ? std::string("k") : std::string(1, prefix)) + "B") + " or " +
           quoted(number, std::string(1, prefix) + "iB") + "?";
  }
  if (dimension != Dimension::bandwidth) return {};
  std::size_t i = 0;
  std::string prefix;
  if (!text.empty() && std::string_view("kmgtp").find(text[0]) != std::string::npos) {
    prefix = text[0] == 'k'
                 ? "k"
                 : std::string(1, static_cast<char>(std::toupper(static_cast<unsigned char>(text[0]))));
    i = 1;
  }
  const std::string_view rest = std::string_view(text).substr(i);
  if (rest == "b/s" || rest == "bps" || rest == "b" || rest == "bits/s" || rest == "bit/sec" ||
      rest == "b/sec") {
    if (rest.substr(0, 3) == "bit") return "did you mean " + quoted(number, prefix + "bit/s") + "?";
    if (unit[i] == 'B') return "did you mean " + quoted(number, prefix + "B/s") + "?";
    return "did you mean " + quoted(number, prefix + "bit/s") + " or " + quoted(number, prefix + "B/s") +
           "? they differ by 8x";
  }
  return {};
}

QuantityError wrong_unit(Dimension dimension, std::string_view number, std::string_view unit) {
  const Facts& facts = facts_of(dimension);
  QuantityError error;
  error.message = quoted(number, unit) + " is not " + std::string(facts.name);
  error.help = "units of " + std::string(facts.name) + ": " + join(unit_names(dimension));
  if (dimension == Dimension::bandwidth && (unit == "GT/s" || unit == "MT/s")) {
    error.label = "a rate of transfers; bytes depend on lanes and encoding";
    return error;
  }
  error.label = explain_prefix(dimension, number, unit);
  if (!error.label.empty()) return error;
  if (const std::string_view spelled = spelled_out(unit);
      !spelled.empty() && find_unit(facts, spelled) != nullptr) {
    error.label = "did you mean " + quoted(number, spelled) + "?";
    return error;
  }
  for (const Facts& other : kDimensions) {
    if (&other != &facts && find_unit(other, unit) != nullptr) {
      error.label = "this is " + std::string(other.name);
      return error;
    }
  }
  if (const auto close = closest(unit, unit_names(dimension))) {
    error.label = "did you mean " + quoted(number, *close) + "?";
  }
  return error;
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
  const Facts& facts = facts_of(dimension);
  for (std::size_t i = 0; i < facts.count; ++i) {
    const bool ascii = static_cast<unsigned char>(facts.units[i].name[0]) < 0x80U;
    if (ascii || other_spellings) names.emplace_back(facts.units[i].name);
  }
  return names;
}

ParsedQuantity parse_quantity(Dimension dimension, std::string_view text) {
  ParsedQuantity result;
  const Facts& facts = facts_of(dimension);
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
  if (status != std::errc{} && std::abs(std::strtod(std::string(digits).c_str(), nullptr)) > 1) {
    return fail('"' + shown + "\" is too large", {});
  }
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
  const Facts& facts = facts_of(dimension);
  if (facts.units[0].whole == 0) throw InternalError("format_exact needs time or a size");
  const bool is_size = dimension == Dimension::size;
  const Unit* chosen = &facts.units[facts.base];
  for (std::size_t i = 0; i < facts.count; ++i) {
    const Unit& unit = facts.units[i];
    if (!unit.printed || value == 0) continue;
    // Sizes stay whole numbers (2560 MiB, 25 MB); times take the largest unit they fill.
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
  const Facts& facts = facts_of(dimension);
  const auto with = [](double number, std::string_view unit) {
    std::array<char, 40> buffer{};
    const auto end = std::to_chars(buffer.data(), buffer.data() + buffer.size(), number).ptr;
    return std::string(buffer.data(), end) + ' ' + std::string(unit);
  };
  for (std::size_t i = facts.count; i-- > 0;) {
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
