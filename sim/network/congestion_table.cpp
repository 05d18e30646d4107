#include "sim/network/congestion_table.hpp"

#include <algorithm>
#include <cmath>

namespace topsim::network {

double CongestionCurve::at(double load) const {
  if (points_.empty()) return 1;
  // The first point is joined to full efficiency at half its load, or at 1 where flows meet from 2 on.
  std::pair<double, double> before{points_.front().first / 2, 1.0};
  for (const auto& point : points_) {
    if (load <= before.first) return before.second;
    if (load < point.first) {
      const double part = std::log(load / before.first) / std::log(point.first / before.first);
      return before.second + part * (point.second - before.second);
    }
    before = point;
  }
  return before.second;
}

CongestionCurve CongestionTable::curve(const std::string& fabric, const std::string& routing, int queue_pairs,
                                       Bound bound) const {
  int nearest = 0;
  for (const CongestionEntry& e : entries_) {
    if (e.fabric != fabric || e.routing != routing) continue;
    const bool better =
        nearest == 0 || (e.queue_pairs <= queue_pairs ? e.queue_pairs > nearest || nearest > queue_pairs
                                                      : nearest > queue_pairs && e.queue_pairs < nearest);
    if (better) nearest = e.queue_pairs;
  }
  std::vector<std::pair<double, double>> points;
  for (const CongestionEntry& e : entries_) {
    if (e.fabric != fabric || e.routing != routing || e.queue_pairs != nearest) continue;
    const double value = bound == Bound::low ? e.low : bound == Bound::high ? e.high : e.efficiency;
    points.emplace_back(e.load(), std::min(value, 1.0));
  }
  std::sort(points.begin(), points.end());
  return CongestionCurve(std::move(points));
}

CongestionCurve CongestionTable::between_switches(const std::string& fabric, const std::string& routing,
                                                  int queue_pairs, Bound bound) const {
  CongestionCurve own = curve(fabric, routing, queue_pairs, bound);
  if (!own.empty()) return own;
  return curve(fabric, fabric == "roce" ? "ecmp" : "static", queue_pairs, bound);
}

CongestionCurve CongestionTable::to_nic(const std::string& fabric, int queue_pairs, Bound bound) const {
  return curve(fabric, "any", queue_pairs, bound);
}
}  // namespace topsim::network
