#include "workloads/plan.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "sim/base/error.hpp"
#include "workloads/compute/compute_model.hpp"
#include "workloads/model.hpp"

namespace topsim::workloads {
namespace {

class Mistakes {
 public:
  void add(std::string path, std::string message, std::string help = {}) {
    Problem problem;
    problem.path = "workload." + std::move(path);
    problem.message = std::move(message);
    problem.help = std::move(help);
    problems_.push_back(std::move(problem));
  }
  void finish() const {
    if (!problems_.empty()) throw ConfigError(problems_);
  }

 private:
  std::vector<Problem> problems_;
};

// Keys that the product knows and this version cannot simulate: named, never ignored.
void refuse_unsupported(const WorkloadSpec& workload, Mistakes& mistakes) {
  const PlanSpec& plan = workload.plan;
  const auto refuse = [&](bool present, const char* path, const char* what, const char* instead) {
    if (present) mistakes.add(path, fmt::format("{} is not supported yet", what), instead);
  };
  refuse(workload.task != Task::pretrain && workload.task != Task::finetune, "task",
         "a task other than pretrain and finetune", "leave task out");
  refuse(workload.lora.has_value(), "lora", "LoRA", "leave lora out");
  refuse(workload.packing, "packing", "packing of documents", "leave packing out");
  refuse(plan.ep > 1 || plan.etp > 1, "plan.ep", "expert parallelism", "set ep and etp to 1");
  refuse(workload.model.experts.count > 0, "model", "a mixture-of-experts model", "choose a dense model");
  refuse(workload.model.attention.kind == AttentionKind::mla, "model", "multi-head latent attention",
         "choose a model with mha or gqa attention");
  refuse(plan.zero_group.kind != ZeroGroup::Kind::all, "plan.zero_group", "a shard group smaller than dp",
         "use framework fsdp with hsdp_shard");
  refuse(plan.offload != Offload::none, "plan.offload", "offload", "set offload to none");
  refuse(plan.tp_overlap == TensorOverlap::userbuffers, "plan.tp_overlap", "user-buffer overlap",
         "set tp_overlap to async");
  refuse(workload.trace.has_value(), "trace", "a workload trace", "describe the workload by model and plan");
  refuse(plan.schedule == Schedule::dualpipe, "plan.schedule", "DualPipe", "use zb-v, which holds as little");
}

void check_shape(const WorkloadSpec& workload, Mistakes& mistakes) {
  const ModelSpec& model = workload.model;
  const PlanSpec& plan = workload.plan;
  const auto positive = [&](const char* path, int value) {
    if (value < 1) mistakes.add(path, fmt::format("{} must be at least 1, is {}", path, value));
    return value >= 1;
  };
  bool sound = positive("plan.tp", plan.tp);
  sound &= positive("plan.pp", plan.pp);
  sound &= positive("plan.cp", plan.cp);
  sound &= positive("plan.ep", plan.ep);
  sound &= positive("plan.virtual_stages", plan.virtual_stages);
  sound &= positive("plan.micro_batch", plan.micro_batch);
  sound &= positive("model.layers", model.layers);
  sound &= positive("model.hidden", model.hidden);
  sound &= positive("model.heads", model.heads);
  sound &= positive("model.vocab", model.vocab);
  mistakes.finish();
  if (!sound) return;

  const auto divisible = [&](const char* what, int value) {
    if (value % plan.tp == 0) return;
    int fits = plan.tp;
    while (value % fits != 0) --fits;
    mistakes.add("plan.tp", fmt::format("tp = {} does not divide the model's {} {}", plan.tp, value, what),
                 fmt::format("the largest tp below it that does is {}", fits));
  };
  divisible("attention heads", model.heads);
  divisible("FFN columns", model.ffn);
  if (model.kv_heads % plan.tp != 0 && plan.tp % model.kv_heads != 0)
    mistakes.add("plan.tp",
                 fmt::format("tp = {} neither divides nor is a multiple of the model's {} key-value heads",
                             plan.tp, model.kv_heads),
                 "choose a tp that divides them");
  if (model.heads % model.kv_heads != 0)
    mistakes.add("model.kv_heads",
                 fmt::format("{} heads cannot share {} key-value heads evenly", model.heads, model.kv_heads));
}

// Layers of every global stage.
std::vector<int> divide_layers(const WorkloadSpec& workload, const Plan& plan, Mistakes& mistakes) {
  const std::vector<int>& given = workload.plan.stage_layers;
  const int virtual_stages = plan.virtual_stages;
  const int layers = workload.model.layers;
  const int stages = plan.pp * virtual_stages;
  if (given.empty()) {
    if (layers % stages == 0) return std::vector<int>(static_cast<std::size_t>(stages), layers / stages);
    std::vector<int> proposal(static_cast<std::size_t>(stages), layers / stages);
    // The ends carry embedding and LM head: extra layers go to the middle.
    for (int i = 0; i < layers % stages; ++i) {
      const int middle = stages / 2 + (i % 2 == 0 ? i / 2 : -(i + 1) / 2);
      ++proposal[static_cast<std::size_t>((middle + stages) % stages)];
    }
    const std::string what = virtual_stages > 1
                                 ? fmt::format("pp x virtual_stages = {} x {}", plan.pp, virtual_stages)
                                 : fmt::format("pp = {}", plan.pp);
    mistakes.add("plan.pp", fmt::format("{} layers do not divide into {} stages ({})", layers, stages, what),
                 stages <= layers ? fmt::format("say how: \"stage_layers\": [{}]", fmt::join(proposal, ", "))
                                  : fmt::format("at most {} stages can hold a layer each", layers));
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
  const int sum = std::accumulate(result.begin(), result.end(), 0);
  if (sum != layers)
    mistakes.add("plan.stage_layers",
                 fmt::format("the entries sum to {}, the model has {} layers", sum, layers));
  return result;
}

int data_parallel(const PlanSpec& plan, std::uint32_t accelerators, Mistakes& mistakes) {
  const std::int64_t model_ranks = std::int64_t{plan.tp} * plan.pp * plan.cp;
  const std::int64_t available = accelerators;
  const std::string product = fmt::format("tp {} x pp {} x cp {}", plan.tp, plan.pp, plan.cp);
  if (!plan.dp) {
    if (available % model_ranks == 0 && available > 0) return static_cast<int>(available / model_ranks);
    mistakes.add("plan",
                 fmt::format("{} = {} accelerators for one replica, which does not divide the {} there are",
                             product, model_ranks, available),
                 available >= model_ranks
                     ? fmt::format("use {} accelerators for dp = {}", available / model_ranks * model_ranks,
                                   available / model_ranks)
                     : "lower tp, pp or cp, or add nodes");
    return 1;
  }
  const std::int64_t wanted = model_ranks * *plan.dp;
  if (*plan.dp < 1) {
    mistakes.add("plan.dp", fmt::format("must be at least 1, is {}", *plan.dp),
                 "leave dp out and it follows");
    return 1;
  }
  if (wanted != available) {
    std::string help;
    if (available % model_ranks == 0 && available > 0) {
      help = fmt::format("dp = {} fits (or leave dp out)", available / model_ranks);
    } else if (available > model_ranks) {
      help = fmt::format("dp = {} would use {} of them: set topology.accelerators to {}",
                         available / model_ranks, available / model_ranks * model_ranks,
                         available / model_ranks * model_ranks);
    } else {
      help = fmt::format("one replica alone needs {}: lower tp, pp or cp, or add nodes", model_ranks);
    }
    mistakes.add("plan",
                 fmt::format("{} x dp {} = {} accelerators, the topology has {}", product, *plan.dp, wanted,
                             available),
                 help);
  }
  return *plan.dp;
}

void set_batches(const PlanSpec& spec, Plan& plan, Mistakes& mistakes) {
  const int per_round = plan.micro_batch * plan.dp;
  if (spec.global_batch && spec.grad_accumulation &&
      *spec.global_batch != *spec.grad_accumulation * per_round) {
    mistakes.add("plan.global_batch",
                 fmt::format("global_batch = {}, but micro_batch {} x dp {} x grad_accumulation {} = {}",
                             *spec.global_batch, plan.micro_batch, plan.dp, *spec.grad_accumulation,
                             *spec.grad_accumulation * per_round),
                 "give one of the two");
  } else if (spec.global_batch) {
    plan.micro_batches = *spec.global_batch / per_round;
    if (*spec.global_batch < 1 || *spec.global_batch % per_round != 0) {
      const int below = std::max(1, plan.micro_batches) * per_round;
      mistakes.add("plan.global_batch",
                   fmt::format("global_batch = {} is no multiple of micro_batch {} x dp {} = {}",
                               *spec.global_batch, plan.micro_batch, plan.dp, per_round),
                   fmt::format("{} or {} would be", below, below + per_round));
      plan.micro_batches = std::max(1, plan.micro_batches);
    }
  } else {
    plan.micro_batches = spec.grad_accumulation.value_or(1);
    if (plan.micro_batches < 1) {
      mistakes.add("plan.grad_accumulation", fmt::format("must be at least 1, is {}", plan.micro_batches));
      plan.micro_batches = 1;
    }
  }
  plan.global_batch = plan.micro_batches * per_round;
  if (plan.schedule == Schedule::interleaved && plan.micro_batches % plan.pp != 0)
    mistakes.add(
        "plan.global_batch",
        fmt::format("the interleaved schedule needs a multiple of pp = {} micro-batches, this plan has {}",
                    plan.pp, plan.micro_batches),
        fmt::format("global_batch = {} would be", (plan.micro_batches / plan.pp + 1) * plan.pp * per_round));
}

void set_precision(const WorkloadSpec& workload, const Framework& defaults, Plan& plan) {
  const PrecisionSpec& precision = workload.precision;
  plan.gemm = precision.gemm;
  const bool full = precision.gemm == Precision::fp32 || precision.gemm == Precision::tf32;
  const bool sixteen = precision.gemm == Precision::fp16 || precision.gemm == Precision::bf16;
  plan.activations = precision.attention.value_or(full || sixteen ? precision.gemm : Precision::bf16);
  plan.mixed_precision = !full && !defaults.parameters_fp32;
  plan.cast_weights = !full && defaults.parameters_fp32;
  plan.parameter_bytes = full || defaults.parameters_fp32 ? 4 : 2;
  plan.gradient_bytes = full || defaults.gradients_fp32 ? 4 : 2;
  if (precision.gradients) plan.gradient_bytes = bytes_of(*precision.gradients);
  plan.gathered_parameter_bytes = full ? 4 : 2;
  if (precision.parameters_all_gather)
    plan.gathered_parameter_bytes = bytes_of(*precision.parameters_all_gather);
}

// What data-parallel ranks share, and when they exchange it.
void set_data_parallel(const PlanSpec& spec, const Framework& defaults, Plan& plan, Mistakes& mistakes) {
  const int copies = plan.dp * plan.cp;
  const int zero = spec.zero.value_or(defaults.zero);
  if (zero < defaults.least_zero || zero > defaults.most_zero) {
    std::string help =
        zero > defaults.most_zero
            ? "frameworks fsdp (2, 3) and deepspeed (0 to 3) do; leave zero out for the default"
            : "whole copies: framework ddp; leave zero out for the default";
    mistakes.add("plan.zero", fmt::format("framework {} has no ZeRO stage {}", defaults.name, zero), help);
  }
  if (zero > 1 && plan.pp > 1 && !defaults.pipelines_sharded)
    mistakes.add("plan.zero",
                 fmt::format("framework {} has no ZeRO stage {} under a pipeline", defaults.name, zero),
                 "set zero to 1, or pp to 1");
  plan.zero = copies > 1 ? zero : 0;
  plan.unit_shards = plan.zero == 3 || (plan.zero == 2 && defaults.family == FrameworkFamily::fsdp);
  plan.shard_ranks = copies;
  if (spec.hsdp_shard) {
    if (!plan.unit_shards || defaults.family != FrameworkFamily::fsdp) {
      mistakes.add("plan.hsdp_shard", fmt::format("framework {} has no hybrid sharding", defaults.name),
                   "use framework fsdp");
    } else if (copies % *spec.hsdp_shard != 0) {
      mistakes.add("plan.hsdp_shard",
                   fmt::format("hsdp_shard = {} does not divide dp x cp = {}", *spec.hsdp_shard, copies));
    } else if (*spec.hsdp_shard < 2) {
      mistakes.add("plan.hsdp_shard", "a shard group needs at least 2 ranks", "whole copies: framework ddp");
    } else {
      plan.shard_ranks = *spec.hsdp_shard;
    }
  }
  // DeepSpeed's overlap_comm is on for stage 3 alone; FSDP and stage 3 always prefetch.
  plan.overlap_grad_reduce =
      spec.overlap_grad_reduce.value_or(defaults.overlap_grad_reduce || plan.unit_shards);
  plan.overlap_param_gather =
      plan.zero > 0 && spec.overlap_param_gather.value_or(defaults.overlap_param_gather || plan.unit_shards);
  // Under a pipeline FSDP keeps parameters and gradients whole until the last micro-batch (torchtitan).
  plan.reshard_after_forward =
      plan.zero == 3 && (spec.zero || plan.pp == 1 || defaults.family != FrameworkFamily::fsdp);
  plan.reduce_every_micro_batch = plan.zero >= 2 && plan.pp == 1;
  plan.prefetch_forward = defaults.prefetch_forward;
  plan.outstanding_reductions = defaults.outstanding_reductions;
  plan.scatter_gradients = defaults.scatter_gradients;
  plan.bucket_copies = plan.unit_shards || copies == 1 ? 0 : defaults.bucket_copies;
  plan.cast_weights = plan.cast_weights && !plan.unit_shards;  // shards are cast before they are gathered
  plan.live_parameters = defaults.live_parameters;
  plan.optimizer_shards = plan.zero >= 1 ? plan.shard_ranks : 1;
  plan.gradient_shards = plan.zero >= 2 ? plan.shard_ranks : 1;
  plan.parameter_shards = plan.unit_shards ? plan.shard_ranks : 1;

  if (defaults.family == FrameworkFamily::fsdp) return;  // a unit is a bucket
  if (!plan.overlap_grad_reduce && !defaults.exposed_buckets) return;
  if (spec.bucket_size) {
    plan.bucket_elements = static_cast<double>(spec.bucket_size->value()) / plan.gradient_bytes;
  } else if (defaults.bucket.value() > 0) {
    plan.bucket_elements = static_cast<double>(defaults.bucket.value()) / plan.gradient_bytes;
  } else {
    plan.bucket_elements = std::max(defaults.bucket_elements, defaults.bucket_elements_per_rank * copies);
  }
  plan.first_bucket_elements = static_cast<double>(defaults.first_bucket.value()) / plan.gradient_bytes;
}

void set_stage_times(const StageTimes& given, Plan& plan, Mistakes& mistakes) {
  const auto spread = [&](const char* key, const std::vector<Duration>& times) {
    const auto stages = static_cast<std::size_t>(plan.pp);
    if (times.size() <= 1) return std::vector<Duration>(stages, times.empty() ? Duration{} : times.front());
    if (times.size() != stages)
      mistakes.add(fmt::format("compute.stage_times.{}", key),
                   fmt::format("{} times for {} stages", times.size(), stages),
                   "one for all, or one for each stage");
    return times;
  };
  if (given.forward.empty()) {
    if (!given.backward_input.empty() || !given.backward_weight.empty() || !given.transfer.empty())
      mistakes.add("compute.stage_times", "stage times need the forward pass", "add \"forward\"");
    return;
  }
  plan.stage_times.forward = spread("forward", given.forward);
  plan.stage_times.backward_input = spread("backward_input", given.backward_input);
  plan.stage_times.backward_weight = spread("backward_weight", given.backward_weight);
  if (!given.transfer.empty()) plan.stage_times.transfer = spread("transfer", given.transfer);
}

void check_rank_order(const PlanSpec& spec, Plan& plan, Mistakes& mistakes) {
  const std::vector<std::string> names{"tp", "cp", "ep", "dp", "pp"};
  plan.rank_order = spec.rank_order.empty() ? names : spec.rank_order;
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
  if (schedule == Schedule::zb_v || schedule == Schedule::dualpipe)
    return chunk == 0 ? stage : 2 * pp - 1 - stage;
  return chunk * pp + stage;
}

Plan resolve(const WorkloadSpec& workload, std::uint32_t accelerators) {
  Mistakes mistakes;
  const Framework& defaults = framework(workload.framework);
  refuse_unsupported(workload, mistakes);
  check_shape(workload, mistakes);

  const PlanSpec& spec = workload.plan;
  Plan plan;
  plan.tp = spec.tp, plan.pp = spec.pp, plan.cp = spec.cp, plan.ep = spec.ep, plan.etp = spec.etp;
  plan.virtual_stages = spec.virtual_stages;
  plan.micro_batch = spec.micro_batch;
  plan.cp_kind = spec.cp_kind;
  plan.sequence = workload.sequence.value_or(workload.model.sequence);
  if (plan.sequence < 1)
    mistakes.add("sequence", "a sequence length is needed", "for example \"sequence\": 8192");
  plan.schedule =
      spec.schedule.value_or(spec.virtual_stages > 1 ? Schedule::interleaved : Schedule::one_f_one_b);
  if (plan.schedule == Schedule::one_f_one_b && plan.virtual_stages > 1)
    plan.schedule = Schedule::interleaved;
  if (plan.schedule == Schedule::interleaved && plan.virtual_stages == 1)
    plan.schedule = Schedule::one_f_one_b;
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
  set_batches(spec, plan, mistakes);
  check_rank_order(spec, plan, mistakes);
  set_stage_times(workload.compute.stage_times, plan, mistakes);

  plan.sequence_parallel = plan.tp > 1 && spec.sequence_parallel.value_or(defaults.sequence_parallel);
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
  plan.recompute = spec.recompute.value_or(RecomputeSpec{defaults.recompute, std::nullopt});
  plan.attention = workload.model.attention.kernel.value_or(defaults.attention);
  // Zero-bubble runtimes launch every message on its own and wait only for what a pass reads (recalled of
  // sail-sg/zero-bubble, not read again; set after its rows deadlocked without it); exposed pairs would make
  // neighbours wait for each other in a circle.
  const bool zero_bubble =
      plan.schedule == Schedule::zb_h1 || plan.schedule == Schedule::zb_2p || plan.schedule == Schedule::zb_v;
  plan.overlap_p2p =
      spec.overlap_p2p.value_or(zero_bubble || (defaults.overlap_p2p && plan.virtual_stages > 1));
  plan.tp_overlap = spec.tp_overlap.value_or(defaults.tp_overlap);
  set_precision(workload, defaults, plan);
  set_data_parallel(spec, defaults, plan, mistakes);
  const bool graph = workload.compute.cuda_graph.value_or(defaults.cuda_graph);
  plan.launch = workload.compute.launch_overhead.value_or(graph ? defaults.graph_launch : defaults.launch);
  plan.synchronises_p2p = defaults.synchronises_p2p && !plan.overlap_p2p;
  plan.dropout = defaults.dropout;
  plan.hopper_attention = defaults.hopper_attention;
  plan.fused_kernels = defaults.fused_kernels;
  plan.fused_cross_entropy = defaults.fused_cross_entropy;
  mistakes.finish();
  return plan;
}
}  // namespace topsim::workloads
