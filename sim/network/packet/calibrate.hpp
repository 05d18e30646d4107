// The experiments behind configs/calibration/congestion.json: many flows through few ports, packet by packet,
// compared with the time that the fluid model needs.
#pragma once

#include <vector>

#include "sim/network/congestion_table.hpp"
#include "sim/network/packet/spec.hpp"

namespace topsim::network::packet {

struct CalibrationOptions {
  int seeds = 5;
  bool quick = false;  // a few entries only, for a test
};

inline constexpr BytesPerSecond kCalibratedRate{50e9};  // of every port

// 500 ns a link, the packet model's default marking and congestion control, and switches that buffer what an
// entry says. Entries in the order of the committed table.
[[nodiscard]] std::vector<CongestionEntry> calibrate(const CalibrationOptions& options);

// Measures one entry again; reads all of it but its efficiencies.
[[nodiscard]] CongestionEntry measure(CongestionEntry entry, const CalibrationOptions& options);
}  // namespace topsim::network::packet
