// Which chip of a torus each rank of a plan runs on. As JAX maps a logical mesh to a physical one
// (jax/_src/mesh_utils.py): an axis of the plan, the one with most traffic first, takes whole axes of the
// torus whose product is its size, preferably several and a square, so that its rings close and use all
// links. Neighbours do not depend on the order in which the dimensions are named.
#pragma once

#include <optional>
#include <vector>

#include "sim/report/result.hpp"
#include "sim/scenario/scenario.hpp"
#include "topology/topology.hpp"
#include "workloads/plan.hpp"

namespace topsim::scenario {
// The scenario gives neither an order of ranks nor a placement of its own.
[[nodiscard]] bool leaves_ranks_open(const Scenario& scenario);
// None where the fabric is not a torus of all accelerators. REQUIRES: the topology has its ranks by
// coordinate.
[[nodiscard]] std::optional<std::vector<DeviceId>> torus_order(const topology::Topology& topology,
                                                               const workloads::Plan& plan);
// Names the axes of the plan that get only parts of axes of the torus.
[[nodiscard]] std::optional<report::Finding> parts_of_axes(const topology::Topology& topology,
                                                           const workloads::Plan& plan);
}  // namespace topsim::scenario
