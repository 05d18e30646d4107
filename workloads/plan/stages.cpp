// Which layers a pipeline stage holds.
#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "workloads/plan/parts.hpp"

namespace topsim::workloads {

namespace {
// Layers of each stage where the scenario has no list. What does not divide goes to the middle: the ends,
// with embedding and LM head, have fewer, the last one first. 126 layers on 64 stages are 1, 62 times 2, 1:
// what Megatron's account_for_embedding_in_pipeline_split and account_for_loss_in_pipeline_split make of
// them. A module of multi-token prediction with its own pass through the head stands for two layers of the
// last stage: 61 layers and one on 16, 8 and 4 stages are 15 x 4 and 1, 7 x 8 and 5, 3 x 16 and 13, as
// Megatron-Bridge lays DeepSeek-V3 out (recipes/deepseek/deepseek_v3.py).
std::vector<int> spread(int layers, int stages, int modules) {
  if (modules > 0) {
    std::vector<int> each = spread(layers + 2 * modules, stages, 0);
    each.back() -= 2 * modules;
    if (each.back() >= 0) return each;
  }
  std::vector<int> each(static_cast<std::size_t>(stages), layers / stages);
  const int rest = layers % stages, first = (stages - rest) / 2;
  for (int i = 0; i < rest; ++i) ++each[static_cast<std::size_t>(first + i)];
  return each;
}
}  // namespace

std::vector<int> divide_layers(const WorkloadSpec& workload, const Plan& plan, Mistakes& mistakes) {
  const std::vector<int>& given = workload.plan.stage_layers;
  const int virtual_stages = plan.virtual_stages;
  const int layers = workload.model.layers;
  const int stages = plan.pp * virtual_stages;
  if (given.empty()) {
    if (stages <= layers + 2)
      return spread(layers, stages, plan.inference() ? 0 : predictions_of(workload.model));
    const std::string what = virtual_stages > 1
                                 ? fmt::format("pp x virtual_stages = {} x {}", plan.pp, virtual_stages)
                                 : fmt::format("pp = {}", plan.pp);
    mistakes.add(
        plan.pp <= layers + 2 ? "plan.virtual_stages" : "plan.pp",
        fmt::format("{} stages ({}) for {} layers", stages, what, layers),
        fmt::format("at most {}: a layer each, and two that hold embedding and head alone", layers + 2));
    return {};
  }
  std::vector<int> result = given;
  if (static_cast<int>(result.size()) == plan.pp && virtual_stages > 1) {
    result.assign(static_cast<std::size_t>(stages), 0);
    for (int stage = 0; stage < plan.pp; ++stage) {
      const int here = given[static_cast<std::size_t>(stage)];
      if (here % virtual_stages != 0)
        mistakes.add("plan.stage_layers",
                     fmt::format("stage {} has {} layers, which do not divide into {} virtual stages", stage,
                                 here, virtual_stages),
                     "list every virtual stage in model order");
      for (int chunk = 0; chunk < virtual_stages; ++chunk)
        result[static_cast<std::size_t>(plan.global_stage(stage, chunk))] = here / virtual_stages;
    }
  }
  if (static_cast<int>(result.size()) != stages) {
    mistakes.add("plan.stage_layers", fmt::format("{} entries for {} stages", given.size(), stages),
                 virtual_stages > 1 ? "one entry for each stage, or for each virtual stage in model order"
                                    : "one entry for each stage");
    return {};
  }
  if (std::any_of(result.begin(), result.end(), [](int n) { return n < 0; }))
    mistakes.add("plan.stage_layers", "a stage cannot have fewer than 0 layers");
  const std::int64_t sum = std::accumulate(result.begin(), result.end(), std::int64_t{0});
  if (sum != layers)
    mistakes.add(
        "plan.stage_layers", fmt::format("the entries sum to {}, the model has {} layers", sum, layers),
        sum > layers
            ? fmt::format("take {} out of the entries, or give the model {} layers", sum - layers, sum)
            : fmt::format("put {} more into the entries, or give the model {} layers", layers - sum, sum));
  return result;
}
}  // namespace topsim::workloads
