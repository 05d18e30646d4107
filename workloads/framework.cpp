#include "workloads/framework.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "sim/base/error.hpp"
#include "workloads/compute/compute_model.hpp"
#include "workloads/framework/rows.hpp"

namespace topsim::workloads {

std::span<const Framework> frameworks() {
  static const std::array table{megatron_2025(),
                                megatron_2025_fsdp(),
                                megatron_2025_mlperf(),
                                megatron_2024(),
                                megatron_2024_mlperf(),
                                megatron_2024_core06(),
                                megatron_2023(),
                                megatron_2023_llama(),
                                megatron_2022(),
                                megatron_2021(),
                                megatron_2019(),
                                ddp(),
                                ddp_compiled(),
                                data_parallel(),
                                fsdp(),
                                fsdp_2023(),
                                fsdp_flat(),
                                fsdp_compiled(),
                                fsdp_compiled_loss(),
                                fsdp_eager_2025(),
                                fsdp_compiled_2026(),
                                fsdp_eager_2026(),
                                fsdp_automodel(),
                                deepspeed(),
                                deepspeed_transformers(),
                                deepspeed_2022(),
                                internevo(),
                                paddle(),
                                maxtext_2025(),
                                maxtext(),
                                maxtext_gpu(),
                                pax_2024(),
                                pax()};
  return table;
}

namespace {
// Its releases were compared with the newest sets (configs/validation/megatron-bridge.json).
constexpr int kLastYear = 2026;

bool is_year(std::string_view release) {
  return release.size() == 4 && release.find_first_not_of("0123456789") == std::string_view::npos;
}

// The set of figures for that year; years compare as text.
const Framework* set_of_year(std::string_view base, std::string_view year) {
  const Framework* oldest = nullptr;
  for (const Framework& row : frameworks()) {
    if (row.name != base || !is_year(row.release)) continue;
    if ((row.since.empty() ? row.release : row.since) <= year) return &row;  // newest first
    oldest = &row;
  }
  return oldest;
}

std::vector<std::string> releases_of(std::string_view name) {
  std::vector<std::string> names{std::string(name)};
  std::string oldest;
  for (const Framework& row : frameworks()) {
    if (row.name != name) continue;
    names.push_back(full_name(row));
    if (is_year(row.release)) oldest = row.release;  // newest first
  }
  if (oldest.empty()) return names;
  for (int year = kLastYear; year >= std::stoi(oldest); --year)
    if (const std::string each = fmt::format("{}@{}", name, year);
        std::find(names.begin(), names.end(), each) == names.end())
      names.push_back(each);
  return names;
}
}  // namespace

std::vector<std::string> framework_names() {
  // Messages list the first of them: every name once, then its releases.
  std::vector<std::string> names, releases;
  for (const Framework& row : frameworks()) {
    if (std::find(names.begin(), names.end(), row.name) != names.end()) continue;
    for (std::string& each : releases_of(row.name))
      (each == row.name ? names : releases).push_back(std::move(each));
  }
  names.insert(names.end(), releases.begin(), releases.end());
  return names;
}

const Framework& framework(std::string_view name) {
  const std::size_t at = name.find('@');
  const std::string_view base = name.substr(0, at);
  const std::string_view release = at == std::string_view::npos ? std::string_view() : name.substr(at + 1);
  std::string known;
  for (const Framework& row : frameworks()) {
    if (row.name == base && (release.empty() || row.release == release)) return row;
    known += (known.empty() ? "" : ", ") + full_name(row);
  }
  if (is_year(release))
    if (const Framework* row = set_of_year(base, release)) return *row;
  Problem problem;
  problem.path = "workload.framework";
  problem.message = fmt::format("unknown framework \"{}\"", name);
  problem.help = "known: " + known;
  throw ConfigError({problem});
}

std::string lacks_of(const Framework& set, const WorkloadSpec& workload) {
  std::string text;
  if (set.attention == AttentionKernel::unfused && !workload.model.attention.kernel)
    text = "no FlashAttention: attention scores are stored";
  if (set.family == FrameworkFamily::megatron && set.zero == 0 && !workload.plan.zero)
    text += fmt::format("{}no distributed optimiser unless zero is 1", text.empty() ? "" : ", ");
  return text;
}

const Framework* remedied_by(const Framework& set, const WorkloadSpec& workload) {
  const Framework* next = nullptr;
  for (const Framework& row : frameworks())  // newest first
    if (row.name == set.name && is_year(row.release) && row.release > set.release &&
        lacks_of(row, workload).empty())
      next = &row;
  return next;
}

namespace {
// Whether sets before 2024 lack what the workload asks for: Llama's layers, mixtures, 8 bits, context
// parallelism, adapters, packing, graphs, user buffers, groups of shards, FSDP in two dimensions; or
// FlashAttention, where the scores that they store would grow with a long sequence.
bool needs_later(const WorkloadSpec& workload, const Framework& set) {
  constexpr int kLongSequence = 4096;  // tokens
  const ModelSpec& model = workload.model;
  const PlanSpec& plan = workload.plan;
  const bool llama = model.gated_ffn || (model.kv_heads > 0 && model.kv_heads < model.heads);
  const bool shards = plan.zero_group.kind != ZeroGroup::Kind::all || plan.hsdp_shard ||
                      plan.overlap_param_gather.value_or(false) ||
                      (set.family == FrameworkFamily::fsdp && plan.tp * plan.pp > 1);
  const bool scores =
      set.attention == AttentionKernel::unfused && workload.sequence.value_or(model.sequence) > kLongSequence;
  return llama || model.experts.count > 0 || bytes_of(workload.precision.gemm) < 2 || plan.cp > 1 ||
         workload.task == Task::lora || workload.packing.on || workload.compute.cuda_graph.value_or(false) ||
         plan.tp_overlap == TensorOverlap::userbuffers || shards || scores;
}
}  // namespace

std::string full_name(const Framework& set) {
  return fmt::format("{}@{}", set.name, set.release);
}

const Framework& set_of(const WorkloadSpec& workload) {
  const Framework& named = framework(workload.framework);
  if (workload.framework.find('@') != std::string::npos) return named;
  if (workload.plan.tp_overlap == TensorOverlap::micro_pipeline && !named.compiled.empty())
    return framework(fmt::format("{}@{}", named.name, named.compiled));
  if (workload.plan.wrap_least && !named.by_size.empty())
    return framework(fmt::format("{}@{}", named.name, named.by_size));
  if (workload.host.nccl && !named.on_gpus.empty())
    return framework(fmt::format("{}@{}", named.name, named.on_gpus));
  const int measured = workload.host.software_year;
  if (measured == 0 || serves(workload.task)) return named;
  const Framework* older = set_of_year(named.name, std::to_string(measured));
  constexpr std::string_view kLater = "2024";
  if (older != nullptr && older->release < kLater && needs_later(workload, *older))
    older = set_of_year(named.name, kLater);
  if (older == nullptr || older->release >= named.release) return named;
  return workload.plan.zero.value_or(older->zero) <= older->most_zero ? *older : named;
}

const Framework& framework_of(const WorkloadSpec& workload) {
  const Framework& named = set_of(workload);
  if (serves(workload.task)) return named;  // shards no gradients
  if (named.sharded.empty() || workload.plan.zero.value_or(named.zero) <= named.most_zero) return named;
  return framework(fmt::format("{}@{}", named.name, named.sharded));
}
}  // namespace topsim::workloads
