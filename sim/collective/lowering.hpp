// What each algorithm puts on the wire, per byte of the collective. One function per algorithm; each adds its
// usage for the channels that the choice opens. The formulas are at the functions' definitions.
#pragma once

#include "sim/collective/collective.hpp"
#include "sim/collective/placement.hpp"
#include "sim/collective/usage.hpp"

namespace topsim::collective {

// Rings over the channels of every box, joined box to box through the NICs the channels name.
void lower_ring(CollectiveKind kind, const Placement& placement, int channels, UsageBuilder& usage);
// A double binary tree over the boxes, a chain inside each.
void lower_tree(const Placement& placement, int channels, UsageBuilder& usage);
// Reduction in the NVSwitches; between boxes a double binary tree per head, or the fabric's switches.
void lower_nvls(CollectiveKind kind, const Placement& placement, UsageBuilder& usage);
void lower_nvls_tree(const Placement& placement, UsageBuilder& usage);
void lower_nvls_sharp(const Placement& placement, UsageBuilder& usage);
// All GPUs send to the heads, the heads to the fabric's switches.
void lower_collnet_direct(const Placement& placement, UsageBuilder& usage);
// Parallel aggregated trees: every rank sends to the rank 1, 2, 4, ... further on.
void lower_pat(const Placement& placement, int channels, UsageBuilder& usage);
// Every rank to every other, or each to the next. Whole or in steps, a message to the rank so much further on
// goes by this connection: both forms take the same paths.
[[nodiscard]] constexpr std::uint32_t direct_connection(std::uint32_t further) {
  return further % 64;
}
void lower_all_to_all(const Placement& placement, bool pxn, UsageBuilder& usage);
// The part of it between boxes, in as many routes as nodes where these stand alike on the fabric. False: they
// do not, and nothing was added.
[[nodiscard]] bool lower_alike(const Placement& placement, bool pxn, UsageBuilder& usage);
// Inside one box where all are linked with all: a reduce-scatter and a gather, each direct.
void lower_mesh(CollectiveKind kind, const Placement& placement, UsageBuilder& usage);
void lower_neighbours(std::span<const DeviceId> gpus, bool pxn, UsageBuilder& usage);
}  // namespace topsim::collective
