// What network plugins make of their NICs. NCCL's own InfiniBand transport says nothing of these.
// Source: AWS OFI NCCL, src/platform-aws.cpp at 45197df and src/nccl_ofi_topo.cpp.
#pragma once

#include <array>
#include <string_view>

namespace topsim::collective::nccl {

struct NetPlugin {
  std::string_view nics;    // model
  double told_us = 0;       // latency that the tuner is told, on top of its own
  double hop_us = 0;        // what a hop takes beyond one of InfiniBand
  bool joins_nics = false;  // those of one accelerator are rails of one port
};

// P5 is told 75 us as P4d is, but sends over the protocol of P5en and later (RDMA writes, not libfabric's
// messages): a hop is taken to be theirs, 35 us.
inline constexpr std::array kNetPlugins = {
    NetPlugin{"efa-v1", 75, 75, false}, NetPlugin{"efa-v2", 75, 35, true}, NetPlugin{"efa-v3", 35, 35, true},
    NetPlugin{"efa-v4-b200", 35, 35, true}, NetPlugin{"efa-v4-b300", 35, 35, true}};

[[nodiscard]] constexpr NetPlugin net_plugin_of(std::string_view nic) {
  for (const NetPlugin& plugin : kNetPlugins)
    if (plugin.nics == nic) return plugin;
  return {};
}
}  // namespace topsim::collective::nccl
