// The nodes section of configs/hardware/nodes.json as it is written: a NodeRecipe before its PCIe tree has
// taken over the tree's common links.
#pragma once

#include <string>
#include <vector>

#include "sim/config/object.hpp"
#include "topology/catalogue/node_recipe.hpp"

namespace topsim::topology {

struct RawPcie {
  std::string link;    // of every device and uplink that names none
  std::string uplink;  // of every switch that names none; empty: link
  std::vector<PcieBranch> tree;
};

struct RawNode : NodeRecipe {
  RawPcie raw_pcie;
  std::vector<std::string> notes;
};

const config::Object<RawNode>& table(config::Type<RawNode>);
}  // namespace topsim::topology
