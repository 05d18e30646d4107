// The mistakes of a scenario that can be found before anything is simulated: all at once, without those that
// only follow from another.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "sim/base/error.hpp"
#include "sim/scenario/scenario.hpp"
#include "topology/catalogue.hpp"
#include "workloads/plan.hpp"

namespace topsim::scenario {

// What several checks find.
class Mistakes {
 public:
  template <class Check>
  void from(const Check& check) {
    try {
      check();
    } catch (const ConfigError& error) {
      add(error.problems());
    }
  }
  void add(const std::vector<Problem>& more) { problems.insert(problems.end(), more.begin(), more.end()); }
  std::vector<Problem> problems;
};

struct Job {
  std::uint32_t ranks = 0;
  workloads::MachineFacts host;  // without its memory, on which no mistake of a plan depends
};
// The job that the keys alone describe; none if they do not, or if they name something unknown to the
// catalogue.
[[nodiscard]] std::optional<Job> job_of(const topology::TopologySpec& spec,
                                        const topology::Catalogue& catalogue);
// None for a trace, which has no plan. Throws ConfigError.
[[nodiscard]] std::optional<workloads::Plan> checked_plan(const workloads::WorkloadSpec& asked,
                                                          const Job& job);

// Whether the file has the section; what a cluster alone is read for needs none.
[[nodiscard]] bool has_workload(const config::Document& document);

// Mistakes in addition to those of reading, which left `partial`: unknown names of hardware, and a plan that
// does not match the accelerators, where there is one and everything that determines their number was read.
[[nodiscard]] std::vector<Problem> mistakes_beside(const std::vector<Problem>& of_reading,
                                                   const Scenario& partial,
                                                   const topology::Catalogue& catalogue);
}  // namespace topsim::scenario
