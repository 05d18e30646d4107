#include "sim/scenario/shipped.hpp"

#include "sim/base/error.hpp"
#include "sim/scenario/directories.hpp"

namespace topsim::scenario {

config::Library shipped_library() {
  std::vector<std::string> directories = config_directories();
  if (directories.empty()) {
    throw ConfigError("topsim's configs are not found",
                      "set TOPSIM_CONFIG_PATH to the folder that holds hardware/ and models/");
  }
  return config::Library(std::move(directories));
}

std::vector<std::string> catalogue_directories() {
  const config::Library library = shipped_library();
  std::vector<std::string> layers = catalogue_layers(library.directories());
  if (layers.empty()) layers.push_back(library.directories().front());
  return layers;
}

topology::Catalogue shipped_catalogue() {
  return topology::Catalogue::load(catalogue_directories());
}
}  // namespace topsim::scenario
