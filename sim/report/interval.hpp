// A figure on which sources disagree: lowest, usual, highest; in the unit of its owner.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace topsim::report {

struct Interval {
  double low = 0, usual = 0, high = 0;
  // Linear from low (u = 0) to usual (1/2) and from there to high (1): half of the draws on each side of the
  // usual.
  [[nodiscard]] constexpr double at(double u) const {
    return u < 0.5 ? low + (usual - low) * 2 * u : usual + (high - usual) * (2 * u - 1);
  }
  friend constexpr bool operator==(const Interval&, const Interval&) = default;
};

// The draws of one sample of an ensemble. A thing (by name) has the same draw wherever it occurs, so that
// common effects cancel in a comparison. Sample 0 is the usual value of everything.
class Draws {
 public:
  explicit constexpr Draws(std::uint64_t sample) : sample_(sample) {}
  [[nodiscard]] double operator()(std::string_view thing) const;  // in [0, 1), uniform

 private:
  std::uint64_t sample_;
};

// Linear interpolation between order statistics; q in [0, 1]. REQUIRES: values is not empty.
[[nodiscard]] double quantile(std::span<const double> values, double q);
// 5th, 50th and 95th percentile.
[[nodiscard]] Interval spread(std::span<const double> values);
}  // namespace topsim::report
