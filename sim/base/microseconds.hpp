// Sums of figures in microseconds, before they become simulated time, so that nothing is rounded on the
// way.
#pragma once

#include <chrono>

#include "sim/base/units.hpp"

namespace topsim {

using Microseconds = std::chrono::duration<double, std::micro>;

[[nodiscard]] inline Microseconds in_microseconds(Duration time) {
  return Microseconds(microseconds(time));
}
[[nodiscard]] inline Duration nearest_picosecond(Microseconds time) {
  return from_microseconds(time.count());
}
}  // namespace topsim
