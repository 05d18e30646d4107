#include "sim/scenario/findings/plan_findings.hpp"

#include <fmt/format.h>

#include <cstdint>
#include <string>
#include <string_view>

#include "workloads/framework.hpp"
#include "workloads/model.hpp"
#include "workloads/plan.hpp"

namespace topsim::scenario {
namespace {
using report::Severity;

// Megatron-LM, training/tokenizer: vocab_size_with_padding, make_vocab_size_divisible_by 128 times tp.
void find_words(const workloads::ModelSpec& model, int tp, std::vector<report::Finding>& out) {
  if (tp < 1 || model.vocab % tp == 0) return;
  const std::int64_t unit = std::int64_t{128} * tp;
  out.push_back(
      {Severity::note,
       fmt::format("a vocabulary of {} does not divide over tp = {}: every rank is taken to hold {:.1f} "
                   "words, without padding",
                   model.vocab, tp, static_cast<double>(model.vocab) / tp),
       "workload.model.vocab",
       fmt::format("vocab = {}, a multiple of 128 x tp, is what Megatron pads it to",
                   (model.vocab + unit - 1) / unit * unit)});
}

// model.cpp extends the table to the sequence, as Megatron's --max-position-embeddings would.
void find_long_sequence(const workloads::WorkloadSpec& workload, std::vector<report::Finding>& out) {
  const workloads::ModelSpec& model = workload.model;
  const int sequence = workload.sequence.value_or(0);
  if (workloads::positions_of(model) != workloads::Positions::learned || model.sequence == 0 ||
      sequence <= model.sequence)
    return;
  out.push_back({Severity::warning,
                 fmt::format("{} has learned positions for {} tokens, and a sequence has {}: its table is "
                             "taken to have a row for each",
                             model.name.empty() ? "the model" : model.name, model.sequence, sequence),
                 "workload.sequence",
                 fmt::format("a sequence of at most {}; or workload.model.sequence={}, or positions rotary "
                             "or alibi, for a model that is trained so",
                             model.sequence, sequence)});
}

// Engines let these modules propose tokens that the model then checks, several in a step.
void find_speculation(const workloads::WorkloadSpec& workload, std::vector<report::Finding>& out) {
  if (!workloads::serves(workload.task) || predictions_of(workload.model) == 0) return;
  out.push_back(
      {Severity::note,
       "prediction_layers has no effect: a decode step yields one token of each request, without "
       "speculative decoding",
       "workload.model.prediction_layers",
       "leave it out, or divide the time of a token by the tokens that a step of your engine yields"});
}

// The factor of gpu_slow, a fault, is of the speed; this one is of the time.
void find_fast_ranks(const workloads::ComputeSpec& compute, std::vector<report::Finding>& out) {
  for (const auto& [rank, factor] : compute.slow_ranks)
    if (factor < 1)
      out.push_back(
          {Severity::warning,
           fmt::format("rank {} is faster than the others: slow_ranks gives factors on compute times", rank),
           fmt::format("workload.compute.slow_ranks[\"{}\"]", rank),
           fmt::format("{:.3g} makes it {:g} times as fast as the others", 1 / factor, factor)});
}

// A year stands for the newest set that is named by its year alone; later ones may have longer names.
void find_release(const workloads::WorkloadSpec& workload, std::vector<report::Finding>& out) {
  const std::string_view name = workload.framework;
  const std::size_t at = name.find('@');
  if (at == std::string_view::npos) return;
  const std::string_view year = name.substr(at + 1);
  const workloads::Framework& row = workloads::framework(name);
  if (row.release == year) return;
  std::string newer;
  for (const workloads::Framework& other : workloads::frameworks()) {
    const std::string_view since = std::string_view(other.release).substr(0, 4);
    if (other.name == row.name && since > row.release && since <= year)
      newer += (newer.empty() ? "" : ", ") + workloads::full_name(other);
  }
  std::string lacks = workloads::lacks_of(row, workload);
  if (newer.empty() && lacks.empty()) return;
  const workloads::Framework* next = lacks.empty() ? nullptr : workloads::remedied_by(row, workload);
  if (next != nullptr)
    lacks += fmt::format(" ({} has {})", workloads::full_name(*next),
                         lacks.find(", ") == std::string::npos ? "it" : "both");
  out.push_back({Severity::note,
                 fmt::format("{} is {}{}{}", name, workloads::full_name(row),
                             lacks.empty() ? "" : ", which has " + lacks,
                             newer.empty() ? "" : ", and there are newer sets"),
                 "workload.framework", newer.empty() ? "topsim list frameworks shows all sets" : newer});
}
// Tensor ranks that generate tokens and divide the experts have all of them.
bool exchanges_tokens(const workloads::WorkloadSpec& workload) {
  const workloads::PlanSpec& plan = workload.plan;
  return !workloads::serves(workload.task) ||
         !workloads::divides_experts(plan.tp, plan.ep.value_or(1), plan.etp.value_or(1),
                                     plan.token_dispatcher.value_or(workloads::TokenDispatcher::alltoall));
}
}  // namespace

std::vector<report::Finding> plan_findings(const workloads::WorkloadSpec& workload) {
  std::vector<report::Finding> out;
  const workloads::ModelSpec& model = workload.model;
  const workloads::PlanSpec& plan = workload.plan;
  find_fast_ranks(workload.compute, out);
  if (workload.trace || model.layers == 0 || !workload.compute.stage_times.forward.empty()) return out;
  find_release(workload, out);
  find_words(model, plan.tp, out);
  find_long_sequence(workload, out);
  find_speculation(workload, out);
  const int kv_heads = model.kv_heads > 0 ? model.kv_heads : model.heads;
  if (plan.cp > 1 && plan.cp_kind == workloads::ContextKind::ulysses &&
      model.attention.kind != workloads::AttentionKind::mla && kv_heads % (plan.tp * plan.cp) != 0)
    out.push_back(
        {Severity::note,
         fmt::format("{} key-value heads are fewer than, or no multiple of, tp x cp = {} ranks: Ulysses is "
                     "taken to repeat them",
                     kv_heads, plan.tp * plan.cp),
         "workload.plan.cp", "cp_kind ring splits no heads"});
  if (plan.cp == 1 && plan.cp_kind != workloads::ContextKind::ring)
    out.push_back({Severity::note, "cp_kind has no effect: cp is 1, and no rank shares its sequence",
                   "workload.plan.cp_kind", "cp above 1, or leave cp_kind out"});
  if (model.experts.count > 0 && model.experts.imbalance > 1 && plan.ep > 1 && exchanges_tokens(workload))
    out.push_back(
        {Severity::note,
         fmt::format("every rank is timed as the one with {:g} times the mean of the rows, and sends and "
                     "receives as many: all-to-alls show {:g} times the bytes that all ranks send together",
                     model.experts.imbalance, model.experts.imbalance),
         "workload.model.experts.imbalance", "imbalance 1 shows the bytes that ranks send on average"});
  if (plan.schedule == workloads::Schedule::one_f_one_b && plan.virtual_stages > 1)
    out.push_back(
        {Severity::note,
         fmt::format("1f1b with {} virtual stages runs as the interleaved schedule", plan.virtual_stages),
         "workload.plan.schedule", "\"interleaved\" says so; virtual_stages 1 is plain 1f1b"});
  return out;
}
}  // namespace topsim::scenario
