// The rates that NCCL assumes for links, GB/s per direction. Source: NCCL 2.30 src/graph/topo.h.
#pragma once

#include <array>
#include <cmath>
#include <string_view>

#include "sim/base/units.hpp"

namespace topsim::topology::nccl {

inline constexpr float kLocal = 5000.0F;  // inside a GPU, and a NIC without a PCIe slot
inline constexpr float kPcieGen3x16 = 12.0F;

inline constexpr int kSwitchesReduce = 90;  // compute capability from which on NVSwitches do (Hopper)

// One NVLink.
[[nodiscard]] inline float nvlink_bandwidth(int compute_capability) {
  if (compute_capability >= 100) return 40.1F;
  if (compute_capability >= 90) return 20.6F;
  if (compute_capability == 86) return 12.0F;
  if (compute_capability >= 70) return 20.0F;
  if (compute_capability >= 60) return 18.0F;
  return 20.0F;
}

// What one NVLink carries. NVLink 2 carries more than NCCL counts with (configs/hardware/links.json,
// nvlink2).
[[nodiscard]] inline double nvlink_wire(int compute_capability) {
  const bool second = compute_capability >= 70 && compute_capability < 80;
  return second ? 22.91667e9 : static_cast<double>(nvlink_bandwidth(compute_capability)) * 1e9;
}

// Signalling rate of one NVLink, to count links where a topology gives only their sum: NVLink 1 20 GB/s, 2-4
// 25 GB/s, 5 50 GB/s; GA10x parts run 14.0625 GB/s (NVIDIA data sheets).
[[nodiscard]] inline double nvlink_line_rate(int compute_capability) {
  if (compute_capability >= 100) return 50e9;
  if (compute_capability == 86) return 14.0625e9;
  if (compute_capability >= 70 || compute_capability == 0) return 25e9;
  return 20e9;
}

// One Infinity Fabric link between AMD's GPUs, GB/s per direction: what it signals (AMD's data sheets) and
// what RCCL counts with (graph/topo.h, ncclTopoXGMISpeed), where the catalogue has no link of the name.
struct Xgmi {
  std::string_view gcn;  // architecture, as files name it
  double line_rate, usable;
  std::string_view link;
};
inline constexpr std::array kXgmi{Xgmi{"gfx942", 64, 48, "xgmi-mi300x"},
                                  Xgmi{"gfx950", 76.5, 48, "xgmi-mi350x"},
                                  Xgmi{"gfx90a", 50, 36, "xgmi-mi250x"}, Xgmi{"gfx906", 46, 24, ""}};
// Old files number architectures: 906, 908, 910 (gfx90a). A file without one is taken for an MI300's.
[[nodiscard]] inline const Xgmi& xgmi_of(std::string_view gcn) {
  if (gcn.starts_with("gfx")) gcn.remove_prefix(3);
  if (gcn.empty() || gcn.starts_with("94")) return kXgmi[0];
  if (gcn.starts_with("95")) return kXgmi[1];
  return kXgmi[gcn == "90a" || gcn == "910" ? 2 : 3];
}

// Lanes x 15/80 GB/s x 2^(generation - 1): 12 for Gen3 x16, 48 for Gen5 x16. A link's signalling rate falls
// within 7 % of 4/3 of it in every generation, so the nearest power of two tells it.
[[nodiscard]] inline float pcie_bandwidth(BytesPerSecond line_rate) {
  constexpr double kOneLaneGen1 = 15.0 / 80;
  const double exact = line_rate.value() / 1e9 * 0.75;
  const double nearest = kOneLaneGen1 * std::exp2(std::round(std::log2(exact / kOneLaneGen1)));
  return static_cast<float>(std::abs(nearest / exact - 1) < 0.07 ? nearest : exact);
}

// Between two sockets. 0: the family is unknown.
[[nodiscard]] inline float socket_bandwidth(std::string_view family) {
  if (family == "intel-erp") return 40.0F;
  if (family == "intel-spr") return 22.0F;
  if (family == "intel-icx" || family == "intel-skl") return 10.0F;
  if (family.starts_with("intel")) return 6.0F;
  if (family.starts_with("amd")) return 16.0F;
  if (family.starts_with("power")) return 32.0F;
  if (family.starts_with("arm")) return 6.0F;
  return 0;
}

// A GPU's peer traffic through an Intel root complex is cut into 64-byte packets and costs 6/5.
inline constexpr float kIntelPeerOverhead = 6.0F / 5.0F;
}  // namespace topsim::topology::nccl
