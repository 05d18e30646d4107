// The parts of resolve() (plan.hpp), one file each: every part fills the fields it is named for and reports
// all mistakes in them. The order in which resolve() calls them matters; what a part reads is set before it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/base/error.hpp"
#include "workloads/framework.hpp"
#include "workloads/plan.hpp"

namespace topsim::workloads {

// Everything wrong with a workload, to be thrown at once. Paths are those below "workload.".
class Mistakes {
 public:
  void add(std::string path, std::string message, std::string help = {});
  void finish() const;  // throws ConfigError where there are any

 private:
  std::vector<Problem> problems_;
};

void check_shape(const WorkloadSpec& workload, std::uint32_t accelerators, Mistakes& mistakes);

void set_schedule(const PlanSpec& spec, Plan& plan, Mistakes& mistakes);
// Layers of every global stage. Reads pp, virtual_stages, schedule.
[[nodiscard]] std::vector<int> divide_layers(const WorkloadSpec& workload, const Plan& plan,
                                             Mistakes& mistakes);
// Replicas, from the accelerators where the plan leaves dp out.
[[nodiscard]] int data_parallel(const WorkloadSpec& workload, std::uint32_t accelerators, Mistakes& mistakes);
void set_batches(const PlanSpec& spec, int layers, Plan& plan, Mistakes& mistakes);
void set_precision(const WorkloadSpec& workload, const Framework& defaults, Plan& plan, Mistakes& mistakes);
// Also checks how context parallelism cuts sequences. Reads tp, cp, task.
void set_sequence_parallel(const WorkloadSpec& workload, const Framework& defaults, Plan& plan,
                           Mistakes& mistakes);
// What messages between stages and of tensor parallelism overlap with.
void set_overlap(const PlanSpec& spec, const Framework& defaults, Plan& plan, Mistakes& mistakes);
// What the backward pass computes again.
void set_recompute(const WorkloadSpec& workload, const Framework& defaults, Plan& plan, Mistakes& mistakes);
void set_stage_times(const StageTimes& given, Plan& plan, Mistakes& mistakes);
// How tokens reach experts, and etp where it is left open. Reads tp, cp, dp, task; before whatever asks
// Plan::sliced_experts.
void set_dispatch(const WorkloadSpec& workload, Plan& plan);
// Which ranks hold which routed experts, and their load. Reads tp, cp, dp, rank_order, sequence_parallel.
void set_experts(const WorkloadSpec& workload, Plan& plan, Mistakes& mistakes);
// What divides `ranks` and the model's experts in the place of the plan's ep and etp: "ep = 4".
[[nodiscard]] std::string dividing_ep(const ModelSpec& model, int ranks, const Plan& plan);
// What data-parallel ranks share, and when they exchange it. Reads dp, cp, pp, the experts and the precision.
void set_data_parallel(const WorkloadSpec& workload, const Framework& defaults, Plan& plan,
                       Mistakes& mistakes);
// torch.nn.DataParallel: divides only the batch. Reads what set_data_parallel() sets.
void set_single_process(const Framework& defaults, Plan& plan, Mistakes& mistakes);
// Ranks that share one set of shards. Reads zero.
[[nodiscard]] int shard_group(const WorkloadSpec& workload, const Framework& defaults, const Plan& plan,
                              Mistakes& mistakes);
void set_offload(const WorkloadSpec& workload, const Framework& defaults, Plan& plan, Mistakes& mistakes);
void set_launches(const WorkloadSpec& workload, const Framework& defaults, Plan& plan, Mistakes& mistakes);
// Parts of a layer that have a CUDA graph of their own. Reads what set_launches() sets.
void set_graph_parts(const WorkloadSpec& workload, const Framework& defaults, Plan& plan, Mistakes& mistakes);
// Reads the precision, sequence_parallel and single_process.
void set_kernels(const WorkloadSpec& workload, const Framework& defaults, Plan& plan, Mistakes& mistakes);
void set_loss(const WorkloadSpec& workload, const Framework& defaults, Plan& plan, Mistakes& mistakes);
void set_adapters(const WorkloadSpec& workload, const Framework& defaults, Plan& plan, Mistakes& mistakes);
void set_packing(const WorkloadSpec& workload, Plan& plan, Mistakes& mistakes);
// Inference has no gradients and no optimiser: called last, it corrects what the other parts set.
void set_inference(const WorkloadSpec& workload, Plan& plan, Mistakes& mistakes);
}  // namespace topsim::workloads
