#include "topology/import/native.hpp"

#include <filesystem>

#include "topology/spec_reader.hpp"

namespace topsim::topology {

TopologySpec read_topology_file(const std::string& path) {
  const config::Document document = config::Document::read_file(path);
  auto spec = config::read<TopologySpec>(document);
  spec.directory = std::filesystem::path(path).parent_path().string();
  return spec;
}

}  // namespace topsim::topology
