// Which ranks share shards, and what is kept in host memory: both depend on the size of a node.
#include <fmt/format.h>

#include <algorithm>

#include "workloads/plan/parts.hpp"
#include "workloads/step/layout.hpp"

namespace topsim::workloads {
namespace {

// How many ranks of rank 0's data-parallel group, itself included, are in its node.
int copies_in_a_node(const Plan& plan, int accelerators) {
  const Layout layout(plan);
  int count = 0;
  for (int index = 0; index < plan.dp * plan.cp; ++index) {
    Coordinates at;
    at.dp = index / plan.cp, at.cp = index % plan.cp;
    if (static_cast<int>(layout.rank_of(at)) >= accelerators) break;
    ++count;
  }
  return count;
}
}  // namespace

int shard_group(const WorkloadSpec& workload, const Framework& defaults, const Plan& plan,
                Mistakes& mistakes) {
  const PlanSpec& spec = workload.plan;
  const int copies = plan.replicas();  // DualPipe holds every stage twice
  const bool by_group = spec.zero_group.kind != ZeroGroup::Kind::all;
  const char* path = by_group ? "plan.zero_group" : "plan.hsdp_shard";
  if (!by_group && !spec.hsdp_shard) return copies;
  int ranks = spec.hsdp_shard.value_or(copies);
  if (spec.zero_group.kind == ZeroGroup::Kind::ranks) ranks = spec.zero_group.ranks;
  if (spec.zero_group.kind == ZeroGroup::Kind::node) {
    const std::vector<std::string>& order = plan.rank_order;
    if (plan.cp > 1 &&
        std::find(order.begin(), order.end(), "dp") < std::find(order.begin(), order.end(), "cp")) {
      mistakes.add(path,
                   "shard groups are runs of ranks that differ in cp before dp, and rank_order puts dp first",
                   "cp before dp in rank_order, or a number of ranks");
      return copies;
    }
    ranks = copies_in_a_node(plan, workload.host.accelerators);
    if (ranks < 2 && copies > 1) {
      mistakes.add(path,
                   fmt::format("a node of {} accelerators holds one data-parallel rank of tp {} x pp {}",
                               workload.host.accelerators, plan.tp, plan.pp),
                   "nothing is left to share: use zero_group all, or a smaller tp");
      return copies;
    }
  }
  if (plan.mirrored() && ranks < copies && ranks >= plan.dp * plan.cp)
    mistakes.add(
        path,
        fmt::format("{} ranks are one whole direction of DualPipe, whose two directions share what they hold",
                    ranks),
        "fewer ranks, or all");
  if (by_group && spec.hsdp_shard && *spec.hsdp_shard != ranks)
    mistakes.add("plan.hsdp_shard",
                 fmt::format("hsdp_shard = {}, but zero_group is {} ranks", *spec.hsdp_shard, ranks),
                 "give one of the two");
  if (plan.zero == 0 && copies > 1) {
    mistakes.add(path, "nothing is sharded that a group could share",
                 defaults.family == FrameworkFamily::jax               ? "set zero to 3"
                 : defaults.most_zero > 2 || !defaults.sharded.empty() ? "set zero to 1, 2 or 3"
                 : defaults.most_zero == 2                             ? "set zero to 1 or 2"
                 : defaults.most_zero == 1                             ? "set zero to 1"
                                                                       : "leave it out");
  } else if (ranks < 2 && copies > 1) {
    mistakes.add(path, "a shard group needs at least 2 ranks", "whole copies: zero = 0");
  } else if (copies == 1 && ranks != 1) {
    mistakes.add(path, "dp x cp = 1: one rank has nobody to share with", "leave it out");
  } else if (copies % std::max(1, ranks) != 0) {
    int below = std::max(2, std::min(ranks, copies));
    while (below < copies && copies % below != 0) ++below;
    mistakes.add(path,
                 fmt::format("{} = {} does not divide dp x cp = {}", by_group ? "zero_group" : "hsdp_shard",
                             ranks, copies),
                 fmt::format("{} would", below));
  } else {
    return ranks;
  }
  return copies;
}

void set_offload(const WorkloadSpec& workload, const Framework& defaults, Plan& plan, Mistakes& mistakes) {
  plan.offload.activations = workload.plan.offload_activations;
  if (plan.offload.activations &&
      (plan.inference() || plan.replays() || defaults.family == FrameworkFamily::dataparallel))
    mistakes.add("plan.offload_activations", "nothing is kept layer by layer for a backward pass here",
                 "leave it out");
  plan.offload.to = workload.plan.offload;
  if (plan.offload.to == Offload::none) return;
  if (defaults.family == FrameworkFamily::ddp || defaults.family == FrameworkFamily::dataparallel ||
      defaults.family == FrameworkFamily::jax)
    mistakes.add("plan.offload",
                 fmt::format("framework {} keeps its optimiser on the accelerator", defaults.name),
                 "use framework deepspeed, fsdp or megatron");
  if (plan.replays())
    mistakes.add("plan.offload", "replayed stage times have no optimiser", "set offload to none");
  // torch.optim keeps moments in the parameters' format, wherever those are (torch/optim/adam.py:
  // zeros_like(p)), and FSDP casts reduced gradients to it before they leave (_fsdp_collectives.py,
  // foreach_reduce: orig_dtype, then to(cpu)). DeepSpeed's and Megatron's masters on the host are fp32
  // (stage_1_and_2.py, single_partition_of_fp32_groups; core/optimizer/cpu_offloading/hybrid_optimizer.py).
  const bool fsdp = defaults.family == FrameworkFamily::fsdp;
  if (plan.optimizer_bytes < 4 && !fsdp)
    mistakes.add("precision.optimizer",
                 fmt::format("an offloaded optimiser of framework {} keeps fp32", defaults.name),
                 "leave it out, offload to none, or use framework fsdp");
  if (fsdp) plan.offload.gradient_bytes = plan.parameter_bytes;
  constexpr double kHostShare = 0.43;  // step/offload.hpp
  const double ranks = std::max(1, std::min(workload.host.accelerators, plan.ranks()));
  plan.offload.adam_rate = kHostShare * workload.host.memory_bandwidth.value() / ranks;
  plan.offload.nvme_read = workload.compute.nvme_read.value() / ranks;
  plan.offload.nvme_write = workload.compute.nvme_write.value() / ranks;
  plan.offload.parameters = plan.shards.by_unit && defaults.offloads_parameters;
  // DeepSpeed's stages 2 and 3 copy each reduced bucket to the host, on one accelerator too
  // (stage_1_and_2.py, async_inplace_copy_grad_to_fp32_buffer_from_gpu under partition_gradients).
  const int zero = zero_meant(workload.plan, defaults);
  // Megatron's gradients stay in their buffers until the update (hybrid_optimizer.py).
  plan.offload.gradients = zero >= 2 && defaults.family != FrameworkFamily::megatron;
  if (plan.offload.gradients && defaults.host_adds) plan.offload.sums = GradientSums::by_host;
  if (plan.offload.gradients && defaults.accumulates_on_host && plan.pp == 1) {
    plan.offload.sums = zero == 3 ? GradientSums::in_each : GradientSums::between;
    plan.reduce_every_micro_batch = true;
    plan.buckets_never_exceed = defaults.buckets_never_exceed;
    if (zero == 3) plan.overlap_grad_reduce = workload.plan.overlap_grad_reduce.value_or(true);
  }
  // What the host updates in fp32 comes back in 16 bits, so no fp32 copy remains.
  if (!plan.offload.parameters && !plan.shards.by_unit && plan.cast_weights) plan.cast_weights = false;
  plan.shards.unit_copies = false;
  plan.root_unit = plan.root_unit && plan.shards.by_unit;
}
}  // namespace topsim::workloads
