#include "topology/import/native.hpp"

#include <filesystem>

#include "topology/spec_reader.hpp"

namespace topsim::topology {

TopologySpec read_topology(const config::Document& document) {
  auto spec = config::read<TopologySpec>(document);
  spec.directory = std::filesystem::path(document.name()).parent_path().string();
  return spec;
}

}  // namespace topsim::topology
