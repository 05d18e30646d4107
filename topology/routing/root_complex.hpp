// What passes a root complex from one accelerator to another may be cut into packets of c bytes
// (configs/hardware/cpus.json), on each of which the header weighs more: on the links behind it a byte takes
// (c + h) / c over (m + h) / m of what it takes in the link's own packets of m = 256 bytes with h = 26 of
// header (configs/hardware/links.json); with c = 64, as Intel's, 1.277.
#pragma once

#include "sim/base/units.hpp"

namespace topsim::topology {

// `packet` as ModelFacts::peer_packet.
[[nodiscard]] constexpr double peer_overhead(Bytes packet) {
  constexpr double kWhole = 256, kHeader = 26;
  const auto cut = static_cast<double>(packet.value());
  return cut > 0 ? (1 + kHeader / cut) / (1 + kHeader / kWhole) : 1;
}
}  // namespace topsim::topology
