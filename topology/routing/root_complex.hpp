// What passes a root complex from one accelerator to another.
//
// Intel's cut it into packets of 64 bytes, on each of which the header weighs more: on the links behind it a
// byte takes (64 + h) / 64 over (m + h) / m of what it takes in the link's own packets of m = 256 bytes with
// h = 26 of header (configs/hardware/links.json), 1.277. NCCL counts 6/5 (src/graph/topo.h,
// INTEL_P2P_OVERHEAD); of two RTX 4090 with peer-to-peer 25 GB/s on AMD's hosts are 20 on Xeon Gold 6430 and
// 6530 (tinygrad/open-gpu-kernel-modules issue 26). AMD's carry what a slot does, one pair at a time: 57.2
// GB/s at Gen5 x16 on an EPYC 9124 (voipmonitor/rtx6kpro, hardware/epyc9124-direct-attach.md), 50 both ways
// at Gen4 x16 on an EPYC 7302 (NVIDIA/nccl-tests issue 74). Of Arm's and Power's nothing is known.
#pragma once

#include <string_view>

namespace topsim::topology {

// `family` as ModelFacts::cpu_family.
[[nodiscard]] constexpr double peer_overhead(std::string_view family) {
  constexpr double kCut = 64, kWhole = 256, kHeader = 26;
  return family.starts_with("intel") ? (1 + kHeader / kCut) / (1 + kHeader / kWhole) : 1;
}
}  // namespace topsim::topology
