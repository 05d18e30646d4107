// The advice when a plan does not fit: the cheapest change after which it does.
#include <fmt/format.h>

#include <functional>
#include <optional>

#include "sim/base/error.hpp"
#include "workloads/compute/compute_model.hpp"
#include "workloads/memory/memory.hpp"
#include "workloads/model.hpp"

namespace topsim::workloads {
namespace {

std::string gibibytes(double bytes) {
  return fmt::format("{:.1f} GiB", bytes / (1 << 30));
}

std::string_view largest_part(const MemoryParts& parts) {
  std::string_view name = "activations";
  double most = parts.activations;
  const auto consider = [&](double bytes, std::string_view part) {
    if (bytes > most) most = bytes, name = part;
  };
  consider(parts.weights, "weights");
  consider(parts.gradients, "gradients");
  consider(parts.optimizer, "optimiser states");
  consider(parts.recompute, "the layer computed again");
  consider(parts.working, "what passes through a layer");
  consider(parts.kv_cache, "the key-value cache");
  consider(parts.update, "the update's fp32 gradients");
  return name;
}

std::optional<MemoryUse> try_plan(const WorkloadSpec& workload, const topology::Accelerator& accelerator,
                                  std::uint32_t accelerators) {
  try {
    return memory_use(workload, accelerator, accelerators);
  } catch (const ConfigError&) {
    return std::nullopt;  // not a valid plan
  }
}

// What else must be written if the scenario states it.
std::string beside(const WorkloadSpec& workload, const WorkloadSpec& changed, std::uint32_t accelerators) {
  const PlanSpec &before = workload.plan, &after = changed.plan;
  std::string text;
  if (before.dp && !after.dp)
    text +=
        fmt::format(", dp = {}", accelerators / static_cast<std::uint32_t>(after.tp * after.pp * after.cp));
  if (!before.stage_layers.empty() && after.stage_layers.empty()) text += ", stage_layers left out";
  return text;
}

using Change = std::function<std::string(WorkloadSpec&)>;  // applies it and says what it was

// Changes that keep the parallel dimensions; the faster of two comes first.
void add_savings(const WorkloadSpec& workload, std::vector<Change>& changes) {
  const auto add = [&](auto set) { changes.emplace_back(set); };
  const auto zero = [&](int stage) {
    add([stage](WorkloadSpec& w) { return w.plan.zero = stage, fmt::format("zero = {}", stage); });
  };
  const auto recompute = [&](RecomputeKind kind, const char* name) {
    add([kind, name](WorkloadSpec& w) {
      w.plan.recompute = RecomputeSpec{kind, std::nullopt};
      return fmt::format("recompute = {}", name);
    });
  };
  zero(1);
  add([](WorkloadSpec& w) {
    return w.plan.sequence_parallel = true, std::string("sequence_parallel = true");
  });
  if (workload.task == Task::lora && bytes_of(workload.precision.gemm) < 2)
    add([](WorkloadSpec& w) {
      return w.precision.frozen_weights = Precision::fp8, std::string("precision.frozen_weights = fp8");
    });
  zero(2);
  recompute(RecomputeKind::selective, "selective");
  zero(3);
  recompute(RecomputeKind::full, "full");
  // The batch stays divisible: micro_batch is only halved.
  for (int batch = workload.plan.micro_batch.value_or(1) / 2; batch > 0; batch /= 2)
    add([batch](WorkloadSpec& w) {
      return w.plan.micro_batch = batch, fmt::format("micro_batch = {}", batch);
    });
  if (workload.task == Task::prefill || workload.task == Task::decode)
    add([](WorkloadSpec& w) {
      return w.precision.weights = WeightFormat::int8, std::string("precision.weights = int8");
    });
}

Change with_full_recompute(const Change& change) {
  return [change](WorkloadSpec& w) {
    w.plan.recompute = RecomputeSpec{RecomputeKind::full, std::nullopt};
    return change(w) + " with recompute = full";
  };
}

Change larger(int PlanSpec::*dimension, const char* name, int factor) {
  return [=](WorkloadSpec& w) {
    w.plan.*dimension *= factor;
    if (dimension != &PlanSpec::ep) w.plan.dp.reset();  // experts divide the existing ranks
    if (dimension == &PlanSpec::pp) w.plan.stage_layers.clear();
    return fmt::format("{} = {}", name, w.plan.*dimension);
  };
}

}  // namespace

std::string fitting_change(const WorkloadSpec& workload, const topology::Accelerator& accelerator,
                           std::uint32_t accelerators) {
  std::vector<Change> changes;
  add_savings(workload, changes);
  const auto factors = {2, 4, 8, 16, 32, 64};
  for (const int factor : factors) {
    changes.push_back(larger(&PlanSpec::ep, "ep", factor));
    changes.push_back(larger(&PlanSpec::tp, "tp", factor));
    changes.push_back(larger(&PlanSpec::pp, "pp", factor));
    changes.push_back(larger(&PlanSpec::cp, "cp", factor));
  }
  changes.push_back(with_full_recompute([](WorkloadSpec& w) {
    w.plan.micro_batch = 1;
    return std::string("micro_batch = 1");
  }));
  for (const int factor : factors)
    changes.push_back(with_full_recompute(larger(&PlanSpec::pp, "pp", factor)));
  // The slowest change: the optimiser's step crosses PCIe.
  changes.emplace_back(
      [](WorkloadSpec& w) { return w.plan.offload = Offload::cpu, std::string("offload = cpu"); });
  for (const Change& change : changes) {
    WorkloadSpec changed = workload;
    const std::string what = change(changed);
    // A tensor group larger than a node is no remedy.
    if (changed.plan.tp > std::max(workload.plan.tp, workload.host.accelerators)) continue;
    const auto use = try_plan(changed, accelerator, accelerators);
    if (use && use->fits())
      return fmt::format("{}{} would fit ({})", what, beside(workload, changed, accelerators),
                         gibibytes(use->peak().total()));
  }
  return {};
}

void require_fit(const WorkloadSpec& workload, const topology::Accelerator& accelerator,
                 std::uint32_t accelerators) {
  const MemoryUse use = memory_use(workload, accelerator, accelerators);
  if (use.fits()) return;
  const double total = use.peak().total();
  Problem problem;
  problem.path = "workload.plan";
  problem.message = fmt::format("does not fit: {} {} needs {}, {} has {}", use.holder, use.fullest,
                                gibibytes(total), accelerator.id, gibibytes(use.capacity));
  problem.label =
      fmt::format("{} too much, most of it {}", gibibytes(total - use.capacity), largest_part(use.peak()));
  const std::string change = fitting_change(workload, accelerator, accelerators);
  problem.help = (change.empty() ? "no change of one dimension fits: use more accelerators, or accelerators "
                                   "with more memory"
                                 : change) +
                 "; --allow-oom simulates anyway";
  throw ConfigError({problem});
}
}  // namespace topsim::workloads
