// Rings of a box in which every accelerator has links to every other and no switch stands between: RCCL's
// (MI300X: seven rings over seven links, graph/rome_models.cc) and HCCL's way, all links at work. NCCL's own
// search, made for NVSwitches and DGX-1, leaves a third of them idle.
#pragma once

#include <optional>

#include "sim/collective/nccl/graph.hpp"

namespace topsim::collective::nccl {

// None: not such a box. Inside one box cycles that use every link alike; between boxes one path a NIC, from
// the accelerator that has it.
[[nodiscard]] std::optional<ChannelGraph> mesh_rings(const System& system);
}  // namespace topsim::collective::nccl
