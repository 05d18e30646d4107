// Two nodes without a switch: NIC i of one is connected to NIC i of the other.
#include <fmt/format.h>

#include "sim/base/error.hpp"
#include "topology/build/fabric.hpp"

namespace topsim::topology {

void build_direct(const FabricInput& in, TopologyBuilder& builder) {
  if (in.nodes != 2)
    throw ConfigError({Problem{{},
                               "topology.fabric.kind",
                               fmt::format("direct cables join two nodes, not {}", in.nodes),
                               {},
                               "use kind rail or fat-tree",
                               {}}});
  for (std::size_t nic = 0; nic < in.stamp.nics.size(); ++nic) {
    const NicPort& port = in.stamp.nics[nic];
    const LinkFigures cable = port.rate.value() > 0 ? Hardware::limited(in.link, port.rate) : in.link;
    Link link = bundle(cable, in.link_type, port.ports, true);
    link.from = in.nic_device(0, nic);
    link.to = in.nic_device(1, nic);
    link.length = in.length_said(0);
    link.latency = fibre(in.spec.cable_length(0));
    builder.cable(link);
  }
}

}  // namespace topsim::topology
