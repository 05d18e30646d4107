// Pictures of a topology: a text tree for terminals and an SVG for everything else.
#pragma once

#include <string>

#include "topology/topology.hpp"

namespace topsim::topology {
// Equal nodes and switches once, with their number; connections with their speeds. `ascii`: no box drawing.
// Lines longer than `columns` (0: any) continue in the next one.
[[nodiscard]] std::string to_tree(const Topology& topology, bool ascii = false, std::size_t columns = 0);

struct SvgOptions {
  std::uint32_t most_nodes = 8;      // more are folded into one of each kind
  std::uint32_t most_switches = 32;  // of a tier
};
// Columns CPU, PCIe, GPU, NVSwitch, NIC, leaf, spine, core; line width by speed, figures on hover; follows
// the reader's light or dark setting. Every line carries data-link (the number of the link one way).
[[nodiscard]] std::string to_svg(const Topology& topology, const SvgOptions& options = {});
}  // namespace topsim::topology
