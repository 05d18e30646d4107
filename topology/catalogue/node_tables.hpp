// The nodes section of configs/hardware/nodes.json as it is written: a NodeRecipe before its PCIe tree has
// taken over the tree's common links.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "topology/catalogue/hardware_file.hpp"
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
  bool sound = false;  // was read without a problem
};

struct NodesFile : HardwareFile {
  std::map<std::string, RawNode> nodes;
};

const config::Object<NodesFile>& table(config::Type<NodesFile>);
}  // namespace topsim::topology
