// The nodes that an unknown name means by its accelerator: "8xH100", "DGX GB200", "V100-SXM3-32GB".
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "topology/catalogue/impl.hpp"

namespace topsim::topology {

struct NodeMeant {
  std::vector<std::string> ids;  // all have the accelerator; empty where no node has it
  std::string help;              // what to write
  bool more = false;             // the name says more than the accelerator: how many, or whose node
};

// Among nodes with as many accelerators as the name says those that share most of its other words, the
// accelerator's usual one before others. None for a name without an accelerator of the catalogue.
[[nodiscard]] std::optional<NodeMeant> node_meant(Catalogue::Impl& catalogue, std::string_view name);

// The same of a catalogue in layers, as Catalogue::load takes them, for any name: nodes that people call so,
// else those of its accelerator, else the closest.
[[nodiscard]] std::vector<std::string> nodes_meant(std::vector<std::string> config_directories,
                                                   std::string_view name);

// What to write for a card that no node of the catalogue has: a node of like cards without links between
// them, with these in their place. Empty where there is none.
[[nodiscard]] std::string in_place_of_another(Catalogue::Impl& catalogue, std::string_view accelerator);
}  // namespace topsim::topology
