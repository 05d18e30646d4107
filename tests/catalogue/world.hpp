// The shipped catalogue, loaded once for all tests of this folder.
#pragma once

#include "topology/catalogue.hpp"
#include "topology/catalogue/device_entries.hpp"
#include "topology/catalogue/fabric_recipe.hpp"
#include "topology/catalogue/link_entry.hpp"
#include "topology/catalogue/node_recipe.hpp"
#include "topology/catalogue/price_entry.hpp"

namespace topsim::topology {

inline const Catalogue& shipped() {
  static const Catalogue catalogue = Catalogue::load(TOPSIM_SOURCE_DIR "/configs");
  return catalogue;
}

inline std::vector<std::string> ids_of(std::string_view category) {
  std::vector<std::string> ids;
  for (const CatalogueEntry& entry : shipped().entries()) {
    if (entry.category == category) ids.push_back(entry.id);
  }
  return ids;
}

inline double gigabytes(BytesPerSecond rate) {
  return rate.value() * 1e-9;
}
}  // namespace topsim::topology
