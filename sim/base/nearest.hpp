// The nearest whole number, halves away from zero: std::llround() without a call.
#pragma once

#include <cstdint>

namespace topsim {

// REQUIRES: the result fits.
[[nodiscard]] inline std::int64_t nearest(double value) {
  const auto whole = static_cast<std::int64_t>(value);
  const double rest = value - static_cast<double>(whole);  // exact
  return whole + (rest >= 0.5 ? 1 : 0) - (rest <= -0.5 ? 1 : 0);
}
}  // namespace topsim
