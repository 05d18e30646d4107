// Cables, of which a topology has each direction as a link.
#pragma once

#include <optional>

#include "topology/topology.hpp"

namespace topsim::topology {

// The k-th link from a to b and the k-th from b to a are one cable. None where it has only this direction.
[[nodiscard]] std::optional<LinkId> other_direction(const Topology& topology, LinkId id);
}  // namespace topsim::topology
