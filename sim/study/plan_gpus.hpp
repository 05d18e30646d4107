// The same cluster, larger or smaller.
#pragma once

#include "sim/scenario/scenario.hpp"
#include "topology/catalogue.hpp"

namespace topsim::study {
// As many nodes of the scenario's recipe as `accelerators` need, the last one used in part. Throws
// ConfigError for an explicit topology that has fewer.
void use_accelerators(scenario::Scenario& scenario, const topology::Catalogue& catalogue, int accelerators);
}  // namespace topsim::study
