// What a faster part would gain, found by making the part faster and simulating again: exact, not an
// estimate.
#pragma once

#include <string>
#include <vector>

#include "sim/executor/progress.hpp"
#include "sim/scenario/scenario.hpp"
#include "topology/catalogue.hpp"

namespace topsim::study {

struct WhatIf {
  // "computation", "accelerator memory", "NVLink", "PCIe", "NIC to leaf", "host launch", ...: parts_of()
  // names them.
  std::string part;
  Duration step{};
  double gain = 0;  // share of the step that the faster part saves
  // How NCCL's choices change with the faster part, in words; empty: not at all. It plans by the speeds of
  // links, so a faster one may lead it to a slower choice.
  std::string choices;
  // The part's links by the names that critical paths give them, where NCCL plans with their speeds: those of
  // nodes, and what their NICs are plugged into.
  std::vector<std::string> planned_links;
};

struct WhatIfs {
  Duration step{};            // as it is
  double factor = 1.1;        // how much faster each part is
  std::vector<WhatIf> parts;  // largest gain first
};

// One simulation per part of this scenario, in parallel. When `progress` is told to stop, the parts not yet
// simulated are missing; `step` is 0 if the unchanged scenario was not simulated.
[[nodiscard]] WhatIfs what_if_faster(const scenario::Scenario& scenario, const topology::Catalogue& catalogue,
                                     double factor, executor::Progress* progress = nullptr);
}  // namespace topsim::study
