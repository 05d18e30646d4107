// How the ports of the nodes reach the leaves of a folded Clos fabric.
//
// Nodes come in groups that share leaves. A group has `rails` x `leaves_per_rail` leaves; leaf w of a rail
// belongs to plane w mod `planes`. A NIC has cables to every leaf of its rail: one port each where it has
// enough ports, else its port is split (800 Gbit/s into 8 x 100). Where every accelerator owns several NICs
// (Gaudi: three ports a card), NIC p of each goes to leaf p instead.
#pragma once

#include <vector>

#include "topology/build/fabric.hpp"

namespace topsim::topology {

// Cables from one NIC to one leaf, the same on every node.
struct NodePort {
  std::size_t nic = 0;
  int rail = 0, leaf = 0;  // the leaf's number in its rail
  int cables = 1;
  BytesPerSecond rate{};  // most of a cable; 0: the link's
};

struct Attachment {
  int planes = 1, leaves_per_rail = 1, rails = 1;
  int groups = 1, nodes_per_group = 1;
  int ports_per_node = 1;   // on one leaf
  double uplink_speed = 1;  // cables between switches are that many times as fast as the nodes'
  std::vector<NodePort> ports;
  [[nodiscard]] int leaves() const { return groups * rails * leaves_per_rail; }
  [[nodiscard]] int leaves_in_plane() const { return leaves_per_rail / planes; }  // of a rail
};

// Mistakes are ConfigErrors at the key that causes them.
[[nodiscard]] Attachment attach_nodes(const FabricInput& in);
}  // namespace topsim::topology
