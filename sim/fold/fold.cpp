#include "sim/fold/fold.hpp"

#include <oneapi/tbb/parallel_for.h>

#include <algorithm>

#include "sim/fold/assemble.hpp"
#include "sim/fold/groups.hpp"
#include "sim/fold/incidence.hpp"

namespace topsim::fold {

System fold(const program::Program& program, const topology::Router& router,
            const collective::NcclModel& nccl, const FoldOptions& options) {
  Shapes shapes = collect_shapes(program);
  const std::vector<Group> groups = enumerate_groups(program, shapes);
  const GroupLowering lowering(program, router, nccl);
  Incidence incidence(program, router.topology(), options, groups);
  if (options.all_links) incidence.add_all_links();
  // Lowering is the costly part and independent a group: parallel in blocks, merged in order, so any thread
  // count gives the same graph.
  constexpr std::size_t kBlock = 2048;
  std::vector<collective::LoweredCalls> block(std::min(kBlock, groups.size()));
  for (std::size_t begin = 0; begin < groups.size(); begin += kBlock) {
    const std::size_t end = std::min(begin + kBlock, groups.size());
    oneapi::tbb::parallel_for(begin, end,
                              [&](std::size_t g) { block[g - begin] = lowering.lower(groups[g]); });
    for (std::size_t g = begin; g < end; ++g) incidence.add(static_cast<std::uint32_t>(g), block[g - begin]);
  }
  System system = assemble(program, router.topology(), shapes, groups, lowering, incidence,
                           incidence.graph().classes(options.fold));
  system.folded = options.fold;
  return system;
}
}  // namespace topsim::fold
