// A fabric as data: `topology.fabric` can be set to all of it by name, or to parts of it by key.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sim/base/units.hpp"
#include "topology/topology.hpp"

namespace topsim::topology {

// Tiers count from the nodes: tiers[0] are the leaves.
struct FabricTier {
  std::string name;             // "leaf", "ToR", "RTSW"
  std::string switch_id;        // catalogue id
  double oversubscription = 1;  // capacity towards the nodes over capacity upwards; top tier: 1
  // Leaves of a scalable unit (fat-tree: over which a node's NICs are spread); 0: as needed.
  int switches_per_unit = 0;
  Metres length{};  // of the cables from below
};

// configs/hardware/fabrics.json
struct FabricRecipe {
  std::string id, name, source;
  FabricKind kind = FabricKind::none;
  std::string node;    // recipe of its nodes; may be replaced
  int nodes = 0;       // as published; 0: any
  std::string link;    // node to leaf
  std::string uplink;  // between switches; empty: as `link`
  std::optional<Routing> routing;
  int unit_nodes = 0;       // nodes of a scalable unit, segment or pod: they share one set of leaves
  int pod_nodes = 0;        // nodes under one set of spines in a three-tier fabric
  int planes = 1;           // independent copies of the fabric; a NIC has ports on each
  int leaves_per_rail = 1;  // dual ToR: 2; a NIC has one port on each
  std::vector<FabricTier> tiers;
  std::vector<int> dims;  // torus, mesh: of accelerators
  // dragonfly: `groups` groups of `routers` all-to-all connected switches, each with `terminals` nodes'
  // ports, `global_links` cables to other groups and `local_links` to every other one of its group
  int groups = 0, routers = 0, terminals = 0, global_links = 0, local_links = 1;
  // The publication's number of switches for a number of nodes; 0 where it does not say.
  struct Size {
    int nodes = 0, leaf = 0, spine = 0, core = 0;
  };
  std::vector<Size> published;
  std::vector<std::string> notes;  // what else the publication says
};
}  // namespace topsim::topology
