#include "sim/study/plan_misfit.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <optional>
#include <utility>
#include <vector>

#include "sim/base/error.hpp"
#include "workloads/memory/memory.hpp"

namespace topsim::study {
namespace {
constexpr std::uint32_t kMostTimes = 64;

std::string gibibytes_of(double bytes) {
  return fmt::format("{:.1f} GiB", bytes / (1 << 30));
}

// None if the plan is invalid.
std::optional<workloads::MemoryUse> use_of(const PlanJob& job, const PlanChoice& choice,
                                           std::uint32_t accelerators) {
  if (!has_known_stages(job.workload, choice)) return std::nullopt;
  try {
    return workloads::memory_use(with_plan(job.workload, choice), job.accelerator, accelerators);
  } catch (const ConfigError&) {
    return std::nullopt;
  }
}

std::string words_of(const PlanChoice& choice, std::uint32_t accelerators) {
  std::string words =
      fmt::format("tp {} pp {} dp {}", choice.tp, choice.pp,
                  accelerators / static_cast<std::uint32_t>(choice.tp * choice.pp * choice.cp));
  if (choice.cp > 1) words += fmt::format(" cp {}", choice.cp);
  if (choice.ep > 1) words += fmt::format(" ep {}", choice.ep);
  return words + fmt::format(", micro-batch {}, recompute {}, zero {}", choice.micro_batch,
                             recompute_words(choice), choice.zero);
}

std::string counted(const PlanJob& job, std::uint32_t accelerators) {
  return job.grows ? fmt::format("--gpus {}", accelerators) : fmt::format("{} accelerators", accelerators);
}

// "--gpus 16 would do (tp 8 pp 2 ...)": the smallest doubling at which the plan fits with one dimension
// increased.
std::string more_accelerators(const PlanJob& job, const PlanChoice& choice) {
  for (std::uint32_t times = 2; times <= kMostTimes; times *= 2) {
    const std::uint32_t accelerators = job.accelerators * times;
    std::vector<PlanChoice> choices(4, choice);  // the first has more replicas, which shard states further
    choices[1].pp *= static_cast<int>(times);
    choices[2].cp *= static_cast<int>(times);
    choices[3].ep *= static_cast<int>(times);
    for (const PlanChoice& larger : choices) {
      const auto use = use_of(job, larger, accelerators);
      if (use && use->fits())
        return fmt::format("{} would do ({})", counted(job, accelerators), words_of(larger, accelerators));
    }
  }
  return {};
}

bool any_holds_together(const PlanJob& job, std::span<const PlanChoice> choices, std::uint32_t accelerators) {
  return std::any_of(choices.begin(), choices.end(),
                     [&](const PlanChoice& choice) { return use_of(job, choice, accelerators).has_value(); });
}
}  // namespace

Misfit nearest_misfit(const PlanJob& job, std::span<const PlanChoice> too_large) {
  const PlanChoice* nearest = &too_large.front();
  workloads::MemoryUse least = *use_of(job, *nearest, job.accelerators);
  for (const PlanChoice& each : too_large) {
    workloads::MemoryUse use = *use_of(job, each, job.accelerators);
    if (use.peak().total() < least.peak().total()) least = std::move(use), nearest = &each;
  }
  const bool host = least.fits_accelerator();  // what is offloaded is too large instead
  const double bytes = host ? least.host : least.peak().total();
  Misfit misfit;
  misfit.what =
      fmt::format("needs {}{}, {} too much ({})", gibibytes_of(bytes), host ? " of host memory per node" : "",
                  gibibytes_of(bytes - (host ? least.host_capacity : least.room())),
                  words_of(*nearest, job.accelerators));
  const std::string change =
      workloads::fitting_change(with_plan(job.workload, *nearest), job.accelerator, job.accelerators);
  const std::string more = more_accelerators(job, *nearest);
  if (!more.empty()) misfit.help = more;
  if (!change.empty()) misfit.help += (more.empty() ? "" : "; ") + ("here " + change);
  if (misfit.help.empty()) misfit.help = "use more accelerators, or accelerators with more memory";
  return misfit;
}

std::string what_would_divide(const PlanJob& job, std::span<const PlanChoice> choices) {
  const auto given = static_cast<std::uint32_t>(job.workload.plan.global_batch.value_or(1));
  const std::uint32_t batch = (given + job.accelerators - 1) / job.accelerators * job.accelerators;
  workloads::WorkloadSpec larger = job.workload;
  larger.plan.global_batch = static_cast<int>(batch);
  std::string remedies;
  const PlanJob with_batch{larger, job.accelerator, job.accelerators, job.grows};
  if (batch != given && any_holds_together(with_batch, choices, job.accelerators))
    remedies = fmt::format("a global batch of {}", batch);
  for (std::uint32_t fewer = std::bit_floor(job.accelerators); fewer > 0; fewer /= 2) {
    if (fewer == job.accelerators || !any_holds_together(job, choices, fewer)) continue;
    remedies += (remedies.empty() ? "" : ", or ") + fmt::format("--gpus {}", fewer);
    break;
  }
  const std::string why = "the global batch, the layers or the heads divide by none of them";
  return remedies.empty() ? why : why + "; " + remedies + ", may do";
}
}  // namespace topsim::study
