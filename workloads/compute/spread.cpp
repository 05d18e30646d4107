#include "workloads/compute/spread.hpp"

#include <cmath>
#include <numbers>

namespace topsim::workloads {

double expected_largest(double draws) {
  if (draws <= 1) return 0;
  const double above = 0.625 / (draws + 0.25);  // 1 - (n - 0.375) / (n + 0.25)
  // Newton's method on the tail 0.5 erfc(z / sqrt 2), which is convex for z > 0: from the left it never
  // overshoots.
  double z = 0;
  for (int i = 0; i < 60; ++i) {
    const double tail = 0.5 * std::erfc(z / std::sqrt(2.0));
    const double density = std::exp(-z * z / 2) / std::sqrt(2 * std::numbers::pi);
    const double step = (tail - above) / density;
    z += step;
    if (std::abs(step) < 1e-12) break;
  }
  return z;
}
}  // namespace topsim::workloads
