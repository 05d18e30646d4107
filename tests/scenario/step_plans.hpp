// Collectives as messages, for tests: the plan of an all-reduce on a scenario's topology, and how long one
// takes.
#pragma once

#include <string>

#include "sim/collective/collective.hpp"
#include "sim/config/reader.hpp"
#include "sim/scenario/bench/bench.hpp"
#include "sim/scenario/read/read.hpp"
#include "topology/build.hpp"

namespace topsim::scenario::step_plans {

inline const topology::Catalogue& catalogue() {
  static const topology::Catalogue loaded = topology::Catalogue::load("configs");
  return loaded;
}

// `nodes` boxes on a fabric, given as the inside of a JSON object. `form`: of the collectives.
inline Scenario boxes(const std::string& node, int nodes, const std::string& fabric,
                      const std::string& network, const std::string& form, const std::string& algorithm) {
  const config::Library library({"configs"});
  return parse_scenario(R"({"topology": {"node": ")" + node + R"(", "nodes": )" + std::to_string(nodes) +
                            R"(, "fabric": {)" + fabric + R"(}},
            "workload": {"model": "llama3-8b", "plan": {"tp": 8}, "sequence": 2048},
            "network": {"model": ")" +
                            network + R"(", "collectives": ")" + form + R"(", "nccl": {"algorithm": ")" +
                            algorithm + R"("}}})",
                        "test.json", {}, library);
}

struct Planned {
  topology::Topology topology;
  collective::StepPlan plan;
};
inline Planned planned_all_reduce(const Scenario& scenario, Bytes bytes,
                                  const topology::BuildOptions& build = {}) {
  Planned planned{topology::build(scenario.topology, catalogue(), build), {}};
  const topology::Router router(planned.topology, 1);
  const collective::NcclModel nccl(router, scenario.network.nccl);
  planned.plan = nccl.steps(collective::CollectiveKind::all_reduce, bytes, planned.topology.accelerators());
  return planned;
}

inline double all_reduce_microseconds(const Scenario& scenario, Bytes bytes) {
  return microseconds(bench(scenario, catalogue(), collective::CollectiveKind::all_reduce, {bytes, bytes, 2})
                          .rows.at(0)
                          .time);
}
}  // namespace topsim::scenario::step_plans
