// The one rule by which exact instants become picoseconds: round to nearest, counted from an integer instant.
#pragma once

#include "sim/base/units.hpp"

namespace topsim::network {

// `start` + `s` seconds, kNever when that is beyond the clock's range.
[[nodiscard]] inline SimTime after_seconds(SimTime start, double s) {
  constexpr double kRange = 9.2e6;  // seconds; the clock ends at 9.223e6
  if (!(s + seconds(start.time_since_epoch()) < kRange)) return kNever;
  return start + (s > 0 ? from_seconds(s) : Duration{});
}
}  // namespace topsim::network
