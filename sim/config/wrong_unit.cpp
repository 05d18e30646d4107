#include <array>
#include <cctype>

#include "sim/base/lower_case.hpp"
#include "sim/base/suggest.hpp"
#include "sim/config/unit_table.hpp"

namespace topsim::config {
namespace {
std::string quoted(std::string_view number, std::string_view unit) {
  return '"' + std::string(number) + ' ' + std::string(unit) + '"';
}

std::string_view spelled_out(std::string_view unit) {
  struct Spelling {
    std::string_view written, unit;
  };
  constexpr std::array kSpellings = {
      Spelling{"sec", "s"},       Spelling{"secs", "s"},     Spelling{"second", "s"},
      Spelling{"seconds", "s"},   Spelling{"msec", "ms"},    Spelling{"usec", "us"},
      Spelling{"nsec", "ns"},     Spelling{"minute", "min"}, Spelling{"minutes", "min"},
      Spelling{"hr", "h"},        Spelling{"hour", "h"},     Spelling{"hours", "h"},
      Spelling{"day", "days"},    Spelling{"d", "days"},     Spelling{"bytes", "B"},
      Spelling{"byte", "B"},      Spelling{"watts", "W"},    Spelling{"watt", "W"},
      Spelling{"metres", "m"},    Spelling{"meters", "m"},   Spelling{"$", "USD"},
      Spelling{"flops", "FLOP/s"}};
  for (const Spelling& s : kSpellings) {
    if (s.written == lower_case(unit)) return s.unit;
  }
  return {};
}

// "Gb/s", "Gbps", "GBps", "G": explains bits or bytes, powers of 1000 or 1024.
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
  if (i == 1 && rest.empty())
    return "did you mean " + quoted(number, prefix + "bit/s") + " or " + quoted(number, prefix + "B/s") +
           "? they differ by 8x";
  if (rest == "bit" || rest == "bits") return "did you mean " + quoted(number, prefix + "bit/s") + "?";
  if (rest == "b/s" || rest == "bps" || rest == "b" || rest == "bits/s" || rest == "bit/sec" ||
      rest == "b/sec") {
    if (rest.substr(0, 3) == "bit") return "did you mean " + quoted(number, prefix + "bit/s") + "?";
    if (unit[i] == 'B') return "did you mean " + quoted(number, prefix + "B/s") + "?";
    return "did you mean " + quoted(number, prefix + "bit/s") + " or " + quoted(number, prefix + "B/s") +
           "? they differ by 8x";
  }
  return {};
}
}  // namespace

QuantityError wrong_unit(Dimension dimension, std::string_view number, std::string_view unit) {
  const DimensionFacts& facts = facts_of(dimension);
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
  for (const DimensionFacts& other : dimensions()) {
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
}  // namespace topsim::config
