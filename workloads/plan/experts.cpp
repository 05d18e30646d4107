// Which ranks hold which routed experts. Megatron arranges expert parallelism within the tp x cp x dp ranks
// of a stage: etp x ep of them hold one set of experts, the others copies of it.
#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>

#include "workloads/compute/compute_model.hpp"
#include "workloads/plan/parts.hpp"

namespace topsim::workloads {
namespace {

// The most ranks, up to `most`, that divide the model's experts and, times etp, `ranks`; 1 if none do.
int largest_ep(const ModelSpec& model, int ranks, int etp, int most) {
  int ep = std::min(most, model.experts.count);
  while (ep > 1 && (model.experts.count % ep != 0 || ranks % (ep * etp) != 0)) --ep;
  return ep;
}

// Megatron's defaults (core/transformer/transformer_config.py: moe_deepep_num_sms, moe_hybridep_num_sms).
constexpr int kDeepEpUnits = 20, kHybridEpUnits = 16;

// Whether a stage has equally many consecutive ranks in the dense layout and in the experts' layout.
bool stages_agree(const Plan& plan) {
  int dense = 1, experts = 1;
  for (const std::string& dimension : plan.rank_order) {
    if (dimension == "pp") break;
    if (dimension == "tp") dense *= plan.tp, experts *= plan.etp;
    if (dimension == "cp") dense *= plan.cp;
    if (dimension == "ep") experts *= plan.ep;
    if (dimension == "dp") dense *= plan.dp, experts *= plan.experts.copies;
  }
  return dense == experts;
}

void set_slots(const WorkloadSpec& workload, Plan& plan, Mistakes& mistakes) {
  const int redundant = workload.plan.redundant_experts;
  plan.experts.slots = workload.model.experts.count + redundant;
  if (redundant == 0) return;
  const auto refuse = [&](std::string why, std::string help) {
    mistakes.add("plan.redundant_experts", std::move(why), std::move(help));
    plan.experts.slots = workload.model.experts.count;
  };
  if (redundant < 0) {
    refuse(fmt::format("{} copies", redundant), "0 or more");
  } else if (!plan.inference()) {
    refuse("training keeps one set of each expert's weights",
           "set task to prefill or decode, or leave it out");
  } else if (workload.model.experts.count == 0 || plan.ep == 1) {
    refuse("no rank holds experts that others lack", "set ep above 1, or leave it out");
  }
}

void check_counts(const ModelSpec& model, const Plan& plan, Mistakes& mistakes) {
  const ExpertSpec& experts = model.experts;
  if (experts.top_k > experts.count)
    mistakes.add("model.experts.top_k",
                 fmt::format("a token cannot visit {} of {} experts", experts.top_k, experts.count),
                 fmt::format("top_k is at most {}", experts.count));
  if (model.dense_layers < 0 || model.dense_layers > model.layers)
    mistakes.add("model.dense_layers",
                 fmt::format("the first {} layers are to be dense, and the model has {}", model.dense_layers,
                             model.layers),
                 fmt::format("at most {}, and 0 where all layers have experts", model.layers));
  if (experts.every > model.layers)
    mistakes.add(
        "model.experts.every",
        fmt::format("one layer in {} is to have experts, and the model has {}", experts.every, model.layers),
        "1 where all layers have experts; leave experts out of a dense model");
  if (plan.ep > 1 && experts.imbalance > plan.ep)
    mistakes.add("model.experts.imbalance",
                 fmt::format("{:g} times the mean is more than all rows of ep = {} ranks together",
                             experts.imbalance, plan.ep),
                 fmt::format("at most {}, where one rank receives everything", plan.ep));
  if (experts.pad_to_capacity && experts.capacity_factor <= 0)
    mistakes.add("model.experts.pad_to_capacity", "there is no capacity to pad to",
                 "add capacity_factor, for example 1.25");
  if (plan.experts.slots % plan.ep != 0 && plan.inference()) {
    const int missing = plan.ep - experts.count % plan.ep;
    mistakes.add("plan.ep", fmt::format("ep = {} does not divide {} experts", plan.ep, plan.experts.slots),
                 fmt::format("\"redundant_experts\": {} would fill its ranks", missing));
  } else if (plan.experts.slots % plan.ep != 0) {
    const int fits = largest_ep(model, plan.tp * plan.cp * plan.dp, plan.etp, plan.ep);
    mistakes.add("plan.ep", fmt::format("ep = {} does not divide {} experts", plan.ep, experts.count),
                 fmt::format("the largest ep below it that does, and divides the ranks, is {}", fits));
  }
  if (experts.ffn % plan.etp != 0)
    mistakes.add("plan.etp",
                 fmt::format("etp = {} does not divide an expert's {} columns", plan.etp, experts.ffn),
                 "set etp to 1");
}

// DeepEP's kernels carry 8-bit rows with an fp32 scale for 128 numbers (low_latency_dispatch casts them
// itself, use_fp8; engines that serve cast before its other kernels where products read 8 bits).
double dispatched_bytes(const WorkloadSpec& workload, const Plan& plan) {
  const bool narrow = plan.inference() && plan.experts.dispatcher == TokenDispatcher::deepep &&
                      bytes_of(plan.gemm) < bytes_of(plan.activations);
  const Precision format = workload.precision.dispatch.value_or(narrow ? Precision::fp8 : plan.activations);
  const bool scaled = plan.experts.fused_dispatch() && format == Precision::fp8;
  return bytes_of(format) + (scaled ? 4.0 / 128 : 0);
}

void refuse_exchange(const WorkloadSpec& workload, Mistakes& mistakes) {
  for (const auto& [key, given] :
       {std::pair{"plan.overlap_expert_exchange", workload.plan.overlap_expert_exchange},
        {"precision.dispatch", workload.precision.dispatch.has_value()}})
    if (given)
      mistakes.add(key, "the tensor ranks that divide the experts have all tokens: none are exchanged",
                   "leave it out, or set token_dispatcher to deepep");
}
// As Megatron-Core (transformer_config.py, overlap_moe_expert_parallel_comm): a pipeline needs virtual
// stages, since pairs of stages without chunks would wait for each other in turn. Its first releases refuse
// full recompute; later ones recompute whole chunks, with exposed exchanges. DualPipe is not Megatron's.
void check_pairs(const Plan& plan, Mistakes& mistakes) {
  if (plan.mirrored()) return;
  if (!traits(plan.schedule).pairs_passes)
    mistakes.add("plan.overlap_expert_exchange", "this schedule pairs no forward with a backward",
                 plan.pp > 1 ? "use interleaved, with virtual_stages, or dualpipe" : "use 1f1b");
  else if (plan.pp > 1 && plan.virtual_stages == 1)
    mistakes.add(
        "plan.overlap_expert_exchange",
        "without virtual stages each stage's pair of passes waits for the neighbour's, one after the "
        "other; Megatron refuses it",
        "set virtual_stages to 2 or more, use dualpipe, or leave it out");
  if (plan.recompute.kind == RecomputeKind::full)
    mistakes.add(
        "plan.recompute",
        "layers that are computed again in full have exchanges of their own, which no pair of passes "
        "hides",
        "set recompute to selective or none, or leave overlap_expert_exchange out");
}
}  // namespace

std::string dividing_ep(const ModelSpec& model, int ranks, const Plan& plan) {
  if (ranks % plan.etp == 0) return fmt::format("ep = {}", largest_ep(model, ranks, plan.etp, plan.ep));
  return fmt::format("\"etp\": 1 with ep = {}", largest_ep(model, ranks, 1, plan.ep));
}

void set_dispatch(const WorkloadSpec& workload, Plan& plan) {
  plan.experts.dispatcher = workload.plan.token_dispatcher.value_or(TokenDispatcher::alltoall);
  const int ranks = plan.tp * plan.cp * plan.dp;
  // A stage's ranks do not divide by parts as tp cuts the other layers: experts are whole.
  const bool divides = plan.ep > 0 && ranks % plan.ep == 0;
  // Engines that serve never cut an expert that they spread over ranks (vLLM: --enable-expert-parallel).
  const bool whole = plan.inference() && plan.ep > 1;
  if (!workload.plan.etp && divides && (whole || ranks % (plan.ep * plan.etp) != 0)) plan.etp = 1;
}

void set_experts(const WorkloadSpec& workload, Plan& plan, Mistakes& mistakes) {
  const ModelSpec& model = workload.model;
  const ExpertSpec& experts = model.experts;
  set_slots(workload, plan, mistakes);
  if (experts.count == 0) {
    if (workload.plan.ep.value_or(1) > 1 || workload.plan.etp.value_or(1) > 1)
      mistakes.add(workload.plan.ep.value_or(1) > 1 ? "plan.ep" : "plan.etp",
                   "the model has no experts to divide",
                   "leave ep and etp out, or choose a mixture-of-experts model");
    if (workload.plan.overlap_expert_exchange)
      mistakes.add("plan.overlap_expert_exchange", "the model has no experts", "leave it out");
    if (workload.plan.dispatcher_sms)
      mistakes.add("plan.dispatcher_sms", "the model has no experts to send tokens to", "leave it out");
    if (workload.plan.token_dispatcher.value_or(TokenDispatcher::alltoall) != TokenDispatcher::alltoall)
      mistakes.add("plan.token_dispatcher", "the model has no experts to send tokens to", "leave it out");
    if (workload.precision.dispatch)
      mistakes.add("precision.dispatch", "the model has no experts to send tokens to", "leave it out");
    plan.ep = plan.etp = 1;
    return;
  }
  const int ranks = plan.tp * plan.cp * plan.dp;
  check_counts(model, plan, mistakes);
  if (plan.tp > 1 && !plan.sequence_parallel && plan.task != Task::decode && !plan.sliced_experts())
    mistakes.add("plan.sequence_parallel",
                 "experts with tensor parallelism need sequence parallelism: each token must enter the "
                 "dispatch once",
                 "leave sequence_parallel out");

  const int divided = plan.ep * plan.etp;
  plan.experts.copies = std::max(1, ranks / divided);
  plan.experts.on_own_ranks = plan.ep > 1 || plan.etp != plan.tp;
  if (ranks % divided != 0) {
    std::string help = dividing_ep(model, ranks, plan) + " would";
    if (plan.etp > 1 && ranks % plan.ep == 0) help = "\"etp\": 1 would";
    // A factor that divides the ranks without the other one is not at fault.
    const bool by_etp = workload.plan.etp && plan.etp > 1 && ranks % plan.ep == 0;
    mistakes.add(by_etp ? "plan.etp" : "plan.ep",
                 fmt::format("ep {} x etp {} = {} does not divide the tp x cp x dp = {} ranks of a stage",
                             plan.ep, plan.etp, divided, ranks),
                 help);
  } else if (!stages_agree(plan)) {
    mistakes.add("plan.rank_order",
                 "pp comes where the ranks of a stage and those of its experts are counted differently",
                 "put pp last, as in the default [tp, cp, ep, dp, pp]");
  }
  if (workload.plan.dispatcher_sms && !plan.experts.fused_dispatch())
    mistakes.add("plan.dispatcher_sms", "only the kernels of DeepEP and HybridEP hold a number of SMs",
                 "leave it out, or set token_dispatcher to deepep or hybridep");
  plan.experts.dispatcher_units = workload.plan.dispatcher_sms.value_or(
      plan.experts.dispatcher == TokenDispatcher::hybridep ? kHybridEpUnits : kDeepEpUnits);
  plan.experts.dispatch_bytes = dispatched_bytes(workload, plan);
  if (workload.plan.overlap_expert_exchange && plan.experts.dispatcher == TokenDispatcher::allgather)
    mistakes.add("plan.overlap_expert_exchange", "only all-to-alls are overlapped, not the all-gather",
                 "set token_dispatcher to alltoall, deepep or hybridep");
  if (workload.precision.dispatch && plan.experts.dispatcher == TokenDispatcher::allgather)
    mistakes.add("precision.dispatch", "the all-gather sends tokens in the format of activations",
                 "leave it out, or set token_dispatcher to alltoall, deepep or hybridep");
  if (plan.ep > 1 && plan.sliced_experts()) refuse_exchange(workload, mistakes);
  plan.experts.overlap = workload.plan.overlap_expert_exchange && plan.ep > 1;
  if (plan.experts.overlap && !plan.inference()) check_pairs(plan, mistakes);
  const double capacity = experts.capacity_factor;
  // The busiest rank receives at most all rows, ep times the mean.
  const double busiest = std::min(experts.imbalance, static_cast<double>(plan.ep));
  plan.experts.load = capacity > 0 ? std::min(busiest, capacity) : busiest;
  if (experts.pad_to_capacity) plan.experts.load = capacity;
  plan.experts.padding = experts.pad_to_capacity;
}
}  // namespace topsim::workloads
