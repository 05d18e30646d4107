// The configurations and the catalogue of this installation.
#pragma once

#include "sim/config/reader.hpp"
#include "topology/catalogue.hpp"

namespace topsim::scenario {
// They throw ConfigError when there are none, with what to set. The directory is
// those that have hardware/, separated by colons.
[[nodiscard]] config::Library shipped_library();
[[nodiscard]] std::string catalogue_directory();
[[nodiscard]] topology::Catalogue shipped_catalogue();
}  // namespace topsim::scenario
