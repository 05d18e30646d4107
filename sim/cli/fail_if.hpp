// --fail-if "step_time > 500 ms": a key of the result, a comparison, a figure with its unit.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace topsim::cli {

enum class Comparison : std::uint8_t { less, at_most, greater, at_least, equal };

struct Condition {
  std::string text;  // as typed
  std::string key;   // path in the result: step.seconds
  Comparison comparison = Comparison::greater;
  double limit = 0;  // in the result's unit (SI)
};

// What "5 %" refers to: to one, for shares only; or to the baseline's value, for any figure.
enum class Percent : std::uint8_t { of_one, of_baseline };

// Throws ConfigError when the text is not a condition.
[[nodiscard]] Condition parse_condition(std::string_view text, Percent percent = Percent::of_one);

[[nodiscard]] bool holds(const Condition& condition, double value);

// A figure of the result with the unit that its key has: "17.7 s", "59 100 tokens/s".
[[nodiscard]] std::string value_text(std::string_view key, double value);

// "17.7 s, the limit 1.00 ms": both sides of what was judged, with units.
[[nodiscard]] std::string figures_text(const Condition& condition, double value);

// Whether the key's figures are shares of one, which `run` reads in per cent.
[[nodiscard]] bool is_share(std::string_view key);

// Before anything is simulated: throws ConfigError when no result has such a number. `more`: keys in
// addition to those of a result. Keys into lists and into optional sections can only be checked
// afterwards.
void check_key(const Condition& condition, std::span<const std::string> more = {});

// Evaluates `condition` on a result (topsim.result/1 text). Throws ConfigError when the result has no such
// number.
struct Verdict {
  bool holds = false;
  double value = 0;  // the result's, in its unit (SI)
};
[[nodiscard]] Verdict judge(const Condition& condition, std::string_view result_json);
}  // namespace topsim::cli
