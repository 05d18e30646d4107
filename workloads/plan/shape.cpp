// Checks the model against the plan: counts are positive, tensor-parallel ranks divide what they split.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "workloads/model.hpp"
#include "workloads/plan/parts.hpp"

namespace topsim::workloads {

namespace {

void check_latent(const AttentionSpec& attention, Mistakes& mistakes) {
  const auto needed = [&](const char* key, int value) {
    if (value < 1)
      mistakes.add(
          fmt::format("model.attention.{}", key), fmt::format("latent attention needs {}", key),
          "DeepSeek-V3 has kv_lora_rank 512, qk_nope_head_dim 128, qk_rope_head_dim 64, v_head_dim 128");
  };
  needed("kv_lora_rank", attention.kv_lora_rank);
  needed("qk_nope_head_dim", attention.qk_nope_head_dim);
  needed("qk_rope_head_dim", attention.qk_rope_head_dim);
  needed("v_head_dim", attention.v_head_dim);
}

// The largest tp below the given one that passes all checks of this file and divides the sequence and the
// number of accelerators.
int proposed_tp(const WorkloadSpec& workload, std::uint32_t accelerators) {
  const ModelSpec& model = workload.model;
  const PlanSpec& plan = workload.plan;
  const bool latent = model.attention.kind == AttentionKind::mla;
  const int sequence = workload.sequence.value_or(model.sequence);
  const bool generates = serves(workload.task);
  const auto divides = [](std::int64_t divisor, std::int64_t value) { return value % divisor == 0; };
  int tp = plan.tp;
  while (--tp > 1) {
    const bool layers = divides(tp, model.heads) &&
                        (count_of(model, LayerKind::dense) == 0 || divides(tp, model.ffn)) &&
                        (model.experts.count == 0 || plan.etp || divides(tp, model.experts.ffn)) &&
                        (latent || divides(tp, model.kv_heads) || divides(model.kv_heads, tp));
    const bool ranks = divides(std::int64_t{tp} * plan.pp * plan.cp, accelerators);
    if (layers && ranks && (generates || divides(std::int64_t{tp} * plan.cp, sequence))) break;
  }
  return std::max(1, tp);
}
// The numbers of heads on either side of the model's that divide its width, and that tensor ranks and groups
// of query heads divide.
std::vector<int> even_heads(const ModelSpec& model, int tp) {
  const int groups = model.kv_heads > 0 && model.kv_heads < model.heads ? model.kv_heads : 1;
  const auto even = [&](int heads) {
    return model.hidden % heads == 0 && heads % tp == 0 && heads % groups == 0;
  };
  std::vector<int> found;
  for (int heads = model.heads - 1; heads > 0 && found.empty(); --heads)
    if (even(heads)) found.push_back(heads);
  const std::size_t below = found.size();
  for (int heads = model.heads + 1; heads <= model.hidden && found.size() == below; ++heads)
    if (even(heads)) found.push_back(heads);
  return found;
}
std::string other_heads(const ModelSpec& model, int tp) {
  const std::vector<int> even = even_heads(model, tp);
  constexpr const char* kWidth =
      "where a head is wider or narrower than hidden / heads, say so: \"head_dim\": 128";
  return even.empty() ? kWidth : fmt::format("heads = {}; or, {}", fmt::join(even, " or "), kWidth);
}
}  // namespace

void check_shape(const WorkloadSpec& workload, std::uint32_t accelerators, Mistakes& mistakes) {
  const ModelSpec& model = workload.model;
  const PlanSpec& plan = workload.plan;
  const auto positive = [&](const char* path, int value) {
    if (value < 1)
      mistakes.add(path, fmt::format("{} must be at least 1, is {}", path, value),
                   value == 0 ? "state it, or name a model of topsim list models" : "");
    return value >= 1;
  };
  bool sound = positive("plan.tp", plan.tp);
  sound &= positive("plan.pp", plan.pp);
  sound &= positive("plan.cp", plan.cp);
  sound &= positive("plan.ep", plan.ep.value_or(1));
  sound &= positive("plan.virtual_stages", plan.virtual_stages);
  sound &= positive("plan.micro_batch", plan.micro_batch.value_or(1));
  sound &= positive("model.layers", model.layers);
  sound &= positive("model.hidden", model.hidden);
  sound &= positive("model.heads", model.heads);
  sound &= positive("model.vocab", model.vocab);
  mistakes.finish();
  if (!sound) return;

  const std::string proposed = fmt::format("tp = {} would fit the model, the sequence and the accelerators",
                                           proposed_tp(workload, accelerators));
  const auto divisible = [&](const char* what, int value) {
    if (value % plan.tp == 0) return;
    mistakes.add("plan.tp", fmt::format("tp = {} does not divide the model's {} {}", plan.tp, value, what),
                 proposed);
  };
  if (model.head_dim < 1 && model.hidden % model.heads != 0 && model.attention.kind != AttentionKind::mla)
    mistakes.add("model.heads",
                 fmt::format("hidden = {} does not divide into {} heads", model.hidden, model.heads),
                 other_heads(model, plan.tp));
  divisible("attention heads", model.heads);
  if (count_of(model, LayerKind::dense) > 0) divisible("FFN columns", model.ffn);
  if (model.parallel_residual && (model.experts.count > 0 || model.attention.kind == AttentionKind::mla))
    mistakes.add("model.parallel_residual",
                 "attention and network side by side exist for dense layers with mha or gqa attention",
                 "leave parallel_residual out");
  if (model.parallel_residual && divides_products(plan.tp_overlap.value_or(TensorOverlap::none)) &&
      plan.tp > 1)
    mistakes.add("plan.tp_overlap",
                 "parts overlap an exchange of each half's own; with parallel_residual both share one",
                 "set tp_overlap to async");
  if (model.attention.full_every > 0 && model.attention.window == 0)
    mistakes.add("model.attention.full_every", "every layer sees all keys where there is no window",
                 "add window, or leave full_every out");
  // Transformer Engine (attention/dot_product_attention/context_parallel.py) has windows under a2a and
  // all_gather alone.
  const int window = model.attention.causal ? model.attention.window : model.attention.window / 2;
  const int sequence = workload.sequence.value_or(model.sequence);
  if (window > 0 && window < sequence && plan.cp > 1 && plan.cp_kind == ContextKind::ring)
    mistakes.add("plan.cp_kind", "a ring of context-parallel ranks takes no sliding windows",
                 "choose cp_kind all-gather or ulysses, or set cp to 1");
  if (model.attention.kind == AttentionKind::mla) {
    check_latent(model.attention, mistakes);
    return;
  }
  const bool own_keys = model.kv_heads == model.heads;  // every head: what is wrong was said of the heads
  if (!own_keys && model.kv_heads % plan.tp != 0 && plan.tp % model.kv_heads != 0)
    mistakes.add("plan.tp",
                 fmt::format("tp = {} neither divides nor is a multiple of the model's {} key-value heads",
                             plan.tp, model.kv_heads),
                 proposed);
  if (model.heads % model.kv_heads != 0) {
    int even = std::min(model.kv_heads, model.heads);
    while (model.heads % even != 0) --even;
    mistakes.add("model.kv_heads",
                 fmt::format("{} heads cannot share {} key-value heads evenly", model.heads, model.kv_heads),
                 fmt::format("kv_heads = {} would divide them", even));
  }
}
}  // namespace topsim::workloads
