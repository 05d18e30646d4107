// One complete node, made once from its recipe and copied as often as the cluster has nodes.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "topology/build/hardware.hpp"

namespace topsim::topology {

// A compute NIC's way out: what the fabric builder connects.
struct NicPort {
  std::uint32_t nic = 0;  // local device
  int ports = 1;
  BytesPerSecond rate{};  // of a port; 0: the fabric link's
};

struct NodeStamp {
  std::vector<Device> devices;  // node and model filled in; ids are positions
  std::vector<Link> links;      // ends are positions
  std::vector<std::uint32_t> accelerators;
  std::vector<NicPort> nics;  // compute NICs in order
  // Scale-up switches shared by several nodes: the accelerators' links to them are made per domain.
  int domain_nodes = 1;
  int chips = 0;
  Link to_domain_switch{};
  std::uint32_t domain_switch_model = 0;
  std::string default_link;
  bool peer_to_peer = true, nvlink_sharp = false;
  std::vector<int> torus;        // dimensions of the torus within the node
  std::vector<int> torus_block;  // how its accelerators sit in a torus of them
  std::string torus_link;        // catalogue link between them
  std::string chip;              // what an accelerator is called
  int ports = 0;                 // links to other accelerators that it has; 0: not known
};

[[nodiscard]] NodeStamp make_node(const TopologySpec& spec, const Hardware& hardware,
                                  TopologyBuilder& builder);

// Makes `nodes` nodes; returns the first device of each.
[[nodiscard]] std::vector<std::uint32_t> place_nodes(const NodeStamp& stamp, int nodes,
                                                     TopologyBuilder& builder);
}  // namespace topsim::topology
