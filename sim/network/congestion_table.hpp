// How much of a link's capacity flows keep when they meet on it. The fluid model, which always uses links in
// full, takes this from the packet model (`topsim calibrate`, configs/calibration).
//
//   efficiency = time of the fluid model / time of the packet model, at most 1
//
// The load of a link is what its flows could offer, in capacities of the link: 2 where two senders at full
// speed meet. A link that its flows do not fill keeps all of its capacity.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "sim/base/units.hpp"

namespace topsim::network {

struct CongestionEntry {
  std::string fabric;  // "roce", "infiniband"
  // "ecmp", "static", "adaptive", "spray"; "bundle": of cables to one switch, among which packets choose;
  // "any" for the last link, to a NIC.
  std::string routing;
  // Ports below a switch that send at full speed, over ports above that carry them.
  double oversubscription = 1;
  int incast_degree = 1;                     // senders to one NIC
  int flows_per_port = 1;                    // that may use a port
  int queue_pairs = 1;                       // of each sender
  Bytes bytes{};                             // that each sender sends, from rest
  double efficiency = 1, low = 1, high = 1;  // median, least and most over seeds
  // That a port's senders have waiting for it when PFC stops them; 0: whatever it is.
  Bytes queue{};

  [[nodiscard]] double load() const {
    return incast_degree > 1 ? static_cast<double>(incast_degree) : oversubscription;
  }
};

enum class Bound : std::uint8_t { middle, low, high };

// Efficiency at one load as a function of what each sender sends. Senders start at full speed, fill the
// buffers, are cut and recover, which costs a time. A short message ends before that, one of a millisecond
// pays most of it, a long one is served at the rate at which senders settle. So the lost time is interpolated
// linearly,
//   lost = size x (1 / efficiency - 1)     in bytes,
// and extrapolated beyond the last two sizes; sizes below the first have the efficiency of the first.
class CongestionCurve {
 public:
  CongestionCurve() = default;
  // REQUIRES: ascending sizes in bytes, with their efficiencies.
  explicit CongestionCurve(std::vector<std::pair<double, double>> points) : points_(std::move(points)) {}
  [[nodiscard]] double at(double bytes) const;
  // Least or most of at() and of the points on either side: the loss may set in anywhere between two rows,
  // and anything from one to the other has been seen.
  [[nodiscard]] double end(double bytes, Bound bound) const;

 private:
  std::vector<std::pair<double, double>> points_;
};

// Curves of several loads, interpolated linearly in the logarithm of the load at equal bytes through the
// port: what matters is how long it has been full, not by how many senders. 1 below the first load (below
// half of it where that is above 1/2, so that there is no step), constant above the last. An end of the
// interval is the least or the most of the neighbouring rows in load and in size; it covers seeds and what
// lies between rows. Nine of ten cases that are no rows are in it (tests/packet/calibration_test.cpp).
class CongestionSurface {
 public:
  CongestionSurface() = default;
  // REQUIRES: ascending loads.
  explicit CongestionSurface(std::vector<std::pair<double, CongestionCurve>> curves,
                             Bound bound = Bound::middle)
      : curves_(std::move(curves)), bound_(bound) {}
  // `bytes` of each sender.
  [[nodiscard]] double at(double load, double bytes) const;
  // Up to this load it is 1, whatever the size. REQUIRES: not empty.
  [[nodiscard]] double harmless() const { return curves_.front().first / 2; }
  [[nodiscard]] bool empty() const { return curves_.empty(); }

 private:
  std::vector<std::pair<double, CongestionCurve>> curves_;
  Bound bound_ = Bound::middle;
};

// Surfaces of several queues at which PFC stops senders (packet/pfc_queue.hpp), interpolated linearly in
// the logarithm of the queue; constant below the first and above the last. The ends of the interval are the
// least and the most of the neighbouring queues.
class CongestionStack {
 public:
  CongestionStack() = default;
  // REQUIRES: ascending queues, of which only one may be 0; surfaces of the same first load.
  explicit CongestionStack(std::vector<std::pair<double, CongestionSurface>> surfaces,
                           Bound bound = Bound::middle)
      : surfaces_(std::move(surfaces)), bound_(bound) {}
  // Queue in bytes that wait for a port of the table, `bytes` of each sender.
  [[nodiscard]] double at(double queue, double load, double bytes) const;
  // REQUIRES: not empty.
  [[nodiscard]] double harmless() const { return surfaces_.front().second.harmless(); }
  [[nodiscard]] bool empty() const { return surfaces_.empty(); }

 private:
  std::vector<std::pair<double, CongestionSurface>> surfaces_;
  Bound bound_ = Bound::middle;
};

class CongestionTable {
 public:
  CongestionTable() = default;
  explicit CongestionTable(std::vector<CongestionEntry> entries) : entries_(std::move(entries)) {}
  [[nodiscard]] const std::vector<CongestionEntry>& entries() const { return entries_; }
  // Of a port between switches. Routing without rows: those of "static" and "ecmp" stand for each other.
  // Queue pairs without rows: the nearest number below, else the least.
  [[nodiscard]] CongestionStack between_switches(const std::string& fabric, const std::string& routing,
                                                 int queue_pairs, Bound bound) const;
  // Of the last port, to a NIC, whatever the routing.
  [[nodiscard]] CongestionStack to_nic(const std::string& fabric, int queue_pairs, Bound bound) const;

 private:
  [[nodiscard]] CongestionStack stack(const std::string& fabric, const std::string& routing, int queue_pairs,
                                      Bound bound) const;
  std::vector<CongestionEntry> entries_;
};
}  // namespace topsim::network
