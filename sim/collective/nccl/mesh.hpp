// Rings of a box in which every accelerator has links to every other, without a switch. RCCL (MI300X: seven
// rings over seven links, graph/rome_models.cc) and HCCL use all links. NCCL's own search, made for
// NVSwitches and DGX-1, leaves a third of them idle.
#pragma once

#include <optional>

#include "sim/collective/nccl/graph.hpp"

namespace topsim::collective::nccl {

// None: not such a box. Inside one box: cycles that use all links equally. Between boxes: one path per NIC,
// from the accelerator that has it.
[[nodiscard]] std::optional<ChannelGraph> mesh_rings(const System& system);
}  // namespace topsim::collective::nccl
