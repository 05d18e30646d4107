// The configurations and the catalogue of this installation.
#pragma once

#include "sim/config/reader.hpp"
#include "topology/catalogue.hpp"

namespace topsim::scenario {
// Both throw ConfigError when there are none, and say what to set. A catalogue's directories are those that
// have hardware/, in order.
[[nodiscard]] config::Library shipped_library();
[[nodiscard]] std::vector<std::string> catalogue_directories();
[[nodiscard]] topology::Catalogue shipped_catalogue();
}  // namespace topsim::scenario
