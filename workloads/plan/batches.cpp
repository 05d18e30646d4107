// Divides accelerators into replicas, and the batch into micro-batches.
#include <fmt/format.h>

#include <algorithm>

#include "workloads/plan/parts.hpp"

namespace topsim::workloads {

namespace {

// Micro-batches times layers on one stage: each pass is some twenty operations of a hundred bytes.
constexpr std::int64_t kMostPasses = 4'000'000;
constexpr std::int64_t kMostSequences = std::int64_t{1} << 30;  // per step, as in plan.global_batch

// The key that determines the number of micro-batches.
const char* batch_key(const PlanSpec& spec) {
  return spec.global_batch || !spec.grad_accumulation ? "plan.global_batch" : "plan.grad_accumulation";
}

// Half of the micro-batches enter at each end; both ends fill before any backward pass arrives.
void check_dualpipe(const PlanSpec& spec, const Plan& plan, Mistakes& mistakes) {
  if (plan.pp % 2 != 0)
    mistakes.add("plan.pp", fmt::format("DualPipe pairs stages from both ends, pp is {}", plan.pp),
                 fmt::format("pp = {} would be even", plan.pp + 1));
  if (plan.micro_batches % 2 != 0 || plan.micro_batches < 2 * plan.pp) {
    const int enough = std::max(2 * plan.pp, plan.micro_batches + plan.micro_batches % 2);
    mistakes.add(
        batch_key(spec),
        fmt::format("DualPipe needs an even number of micro-batches, at least 2 x pp = {}; this "
                    "plan has {}",
                    2 * plan.pp, plan.micro_batches),
        spec.global_batch || !spec.grad_accumulation
            ? fmt::format("global_batch = {} would be", std::int64_t{enough} * plan.micro_batch * plan.dp)
            : fmt::format("grad_accumulation = {} would be", enough));
  }
}
// From global_batch or grad_accumulation, whichever is given.
void count_micro_batches(const PlanSpec& spec, std::int64_t per_round, Plan& plan, Mistakes& mistakes) {
  if (spec.global_batch && spec.grad_accumulation &&
      *spec.global_batch != *spec.grad_accumulation * per_round) {
    mistakes.add("plan.global_batch",
                 fmt::format("global_batch = {}, but micro_batch {} x dp {} x grad_accumulation {} = {}",
                             *spec.global_batch, plan.micro_batch, plan.dp, *spec.grad_accumulation,
                             *spec.grad_accumulation * per_round),
                 "give one of the two");
  } else if (spec.global_batch) {
    plan.micro_batches = static_cast<int>(*spec.global_batch / per_round);
    if (*spec.global_batch < 1 || *spec.global_batch % per_round != 0) {
      const std::int64_t below = std::max(1, plan.micro_batches) * per_round;
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
}

void check_limits(const PlanSpec& spec, int layers, std::int64_t per_round, const Plan& plan,
                  Mistakes& mistakes) {
  const std::int64_t passes = std::int64_t{plan.micro_batches} * std::max(1, layers / plan.pp);
  if (passes > kMostPasses) {
    mistakes.add(
        batch_key(spec),
        fmt::format("{} micro-batches and the layers of a stage are {} passes; a step has at most {}",
                    plan.micro_batches, passes, kMostPasses),
        "a larger micro_batch, or fewer sequences");
    mistakes.finish();
  }
  if (plan.micro_batches * per_round > kMostSequences) {
    mistakes.add(
        batch_key(spec),
        fmt::format("micro_batch {} x dp {} x {} micro-batches = {} sequences a step; it has at most {}",
                    plan.micro_batch, plan.dp, plan.micro_batches, plan.micro_batches * per_round,
                    kMostSequences),
        "a smaller micro_batch, or fewer of them");
    mistakes.finish();
  }
}

void check_schedule(const PlanSpec& spec, std::int64_t per_round, const Plan& plan, Mistakes& mistakes) {
  if (plan.mirrored()) check_dualpipe(spec, plan, mistakes);
  const ScheduleTraits& schedule = traits(plan.schedule);
  if (schedule.must_overlap_messages && plan.pp > 1 && spec.overlap_p2p && !*spec.overlap_p2p)
    mistakes.add("plan.overlap_p2p", "stages of this schedule would wait for each other's messages for ever",
                 fmt::format("leave overlap_p2p out: {} overlaps them", schedule.name));
  if (plan.schedule == Schedule::interleaved && plan.micro_batches % plan.pp != 0) {
    const std::int64_t next = (plan.micro_batches / plan.pp + 1) * plan.pp;
    mistakes.add(
        batch_key(spec),
        fmt::format("the interleaved schedule needs a multiple of pp = {} micro-batches, this plan has {}",
                    plan.pp, plan.micro_batches),
        spec.global_batch || !spec.grad_accumulation
            ? fmt::format("global_batch = {} would be", next * per_round)
            : fmt::format("grad_accumulation = {} would be", next));
  }
}
int rounded_up(int value, int divisor) {
  return (value + divisor - 1) / divisor;
}

// Servers decode all their requests at once (continuous batching). They read prompts together up to so many
// tokens (vLLM, engine/arg_utils.py: max_num_batched_tokens of its server on an H100), one batch per stage.
int parts_of(int requests, const Plan& plan) {
  constexpr std::int64_t kPromptTokens = 8192;
  if (plan.task == Task::decode) return std::min(requests, plan.pp);
  const std::int64_t most = std::max<std::int64_t>(1, kPromptTokens / std::max(1, plan.sequence));
  const int enough = rounded_up(requests, static_cast<int>(std::min<std::int64_t>(requests, most)));
  return std::max(enough, std::min(requests, plan.pp));
}

// Micro-batches are as even as can be. Those of a decode step are timed as if all were as large as the
// largest, which paces a ring of stages.
void divide_requests(int requests, int parts, Plan& plan) {
  plan.micro_batches = parts;
  plan.micro_batch = rounded_up(requests, parts);
  if (plan.task == Task::prefill && plan.micro_batch > 1) plan.smaller = parts * plan.micro_batch - requests;
}
// What else must change where the batch is no multiple of that many replicas'.
std::string batch_for(const PlanSpec& plan, std::int64_t dp) {
  const std::int64_t per_round = dp * plan.micro_batch.value_or(1);
  if (!plan.global_batch || *plan.global_batch % per_round == 0) return {};
  return fmt::format(", with a global_batch of {}", (*plan.global_batch / per_round + 1) * per_round);
}
// Nodes that have as many accelerators as a plan wants; a topology that says none has one.
std::string nodes_for(std::int64_t wanted, int in_a_node) {
  const std::int64_t each = std::max(1, in_a_node);
  const std::int64_t nodes = (wanted + each - 1) / each;
  if (wanted % each == 0) return fmt::format("topology.nodes = {} would have them", nodes);
  return fmt::format("topology.nodes = {} with topology.accelerators = {} would have them", nodes, wanted);
}
}  // namespace

int data_parallel(const WorkloadSpec& workload, std::uint32_t accelerators, Mistakes& mistakes) {
  const PlanSpec& plan = workload.plan;
  const int in_a_node = workload.host.accelerators;
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
                                   available / model_ranks) +
                           batch_for(plan, available / model_ranks)
                     : nodes_for(model_ranks, in_a_node) + "; or lower tp, pp or cp");
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
      help = fmt::format("dp = {} fits (or leave dp out)", available / model_ranks) +
             batch_for(plan, available / model_ranks);
    } else if (available > model_ranks) {
      help = fmt::format("dp = {} would use {} of them: set topology.accelerators to {}",
                         available / model_ranks, available / model_ranks * model_ranks,
                         available / model_ranks * model_ranks) +
             batch_for(plan, available / model_ranks);
    } else {
      help = fmt::format("{}; one replica alone needs {}: or lower tp, pp or cp",
                         nodes_for(wanted, in_a_node), model_ranks);
    }
    mistakes.add("plan",
                 fmt::format("{} x dp {} = {} accelerators, the topology has {}", product, *plan.dp, wanted,
                             available),
                 help);
  }
  return *plan.dp;
}

void set_batches(const PlanSpec& spec, int layers, Plan& plan, Mistakes& mistakes) {
  const bool pairs =
      spec.overlap_expert_exchange && spec.ep.value_or(1) > 1 && spec.global_batch.value_or(0) / plan.dp > 1;
  const bool open =
      plan.inference() && spec.global_batch.value_or(0) > 0 && *spec.global_batch % plan.dp == 0;
  const int requests = open ? *spec.global_batch / plan.dp : 0;
  int parts = spec.grad_accumulation.value_or(0);
  if (open && !spec.grad_accumulation)
    parts = pairs ? 2 * parts_of(rounded_up(requests, 2), plan) : parts_of(requests, plan);
  // What is left open may be stated too.
  const bool stated = spec.grad_accumulation && parts >= 1 && parts <= requests &&
                      spec.micro_batch.value_or(rounded_up(requests, parts)) == rounded_up(requests, parts);
  const bool served = open && (stated || (!spec.grad_accumulation && !spec.micro_batch));
  if (served) divide_requests(requests, parts, plan);
  const std::int64_t per_round = std::int64_t{plan.micro_batch} * plan.dp;
  if (!served) count_micro_batches(spec, per_round, plan, mistakes);
  check_limits(spec, layers, per_round, plan, mistakes);
  plan.global_batch = served ? *spec.global_batch : static_cast<int>(plan.micro_batches * per_round);
  check_schedule(spec, per_round, plan, mistakes);
}
}  // namespace topsim::workloads
