// From the classes of items to the System that is run: one representative per class, with multiplicities.
#pragma once

#include <vector>

#include "sim/fold/incidence.hpp"

namespace topsim::fold {

// `classes`: of every item of the incidence's graph. With all_links, links are numbered as in the topology,
// used or not.
[[nodiscard]] System assemble(const program::Program& program, const topology::Topology& topology,
                              Shapes shapes, const std::vector<Group>& groups, const RankColours& ranks,
                              const GroupLowering& lowering, const Detours& detours,
                              const Incidence& incidence, const std::vector<std::uint32_t>& classes,
                              const FoldOptions& options);
}  // namespace topsim::fold
