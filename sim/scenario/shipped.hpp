// The configurations and the catalogue of this installation.
#pragma once

#include "sim/config/reader.hpp"
#include "topology/catalogue.hpp"

namespace topsim::scenario {
// They throw ConfigError when there are none, with what to set. A catalogue's directories are those that have
// hardware/, the first first.
[[nodiscard]] config::Library shipped_library();
[[nodiscard]] std::vector<std::string> catalogue_directories();
[[nodiscard]] topology::Catalogue shipped_catalogue();
}  // namespace topsim::scenario
