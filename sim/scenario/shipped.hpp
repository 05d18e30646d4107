// The configurations and the catalogue of this installation.
#pragma once

#include "sim/config/reader.hpp"
#include "topology/catalogue.hpp"

namespace topsim::scenario {
// Both throw ConfigError when there are none, with what to set.
[[nodiscard]] config::Library shipped_library();
[[nodiscard]] topology::Catalogue shipped_catalogue();
}  // namespace topsim::scenario
