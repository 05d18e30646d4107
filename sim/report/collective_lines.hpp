// Collectives as a screen shows them.
#pragma once

#include <cstddef>
#include <string>
#include <tuple>
#include <vector>

#include "sim/report/result.hpp"

namespace topsim::report {

// Calls that look alike on a screen: buckets whose sizes differ by a few bytes are separate rows of a
// result.
struct CollectiveLine {
  std::string name, size, each, bus_bandwidth, algorithm;
  double calls = 0, seconds = 0;  // of a rank per step
  [[nodiscard]] bool reads_as(const CollectiveLine& other) const {
    return std::tie(name, size, each, bus_bandwidth, algorithm) ==
           std::tie(other.name, other.size, other.each, other.bus_bandwidth, other.algorithm);
  }
};

// The longest in sum first, one of each kind before a second of any.
[[nodiscard]] std::vector<CollectiveLine> longest_collectives(const Result& result, std::size_t limit);
}  // namespace topsim::report
