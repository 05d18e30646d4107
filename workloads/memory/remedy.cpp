// What to say when a plan does not fit: the first change, from the cheapest on, after which it does.
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
  consider(parts.kv_cache, "the key-value cache");
  return name;
}

std::optional<MemoryUse> try_plan(const WorkloadSpec& workload, const topology::Accelerator& accelerator,
                                  std::uint32_t accelerators) {
  try {
    return memory_use(workload, accelerator, accelerators);
  } catch (const ConfigError&) {
    return std::nullopt;  // not a plan at all
  }
}

std::string find_remedy(const WorkloadSpec& workload, const topology::Accelerator& accelerator,
                        std::uint32_t accelerators) {
  using Change = std::function<std::string(WorkloadSpec&)>;  // applies it and says what it was
  std::vector<Change> changes;
  changes.emplace_back([](WorkloadSpec& w) { return w.plan.zero = 1, std::string("zero = 1"); });
  changes.emplace_back([](WorkloadSpec& w) {
    return w.plan.sequence_parallel = true, std::string("sequence_parallel = true");
  });
  if (workload.task == Task::lora && bytes_of(workload.precision.gemm) < 2)
    changes.emplace_back([](WorkloadSpec& w) {
      return w.precision.frozen_weights = Precision::fp8, std::string("precision.frozen_weights = fp8");
    });
  for (const auto& [kind, name] :
       {std::pair{RecomputeKind::selective, "selective"}, {RecomputeKind::full, "full"}})
    changes.emplace_back([kind = kind, name = name](WorkloadSpec& w) {
      w.plan.recompute = RecomputeSpec{kind, std::nullopt};
      return fmt::format("recompute = {}", name);
    });
  changes.emplace_back([](WorkloadSpec& w) {
    w.plan.micro_batch = 1;
    return std::string("micro_batch = 1");
  });
  for (const int factor : {2, 4, 8, 16, 32, 64}) {
    changes.emplace_back([factor](WorkloadSpec& w) {
      w.plan.tp *= factor;
      w.plan.dp.reset();
      return fmt::format("tp = {}", w.plan.tp);
    });
    changes.emplace_back([factor](WorkloadSpec& w) {
      w.plan.pp *= factor;
      w.plan.dp.reset();
      w.plan.stage_layers.clear();
      return fmt::format("pp = {}", w.plan.pp);
    });
    changes.emplace_back([factor](WorkloadSpec& w) {
      w.plan.pp *= factor;
      w.plan.dp.reset();
      w.plan.stage_layers.clear();
      w.plan.recompute = RecomputeSpec{RecomputeKind::full, std::nullopt};
      return fmt::format("pp = {} with recompute = full", w.plan.pp);
    });
  }
  for (const Change& change : changes) {
    WorkloadSpec changed = workload;
    const std::string what = change(changed);
    // Beyond one node a larger tensor group is no remedy.
    if (changed.plan.tp > std::max(workload.plan.tp, workload.host.accelerators)) continue;
    const auto use = try_plan(changed, accelerator, accelerators);
    if (use && use->fits()) return fmt::format("{} would fit ({})", what, gibibytes(use->peak().total()));
  }
  return "no change of one dimension fits: use more accelerators, or accelerators with more memory";
}
}  // namespace

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
  problem.help = find_remedy(workload, accelerator, accelerators) + "; --allow-oom simulates anyway";
  throw ConfigError({problem});
}
}  // namespace topsim::workloads
