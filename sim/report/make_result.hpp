// Outcome -> Result: names replace ids, rates integrals, means sums.
#pragma once

#include <span>

#include "sim/network/factory.hpp"
#include "sim/report/result.hpp"
#include "topology/topology.hpp"

namespace topsim::report {

// The parts of the scenario that the report repeats or checks its findings against.
struct ScenarioFacts {
  std::string name, headline;
  std::string called = "accelerator", library;  // of the accelerators, as in Result
  std::string scenario;                         // JSON text, echoed
  // Of the scenario's workload, as the run took it (scenario/run/left_open.hpp).
  std::string left_open = "{}";
  std::string network_model{network::name_of(network::kDefaultModel)};
  std::uint64_t seed = 0;
  bool trace = false;                    // replayed, not computed from a model
  bool stage_times = false;              // given, not computed
  bool equal_bubble_known = false;       // a pipeline's bubble has the closed form of 1F1B
  int compute_units = 0, sm_margin = 0;  // of one accelerator; workload.compute.sm_margin
  std::uint32_t pipeline_stages = 1, virtual_stages = 1, micro_batches = 1;
  // What the scenario leaves open and this run assumed; the path is empty where no one setting says it.
  struct Assumption {
    std::string phrase, path{};
  };
  std::vector<Assumption> assumed;
  // Left open, and reported where its communication is exposed: {assumption, share of the step}.
  struct Open {
    std::string phrase, path;  // of the setting
    executor::Reason reason;
    double from;                 // share of the step
    bool more_launches = false;  // is what the other choice would cost
  };
  std::vector<Open> open;
  bool inference = false;             // prefill or decode
  bool takes_virtual_stages = false;  // the plan's schedule
};

// REQUIRES: all four are of the same run. Rank r is on accelerators()[r].
[[nodiscard]] Result make_result(const ScenarioFacts& facts, const topology::Topology& topology,
                                 const program::Program& program, Memory memory,
                                 const executor::Outcome& outcome);
}  // namespace topsim::report
