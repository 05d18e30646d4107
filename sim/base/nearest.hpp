// Whole numbers and doubles.
#pragma once

#include <cstdint>

namespace topsim {

inline constexpr double kExactIntegers = 0x1p53;  // larger doubles are not exact integers

// The nearest whole number, halves away from zero: std::llround() without a call. REQUIRES: the result fits.
[[nodiscard]] inline std::int64_t nearest(double value) {
  const auto whole = static_cast<std::int64_t>(value);
  const double rest = value - static_cast<double>(whole);  // exact
  return whole + (rest >= 0.5 ? 1 : 0) - (rest <= -0.5 ? 1 : 0);
}
}  // namespace topsim
