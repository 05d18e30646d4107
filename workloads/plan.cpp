#include "workloads/plan.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "workloads/host/host.hpp"
#include "workloads/plan/parts.hpp"

namespace topsim::workloads {
namespace {

void check_rank_order(const PlanSpec& spec, Plan& plan, Mistakes& mistakes) {
  const std::vector<std::string> names{"tp", "cp", "ep", "dp", "pp"};
  plan.rank_order = spec.rank_order.empty() ? names : spec.rank_order;
  // A dimension of one rank may be left out: its place changes nothing.
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
                 fmt::format("[{}] does not name each dimension once", fmt::join(plan.rank_order, ", ")),
                 "the default is [tp, cp, ep, dp, pp], fastest first");
}
}  // namespace

int Plan::global_stage(int stage, int chunk) const {
  if (schedule == Schedule::zb_v) return chunk == 0 ? stage : 2 * pp - 1 - stage;
  if (schedule == Schedule::dualpipe) return chunk == 0 ? stage : pp - 1 - stage;
  return chunk * pp + stage;
}

Plan resolve(const WorkloadSpec& workload, std::uint32_t accelerators) {
  Mistakes mistakes;
  const Framework& defaults = framework(workload.framework);
  check_shape(workload, mistakes);

  const PlanSpec& spec = workload.plan;
  Plan plan;
  plan.tp = spec.tp, plan.pp = spec.pp, plan.cp = spec.cp, plan.ep = spec.ep;
  plan.etp = spec.etp.value_or(plan.tp);
  plan.virtual_stages = spec.virtual_stages;
  plan.micro_batch = spec.micro_batch.value_or(1);
  plan.cp_kind = spec.cp_kind;
  plan.sequence = workload.sequence.value_or(workload.model.sequence);
  if (plan.sequence < 1)
    mistakes.add("sequence", "a sequence length is needed", "for example \"sequence\": 8192");
  plan.task = workload.task;
  plan.queries = plan.task == Task::decode ? 1 : plan.sequence;
  plan.schedule =
      spec.schedule.value_or(spec.virtual_stages > 1 ? Schedule::interleaved : Schedule::one_f_one_b);
  if (plan.schedule == Schedule::one_f_one_b && plan.virtual_stages > 1)
    plan.schedule = Schedule::interleaved;
  if (plan.schedule == Schedule::interleaved && plan.virtual_stages == 1) {
    if (plan.pp > 1)
      mistakes.add("plan.schedule",
                   "the interleaved schedule needs two or more virtual stages, the plan has one",
                   "set virtual_stages to 2 or more, or use 1f1b");
    plan.schedule = Schedule::one_f_one_b;
  }
  if (plan.schedule == Schedule::zb_v) {
    if (spec.virtual_stages > 2)
      mistakes.add("plan.virtual_stages", "ZB-V has two virtual stages", "leave virtual_stages out");
    plan.virtual_stages = 2;
  } else if (plan.schedule != Schedule::interleaved && plan.virtual_stages > 1) {
    mistakes.add("plan.virtual_stages", "this schedule has one stage a rank", "use the interleaved schedule");
  }
  if (plan.virtual_stages > 1 && plan.pp == 1)
    mistakes.add("plan.virtual_stages", "virtual stages need a pipeline (pp > 1)", "set virtual_stages to 1");
  plan.stage_layers = divide_layers(workload, plan, mistakes);
  plan.dp = data_parallel(spec, accelerators, mistakes);
  // What else there is to say would be counted in numbers that do not hold it.
  if (std::int64_t{plan.tp} * plan.cp * plan.pp * plan.dp > std::numeric_limits<int>::max())
    mistakes.finish();
  set_batches(spec, workload.model.layers, plan, mistakes);
  check_rank_order(spec, plan, mistakes);
  set_stage_times(workload.compute.stage_times, plan, mistakes);

  const bool split_rows = (defaults.sequence_parallel && !plan.inference()) ||
                          (workload.model.experts.count > 0 && !plan.sliced_experts());
  plan.sequence_parallel = plan.tp > 1 && spec.sequence_parallel.value_or(split_rows);
  if (plan.sequence_parallel && plan.sequence % (plan.tp * plan.cp) != 0)
    mistakes.add(
        "plan.sequence_parallel",
        fmt::format("a sequence of {} does not divide over tp x cp = {}", plan.sequence, plan.tp * plan.cp),
        "switch sequence_parallel off or change the sequence");
  if (plan.cp > 1) {
    if (plan.sequence % (2 * plan.cp) != 0)
      mistakes.add(
          "plan.cp",
          fmt::format("a sequence of {} does not divide into 2 x cp = {} chunks", plan.sequence, 2 * plan.cp),
          "choose a cp that does");
    if (plan.cp_kind == ContextKind::ulysses && workload.model.heads % (plan.tp * plan.cp) != 0)
      mistakes.add(
          "plan.cp",
          fmt::format("{} heads do not divide over tp x cp = {}", workload.model.heads, plan.tp * plan.cp),
          "Ulysses splits heads: lower cp, or choose cp_kind ring");
  }
  set_recompute(workload, defaults, plan, mistakes);
  plan.attention = workload.model.attention.kernel.value_or(defaults.attention);
  // Zero-bubble runtimes launch every message on its own and wait only for what a pass reads (recalled of
  // sail-sg/zero-bubble, not read again; set after its rows deadlocked without it); exposed pairs would make
  // neighbours wait for each other in a circle.
  const bool zero_bubble = plan.schedule == Schedule::zb_h1 || plan.schedule == Schedule::zb_2p ||
                           plan.schedule == Schedule::zb_v || plan.schedule == Schedule::dualpipe;
  plan.overlap_p2p = spec.overlap_p2p.value_or(zero_bubble || spec.overlap_expert_exchange ||
                                               (defaults.overlap_p2p && plan.virtual_stages > 1));
  plan.tp_overlap = spec.tp_overlap.value_or(defaults.tp_overlap);
  set_precision(workload, defaults, plan);
  set_experts(workload, plan, mistakes);
  set_data_parallel(workload, defaults, plan, mistakes);
  set_offload(workload, defaults, plan, mistakes);
  set_single_process(defaults, plan, mistakes);
  const bool graph = workload.compute.cuda_graph.value_or(defaults.cuda_graph || plan.task == Task::decode);
  const Duration eager = host_times().operation;
  plan.launch = workload.compute.launch_overhead.value_or(graph ? defaults.graph_launch : eager);
  plan.collective_launch = graph ? plan.launch : std::max(plan.launch, host_times().collective);
  plan.counts_host_calls = !graph && !workload.compute.launch_overhead;
  plan.graph = graph;
  const std::vector<std::string>& parts = workload.compute.graph_parts;
  const auto graphed = [&](const char* part) {
    return std::find(parts.begin(), parts.end(), part) != parts.end();
  };
  plan.graph_attention = graphed("attention"), plan.graph_router = graphed("router");
  plan.graph_mlp = graphed("mlp");
  if (graph && !parts.empty())
    mistakes.add("compute.graph_parts", "the whole step is launched from one graph already",
                 "leave cuda_graph or graph_parts out");
  if (!plan.counts_host_calls && !graph && !parts.empty())
    mistakes.add("compute.graph_parts", "launch_overhead prices every kernel alike, in a graph or not",
                 "leave one of the two out");
  if (!parts.empty() && workload.model.experts.count > 0 && !defaults.host.experts.counted)
    mistakes.add("compute.graph_parts", "calls of experts are not counted in this framework",
                 "use framework megatron");
  if (plan.graph_router && workload.model.experts.count == 0)
    mistakes.add("compute.graph_parts", "the model has no router", "leave \"router\" out");
  if (workload.compute.fused_experts && workload.model.experts.count == 0)
    mistakes.add("compute.fused_experts", "the model has no experts", "leave it out");
  plan.fused_experts = workload.compute.fused_experts;
  plan.host = defaults.host;
  plan.host_factor = workload.compute.host_factor.value_or(1);
  plan.synchronises_p2p = defaults.synchronises_p2p && !plan.overlap_p2p;
  plan.timed_passes = defaults.timed_passes && !plan.inference();
  plan.splits_messages = defaults.splits_messages && plan.tp > 1 && !plan.sequence_parallel;
  plan.dropout = workload.dropout.value_or(defaults.dropout);
  plan.fused_adam = defaults.fused_adam;
  plan.apex_norms = defaults.apex_norms;
  plan.gradient_passes = defaults.gradient_passes;
  plan.wide_inputs = defaults.wide_inputs;
  plan.ring_fp32 = defaults.ring_fp32;
  plan.batch_first_shards = defaults.batch_first_shards;
  plan.gathers_inputs_again = defaults.gathers_inputs_again;
  // Adapters read the norm's output, in 16 bits.
  const bool trains = !plan.inference() && plan.task != Task::lora;
  const bool one_scale = plan.gemm == Precision::fp8;
  const bool narrow = bytes_of(plan.gemm) < bytes_of(plan.activations);
  plan.gathers_narrow = trains && narrow && plan.sequence_parallel && plan.tp > 1 &&
                        (one_scale ? defaults.gathers_narrow : defaults.gathers_narrow_blocks);
  plan.casts_in_norms = defaults.casts_in_norms && trains && one_scale && narrow;
  plan.reads_either_layout = defaults.reads_either_layout && one_scale;
  plan.scatters_narrow = defaults.scatters_narrow && trains && one_scale;
  plan.dynamic_scales = defaults.dynamic_scales;
  plan.keeps_narrow_weights = defaults.keeps_narrow_weights;
  plan.fused_kernels = defaults.fused_kernels;
  plan.eager_norms = defaults.eager_norms;
  plan.complex_rotary = defaults.complex_rotary;
  plan.eager_squared_relu = defaults.eager_squared_relu;
  plan.bias_kernels = defaults.bias_kernels;
  plan.core_copies = defaults.core_copies;
  plan.gate_apart = defaults.gate_apart && workload.model.gated_ffn && !plan.inference();
  plan.qkv_apart = plan.gate_apart && plan.core_copies == CoreCopies::pytorch;
  plan.fused_cross_entropy = workload.compute.fused_cross_entropy.value_or(defaults.fused_cross_entropy);
  plan.fused_loss_forward = defaults.fused_loss_forward;
  plan.loss_chunks = workload.compute.loss_chunks;
  for (const auto& [key, given] :
       {std::pair{"compute.fused_cross_entropy", workload.compute.fused_cross_entropy.has_value()},
        {"compute.loss_chunks", plan.loss_chunks > 1}}) {
    if (given && plan.inference()) mistakes.add(key, "inference has no loss", "leave it out");
  }
  if (plan.loss_chunks > 1 && plan.single_process)
    mistakes.add("compute.loss_chunks", "framework dataparallel gathers all logits on one device",
                 "leave it out, or use framework ddp");
  plan.fused_accumulation = defaults.fused_accumulation;
  plan.logit_bytes = plan.fused_cross_entropy ? defaults.fused_logit_bytes : defaults.logit_bytes;
  if (plan.tp_overlap == TensorOverlap::userbuffers && plan.tp > 1 && !plan.sequence_parallel &&
      !plan.inference())
    mistakes.add("plan.tp_overlap",
                 "user buffers overlap gathers and scatters, which need sequence parallelism",
                 "set sequence_parallel, or tp_overlap to async");
  set_adapters(workload, defaults, plan, mistakes);
  set_packing(workload, plan, mistakes);
  set_inference(workload, plan, mistakes);
  mistakes.finish();
  return plan;
}
}  // namespace topsim::workloads
