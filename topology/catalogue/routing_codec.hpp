// How ways of routing are written, in the catalogue as in scenarios; codec() is found by the configuration
// reader.
#pragma once

#include "sim/config/object.hpp"
#include "topology/topology.hpp"

namespace topsim::topology {
config::CodecPtr<Routing> codec(config::Type<Routing>);
}  // namespace topsim::topology
