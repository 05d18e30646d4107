// How kinds of fabric are written, in the catalogue as in scenarios; codec() is found by the configuration
// reader.
#pragma once

#include "sim/config/object.hpp"
#include "topology/fabric_kind.hpp"

namespace topsim::topology {
config::CodecPtr<FabricKind> codec(config::Type<FabricKind>);
// Those alone that can be built between nodes, which a recipe may be of.
[[nodiscard]] config::CodecPtr<FabricKind> kinds_of_recipes();
}  // namespace topsim::topology
