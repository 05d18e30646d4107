#include "sim/fold/fold.hpp"

#include <algorithm>

#include "sim/base/parallel.hpp"
#include "sim/fold/assemble.hpp"
#include "sim/fold/groups.hpp"
#include "sim/fold/incidence.hpp"

namespace topsim::fold {

System fold(const program::Program& program, const topology::Router& router,
            const collective::NcclModel& nccl, const FoldOptions& options) {
  Shapes shapes = collect_shapes(program);
  const std::vector<Group> groups = enumerate_groups(program, shapes);
  const GroupLowering lowering(program, router, nccl);
  const RankColours ranks(program, router.topology(), options);
  // A device outside all nodes has no place in a cell.
  const auto in_a_node = [&](DeviceId device) {
    return router.topology().device(device).node != DeviceId::kNone;
  };
  const auto accelerators = router.topology().accelerators().first(program.ranks);
  const Detours detours(program, options.detours);
  const bool by_cells = options.fold && options.by_cells && options.detours.empty() &&
                        std::all_of(accelerators.begin(), accelerators.end(), in_a_node);
  const Alike alike = by_cells ? Alike(program, router, lowering, groups, ranks.all(), options.marked_links)
                               : Alike(program, router, groups.size());
  Incidence incidence(program, router.topology(), options, groups, ranks, alike);
  if (options.all_links) incidence.add_all_links();
  const std::vector<Alike::Class>& classes = alike.groups();
  if (alike.trivial()) {
    // Lowering is costly and independent for each group: it runs in parallel blocks, and results are merged
    // in order, so that any number of threads gives the same graph.
    constexpr std::size_t kBlock = 2048;
    std::vector<collective::LoweredCalls> block(std::min(kBlock, classes.size()));
    std::vector<std::vector<Detours::Other>> others(block.size());
    for (std::size_t begin = 0; begin < classes.size(); begin += kBlock) {
      if (options.poll) options.poll();
      const std::size_t end = std::min(begin + kBlock, classes.size());
      parallel::for_each(end - begin, [&](std::size_t i) {
        block[i] = lowering.lower(groups[begin + i]);
        others[i] = detours.of(groups[begin + i], block[i]);
      });
      for (std::size_t g = begin; g < end; ++g) {
        incidence.add(static_cast<std::uint32_t>(g), block[g - begin]);
        incidence.add(static_cast<std::uint32_t>(g), others[g - begin]);
      }
    }
  } else {
    std::vector<Side> sides;
    for (std::uint32_t c = 0; c < classes.size(); ++c) {
      alike.sides(c, sides);
      incidence.add(c, sides);
    }
  }
  System system = assemble(program, router.topology(), shapes, groups, ranks, lowering, detours, incidence,
                           incidence.graph().classes(options.fold), options);
  system.folded = options.fold;
  system.refined = static_cast<std::uint32_t>(incidence.graph().size());
  return system;
}
}  // namespace topsim::fold
