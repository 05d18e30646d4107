// Topologies as text for people and other tools.
#pragma once

#include <string>

#include "topology/topology.hpp"

namespace topsim::topology {
// The native file: what `topology.file` reads. Exporting what was read gives the same bytes.
[[nodiscard]] std::string to_json(const Topology& topology);
// Graphviz, nodes as clusters; parallel links as one edge with their number.
[[nodiscard]] std::string to_dot(const Topology& topology);
// NCCL's topology XML of one node, as NCCL_TOPO_DUMP_FILE writes it; serves NCCL_TOPO_FILE.
[[nodiscard]] std::string to_nccl_xml(const Topology& topology, std::uint32_t node);
}  // namespace topsim::topology
