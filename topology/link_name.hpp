// What people call a link: the only place that puts its type, lanes and speed into words.
#pragma once

#include <string>

#include "topology/topology.hpp"

namespace topsim::topology {

// "NVLink 4 x18, 450 GB/s", "PCIe Gen5 x16, 64 GB/s": the line rate of all cables of the link together, one
// way. "InfiniBand NDR 400 Gbit/s", "RoCEv2 on 400GbE x2": names of networks give the speed of a cable.
[[nodiscard]] std::string name_with_speed(const Topology& topology, const Link& link);
}  // namespace topsim::topology
