// Times as files write them: seconds as a double.
#pragma once

#include "sim/base/units.hpp"

namespace topsim::report {

// Division rounds once, so a picosecond count prints as its own decimal: 1.234567890123, never ...0000001.
[[nodiscard]] constexpr double si(Duration time) {
  return static_cast<double>(time.count()) / 1e12;
}
[[nodiscard]] constexpr double si(SimTime time) {
  return si(time.time_since_epoch());
}
}  // namespace topsim::report
