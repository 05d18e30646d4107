#include "sim/network/congestion_table.hpp"

#include <algorithm>
#include <cmath>
#include <map>

namespace topsim::network {

double CongestionCurve::at(double bytes) const {
  if (points_.empty()) return 1;
  if (bytes <= points_.front().first || points_.size() == 1) return points_.front().second;
  std::size_t next = 1;
  while (next + 1 < points_.size() && points_[next].first < bytes) ++next;
  const auto lost = [&](std::size_t i) { return points_[i].first * (1 / points_[i].second - 1); };
  const double size = points_[next].first, before = lost(next - 1), after = lost(next);
  const double slope = (after - before) / (size - points_[next - 1].first);
  // Beyond the last size the lost time does not shrink.
  const double there = after + (bytes - size) * (bytes > size ? std::max(slope, 0.0) : slope);
  return bytes / (bytes + there);
}

double CongestionCurve::end(double bytes, Bound bound) const {
  double end = at(bytes);
  if (points_.empty() || bound == Bound::middle) return end;
  const auto include = [&](double efficiency) {
    end = bound == Bound::low ? std::min(end, efficiency) : std::max(end, efficiency);
  };
  std::size_t next = 0;
  while (next + 1 < points_.size() && points_[next].first < bytes) ++next;
  include(points_[next].second);
  if (next > 0 && points_[next].first != bytes) include(points_[next - 1].second);
  return end;
}

double CongestionSurface::at(double load, double bytes) const {
  if (curves_.empty()) return 1;
  const double through = bytes * std::max(load, 1.0);
  std::pair<double, double> before{harmless(), 1.0};
  for (const auto& [next, curve] : curves_) {
    if (load <= before.first) return before.second;
    const double there = curve.end(through / std::max(next, 1.0), bound_);
    if (load < next) {
      if (bound_ == Bound::low) return std::min(before.second, there);
      if (bound_ == Bound::high) return std::max(before.second, there);
      const double part = std::log(load / before.first) / std::log(next / before.first);
      return before.second + part * (there - before.second);
    }
    before = {next, there};
  }
  return before.second;
}

CongestionSurface CongestionTable::surface(const std::string& fabric, const std::string& routing,
                                           int queue_pairs, Bound bound) const {
  int nearest = 0;
  for (const CongestionEntry& e : entries_) {
    if (e.fabric != fabric || e.routing != routing) continue;
    const bool better =
        nearest == 0 || (e.queue_pairs <= queue_pairs ? e.queue_pairs > nearest || nearest > queue_pairs
                                                      : nearest > queue_pairs && e.queue_pairs < nearest);
    if (better) nearest = e.queue_pairs;
  }
  std::map<double, std::vector<std::pair<double, double>>> points;  // by load
  for (const CongestionEntry& e : entries_) {
    if (e.fabric != fabric || e.routing != routing || e.queue_pairs != nearest) continue;
    const double value = bound == Bound::low ? e.low : bound == Bound::high ? e.high : e.efficiency;
    points[e.load()].emplace_back(static_cast<double>(e.bytes.value()), std::min(value, 1.0));
  }
  std::vector<std::pair<double, CongestionCurve>> curves;
  for (auto& [load, of_load] : points) {
    std::sort(of_load.begin(), of_load.end());
    curves.emplace_back(load, CongestionCurve(std::move(of_load)));
  }
  return CongestionSurface(std::move(curves), bound);
}

CongestionSurface CongestionTable::between_switches(const std::string& fabric, const std::string& routing,
                                                    int queue_pairs, Bound bound) const {
  CongestionSurface own = surface(fabric, routing, queue_pairs, bound);
  if (!own.empty()) return own;
  return surface(fabric, fabric == "roce" ? "ecmp" : "static", queue_pairs, bound);
}

CongestionSurface CongestionTable::to_nic(const std::string& fabric, int queue_pairs, Bound bound) const {
  return surface(fabric, "any", queue_pairs, bound);
}
}  // namespace topsim::network
