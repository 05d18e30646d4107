// What the report repeats of a scenario: its headline, and the figures that findings are checked against.
#pragma once

#include "sim/report/make_result.hpp"
#include "sim/scenario/scenario.hpp"
#include "topology/catalogue.hpp"

namespace topsim::scenario {
// What accelerators are called and which library moves their collectives; neutral words where they differ.
struct AcceleratorWords {
  std::string called = "accelerator", library;
};
[[nodiscard]] AcceleratorWords words_of(const topology::Topology& topology,
                                        const topology::Catalogue& catalogue);

[[nodiscard]] report::ScenarioFacts facts_of(const Scenario& scenario, const topology::Topology& topology,
                                             const topology::Catalogue& catalogue);
}  // namespace topsim::scenario
