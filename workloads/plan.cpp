#include "workloads/plan.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "sim/base/error.hpp"
#include "workloads/plan/parts.hpp"

namespace topsim::workloads {
namespace {

void check_rank_order(const PlanSpec& spec, Plan& plan, Mistakes& mistakes) {
  const std::vector<std::string> names{"tp", "cp", "ep", "dp", "pp"};
  plan.rank_order = spec.rank_order.empty() ? names : spec.rank_order;
  // A dimension of one rank may be left out: its place has no effect.
  const std::vector<int> sizes{plan.tp, plan.cp, plan.ep, plan.dp, plan.pp};
  for (std::size_t i = 0; i < names.size(); ++i) {
    const bool named =
        std::find(plan.rank_order.begin(), plan.rank_order.end(), names[i]) != plan.rank_order.end();
    if (!named && sizes[i] == 1) plan.rank_order.push_back(names[i]);
  }
  std::vector<std::string> sorted = plan.rank_order, expected = names;
  std::sort(sorted.begin(), sorted.end());
  std::sort(expected.begin(), expected.end());
  if (sorted != expected)
    mistakes.add("plan.rank_order",
                 fmt::format("[{}] does not name each dimension of more than one rank once",
                             fmt::join(spec.rank_order, ", ")),
                 "the default is [tp, cp, ep, dp, pp], fastest first");
}
}  // namespace

int Plan::global_stage(int stage, int chunk) const {
  if (chunk == 0) return stage;
  switch (traits(schedule).second_chunk) {
    case SecondChunk::none:
    case SecondChunk::next:
      return chunk * pp + stage;
    case SecondChunk::on_return:
      return 2 * pp - 1 - stage;
    case SecondChunk::mirrored:
      return pp - 1 - stage;
  }
  throw InternalError("unknown second chunk");
}

Plan resolve(const WorkloadSpec& given, std::uint32_t accelerators) {
  Mistakes mistakes;
  const Framework& defaults = framework_of(given);
  const WorkloadSpec workload = scripted(given);
  check_shape(workload, accelerators, mistakes);

  const PlanSpec& spec = workload.plan;
  Plan plan;
  plan.tp = spec.tp, plan.pp = spec.pp, plan.cp = spec.cp, plan.ep = spec.ep.value_or(1);
  plan.etp = spec.etp.value_or(plan.tp);
  plan.virtual_stages = spec.virtual_stages;
  plan.micro_batch = spec.micro_batch.value_or(1);
  plan.cp_kind = spec.cp_kind;
  plan.sequence = workload.sequence.value_or(workload.model.sequence);
  if (plan.sequence < 1)
    mistakes.add("sequence", "a sequence length is needed", "for example \"sequence\": 8192");
  plan.task = workload.task;
  plan.queries = plan.task == Task::decode ? 1 : plan.sequence;
  set_schedule(spec, plan, mistakes);
  plan.stage_layers = divide_layers(workload, plan, mistakes);
  plan.dp = data_parallel(workload, accelerators, mistakes);
  // Further mistakes would be stated with numbers that overflow.
  if (std::int64_t{plan.tp} * plan.cp * plan.pp * plan.dp > std::numeric_limits<int>::max())
    mistakes.finish();
  set_batches(spec, workload.model.layers, plan, mistakes);
  set_dispatch(workload, plan);
  check_rank_order(spec, plan, mistakes);
  set_stage_times(workload.compute.stage_times, plan, mistakes);
  set_sequence_parallel(workload, defaults, plan, mistakes);
  set_recompute(workload, defaults, plan, mistakes);
  set_overlap(spec, defaults, plan, mistakes);
  set_precision(workload, defaults, plan, mistakes);
  set_experts(workload, plan, mistakes);
  set_data_parallel(workload, defaults, plan, mistakes);
  set_offload(workload, defaults, plan, mistakes);
  set_single_process(defaults, plan, mistakes);
  set_launches(workload, defaults, plan, mistakes);
  set_graph_parts(workload, defaults, plan, mistakes);
  set_kernels(workload, defaults, plan, mistakes);
  set_loss(workload, defaults, plan, mistakes);
  set_adapters(workload, defaults, plan, mistakes);
  set_packing(workload, plan, mistakes);
  set_inference(workload, plan, mistakes);
  mistakes.finish();
  return plan;
}
}  // namespace topsim::workloads
