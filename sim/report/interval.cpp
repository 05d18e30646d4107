#include "sim/report/interval.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include "sim/base/mix.hpp"

namespace topsim::report {

double Draws::operator()(std::string_view thing) const {
  if (sample_ == 0) return 0.5;
  std::uint64_t hash = 0xCBF29CE484222325ULL;  // FNV-1a
  for (char c : thing) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001B3ULL;
  return static_cast<double>(mix(hash ^ mix(sample_)) >> 11U) * 0x1p-53;
}

double quantile(std::span<const double> values, double q) {
  std::vector<double> sorted(values.begin(), values.end());
  std::sort(sorted.begin(), sorted.end());
  const double at = q * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<std::size_t>(std::floor(at));
  const std::size_t above = std::min(below + 1, sorted.size() - 1);
  const double part = at - static_cast<double>(below);
  if (part == 0 || sorted[above] == sorted[below]) return sorted[below];  // both may be infinite
  return sorted[below] + (sorted[above] - sorted[below]) * part;
}

Interval spread(std::span<const double> values) {
  return {quantile(values, 0.05), quantile(values, 0.5), quantile(values, 0.95)};
}
}  // namespace topsim::report
