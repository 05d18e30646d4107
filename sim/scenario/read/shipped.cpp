#include "sim/scenario/read/shipped.hpp"

#include <filesystem>

#include "sim/base/error.hpp"
#include "sim/scenario/read/directories.hpp"

namespace topsim::scenario {

config::Library shipped_library() {
  std::vector<std::string> directories = config_directories();
  std::error_code error;
  for (const std::string& directory : directories)
    if (!std::filesystem::is_directory(directory, error))
      throw ConfigError("TOPSIM_CONFIG_PATH: there is no folder " + directory,
                        "set it to the folder that holds hardware/ and models/, or unset it");
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
