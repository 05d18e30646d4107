// What no tool tells of a host: those of servers of its family of CPUs.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>
#include <string_view>

namespace topsim::topology {

struct UsualHost {
  std::string_view family, socket_link;  // as HostRecipe has them
  int socket_links;                      // between each pair of sockets
  double memory_gigabytes;               // a second and socket
};

// As the recipes of configs/hardware/nodes.json have them.
inline constexpr std::array kUsualHosts{
    UsualHost{"intel-spr", "upi-spr", 4, 307.2}, UsualHost{"intel-erp", "upi-erp", 4, 358.4},
    UsualHost{"intel-icx", "upi-icx", 3, 204.8}, UsualHost{"intel-skl", "upi-skl", 3, 128},
    UsualHost{"intel-bdw", "qpi-bdw", 2, 76.8},  UsualHost{"amd", "xgmi2", 3, 204.8},
    UsualHost{"arm", "clink-grace", 1, 512}};

// Of an unknown family, the first.
[[nodiscard]] inline const UsualHost& usual_host(std::string_view family) {
  const auto found = std::find_if(kUsualHosts.begin(), kUsualHosts.end(),
                                  [&](const UsualHost& each) { return each.family == family; });
  return found != kUsualHosts.end() ? *found : kUsualHosts.front();
}

[[nodiscard]] inline std::string memory_finding(const UsualHost& host) {
  return fmt::format("host memory is not told: {:g} GB/s a socket is assumed", host.memory_gigabytes);
}
}  // namespace topsim::topology
