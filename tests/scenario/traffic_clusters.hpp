// Boxes of eight H100 under rails, as a user writes them, for tests of traffic patterns.
#pragma once

#include <string>

#include "sim/config/reader.hpp"
#include "sim/scenario/read/read.hpp"
#include "sim/scenario/scenario.hpp"
#include "topology/catalogue.hpp"

namespace topsim::scenario::traffic_clusters {

// `link`, `packet`: JSON of topology.fabric.link and network.packet.
inline Scenario scenario_of(const std::string& nodes, const std::string& link, const std::string& packet) {
  const config::Library library({"configs"});
  return parse_scenario(R"({"topology": {"node": "hgx-h100", "nodes": )" + nodes +
                            R"(, "fabric": {"kind": "rail", "link": )" + link +
                            R"(}}, "workload": {"model": "llama3-8b", "plan": {"tp": 8}, "sequence": 2048},
                        "network": {"model": "packet", "packet": )" +
                            packet + "}}",
                        "test.json", {}, library);
}

inline const topology::Catalogue& catalogue() {
  static const topology::Catalogue loaded = topology::Catalogue::load("configs");
  return loaded;
}
}  // namespace topsim::scenario::traffic_clusters
