#include "sim/report/interval.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

namespace topsim::report {
namespace {
// SplitMix64 (Steele, Lea, Flood 2014): a good mixer of one word.
std::uint64_t mix(std::uint64_t x) {
  x += 0x9E3779B97F4A7C15ULL;
  x = (x ^ (x >> 30U)) * 0xBF58476D1CE4E5B9ULL;
  x = (x ^ (x >> 27U)) * 0x94D049BB133111EBULL;
  return x ^ (x >> 31U);
}
}  // namespace

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
  return sorted[below] + (sorted[above] - sorted[below]) * (at - static_cast<double>(below));
}

Interval spread(std::span<const double> values) {
  return {quantile(values, 0.05), quantile(values, 0.5), quantile(values, 0.95)};
}
}  // namespace topsim::report
