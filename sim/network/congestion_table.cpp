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

namespace {
struct Row {
  double at = 0, efficiency = 1;
};
// Between two neighbouring rows, linearly in the logarithm; an end of the interval is the lower or the higher
// of both.
double between(const Row& before, const Row& after, double at, Bound bound) {
  if (bound == Bound::low) return std::min(before.efficiency, after.efficiency);
  if (bound == Bound::high) return std::max(before.efficiency, after.efficiency);
  const double part = std::log(at / before.at) / std::log(after.at / before.at);
  return before.efficiency + part * (after.efficiency - before.efficiency);
}
}  // namespace

double CongestionSurface::at(double load, double bytes) const {
  if (curves_.empty()) return 1;
  const double through = bytes * std::max(load, 1.0);
  Row before{harmless(), 1};
  for (const auto& [next, curve] : curves_) {
    if (load <= before.at) return before.efficiency;
    const Row there{next, curve.end(through / std::max(next, 1.0), bound_)};
    if (load < next) return between(before, there, load, bound_);
    before = there;
  }
  return before.efficiency;
}

double CongestionStack::at(double queue, double load, double bytes) const {
  if (surfaces_.empty()) return 1;
  std::size_t next = 0;
  while (next + 1 < surfaces_.size() && surfaces_[next].first < queue) ++next;
  const auto row = [&](std::size_t i) {
    return Row{surfaces_[i].first, surfaces_[i].second.at(load, bytes)};
  };
  if (next == 0 || queue >= surfaces_[next].first) return row(next).efficiency;
  return between(row(next - 1), row(next), queue, bound_);
}

CongestionStack CongestionTable::stack(const std::string& fabric, const std::string& routing, int queue_pairs,
                                       Bound bound) const {
  // Above 1:1, sprayed packets do as those that choose.
  const auto belongs = [&](const CongestionEntry& e) {
    return e.fabric == fabric &&
           (e.routing == routing || (routing == "spray" && e.routing == "adaptive" && e.queue > Bytes{}));
  };
  int nearest = 0;
  for (const CongestionEntry& e : entries_) {
    if (!belongs(e)) continue;
    const bool better =
        nearest == 0 || (e.queue_pairs <= queue_pairs ? e.queue_pairs > nearest || nearest > queue_pairs
                                                      : nearest > queue_pairs && e.queue_pairs < nearest);
    if (better) nearest = e.queue_pairs;
  }
  using Points = std::map<double, std::vector<std::pair<double, double>>>;  // by load
  std::map<double, Points> by_queue;
  for (const CongestionEntry& e : entries_) {
    if (!belongs(e) || e.queue_pairs != nearest) continue;
    const double value = bound == Bound::low ? e.low : bound == Bound::high ? e.high : e.efficiency;
    by_queue[static_cast<double>(e.queue.value())][e.load()].emplace_back(
        static_cast<double>(e.bytes.value()), std::min(value, 1.0));
  }
  // Rows of any queue are in the surfaces of all.
  if (by_queue.size() > 1 && by_queue.begin()->first == 0) {
    const Points any = std::move(by_queue.begin()->second);
    by_queue.erase(by_queue.begin());
    for (auto& [queue, points] : by_queue) points.insert(any.begin(), any.end());
  }
  std::vector<std::pair<double, CongestionSurface>> surfaces;
  for (auto& [queue, points] : by_queue) {
    std::vector<std::pair<double, CongestionCurve>> curves;
    for (auto& [load, of_load] : points) {
      std::sort(of_load.begin(), of_load.end());
      curves.emplace_back(load, CongestionCurve(std::move(of_load)));
    }
    surfaces.emplace_back(queue, CongestionSurface(std::move(curves), bound));
  }
  return CongestionStack(std::move(surfaces), bound);
}

CongestionStack CongestionTable::between_switches(const std::string& fabric, const std::string& routing,
                                                  int queue_pairs, Bound bound) const {
  CongestionStack own = stack(fabric, routing, queue_pairs, bound);
  if (!own.empty()) return own;
  return stack(fabric, fabric == "roce" ? "ecmp" : "static", queue_pairs, bound);
}

CongestionStack CongestionTable::to_nic(const std::string& fabric, int queue_pairs, Bound bound) const {
  return stack(fabric, "any", queue_pairs, bound);
}
}  // namespace topsim::network
