// The advice when a plan does not fit: the cheapest change after which it does.
#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <iterator>
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
  consider(parts.update, "the update's temporaries");
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

Change zero(int stage) {
  return [stage](WorkloadSpec& w) { return w.plan.zero = stage, fmt::format("zero = {}", stage); };
}

// Shards more and computes the same.
std::vector<Change> free_changes() {
  return {zero(1), [](WorkloadSpec& w) {
            return w.plan.sequence_parallel = true, std::string("sequence_parallel = true");
          }};
}

// Shards of gradients and parameters. Megatron has them in another implementation, Megatron-FSDP: what its
// users turn to last.
bool shards_elsewhere(const WorkloadSpec& workload) {
  return set_of(workload).family == FrameworkFamily::megatron;
}

// Changes that keep the parallel dimensions; the faster of two comes first.
std::vector<Change> savings(const WorkloadSpec& workload) {
  std::vector<Change> changes = free_changes();
  const auto add = [&](auto set) { changes.emplace_back(set); };
  const auto recompute = [&](RecomputeKind kind, const char* name) {
    add([kind, name](WorkloadSpec& w) {
      w.plan.recompute = RecomputeSpec{kind, std::nullopt};
      return fmt::format("recompute = {}", name);
    });
  };
  const bool shards = !shards_elsewhere(workload);
  if (shards) add(zero(2));
  recompute(RecomputeKind::selective, "selective");
  if (shards) add(zero(3));
  recompute(RecomputeKind::full, "full");
  // The batch stays divisible: micro_batch is only halved.
  for (int batch = workload.plan.micro_batch.value_or(1) / 2; batch > 0; batch /= 2)
    add([batch](WorkloadSpec& w) {
      return w.plan.micro_batch = batch, fmt::format("micro_batch = {}", batch);
    });
  if (serves(workload.task)) {
    if (const auto kept = workload.precision.kv_cache; !kept || bytes_of(*kept) > bytes_of(Precision::fp8))
      add([](WorkloadSpec& w) {
        return w.precision.kv_cache = Precision::fp8, std::string("precision.kv_cache = fp8");
      });
    for (const auto& [format, name] : {std::pair(WeightFormat::int8, "int8"), {WeightFormat::int4, "int4"}})
      add([format, name](WorkloadSpec& w) {
        return w.precision.weights = format, fmt::format("precision.weights = {}", name);
      });
  }
  return changes;
}

Change with_full_recompute(const Change& change) {
  return [change](WorkloadSpec& w) {
    w.plan.recompute = RecomputeSpec{RecomputeKind::full, std::nullopt};
    return change(w) + " with recompute = full";
  };
}

Change spread_experts(int factor) {
  return [=](WorkloadSpec& w) {  // over the ranks that exist: dp stays
    w.plan.ep = w.plan.ep.value_or(1) * factor;
    return fmt::format("ep = {}", *w.plan.ep);
  };
}

Change larger(int PlanSpec::*dimension, const char* name, int factor) {
  return [=](WorkloadSpec& w) {
    w.plan.*dimension *= factor;
    w.plan.dp.reset();
    if (dimension == &PlanSpec::pp) w.plan.stage_layers.clear();
    return fmt::format("{} = {}", name, w.plan.*dimension);
  };
}

// What only adapters beside frozen weights have. Weights of 8 bits cost nothing where products read 8 bits,
// else a pass that expands them; fewer adapters keep fewer inputs, but train less.
std::vector<Change> adapter_changes(const WorkloadSpec& given) {
  const WorkloadSpec workload = scripted(given);
  const auto frozen = [](Precision format) {
    return [format](WorkloadSpec& w) {
      w.precision.frozen_weights = format;
      return fmt::format("precision.frozen_weights = {}", name_of(format));
    };
  };
  const std::vector<std::string> now = targets_of(workload.lora.value_or(LoraSpec{}));
  std::vector<std::string> fewer_targets;
  std::copy_if(now.begin(), now.end(), std::back_inserter(fewer_targets), [](const std::string& target) {
    return target != "fc1" && target != "gate" && target != "up" && target != "fc2";
  });
  const bool fewer = fewer_targets.size() < now.size() && !fewer_targets.empty();
  const auto attention_alone = [fewer_targets](WorkloadSpec& w) {
    if (!w.lora) w.lora.emplace();
    w.lora->targets = fewer_targets;
    return fmt::format(R"(lora.targets = ["{}"])", fmt::join(fewer_targets, R"(", ")"));
  };
  const auto both = [&](Precision format) {
    return [=](WorkloadSpec& w) { return frozen(format)(w) + " with " + attention_alone(w); };
  };
  const double kept = bytes_of(workload.precision.frozen_weights.value_or(Precision::bf16));
  std::vector<Precision> formats;
  const FrameworkFamily family = framework_of(workload).family;
  const bool whole = family == FrameworkFamily::ddp || family == FrameworkFamily::deepspeed;
  std::vector<Precision> narrower{Precision::fp8, Precision::nvfp4};
  if (whole) narrower.insert(narrower.begin() + 1, Precision::nf4);  // refused in shards
  for (const Precision format : narrower)
    if (bytes_of(format) < kept) formats.push_back(format);
  std::vector<Change> changes = free_changes();
  if (kept > bytes_of(Precision::fp8)) changes.emplace_back(frozen(Precision::fp8));
  if (fewer) changes.emplace_back(attention_alone);
  for (const Precision format : formats) {
    if (format != Precision::fp8) changes.emplace_back(frozen(format));
    if (fewer) changes.emplace_back(both(format));
  }
  for (const Precision format : formats) changes.push_back(with_full_recompute(frozen(format)));
  return changes;
}

struct Fit {
  std::string change;
  double bytes = 0;
};

std::optional<Fit> first_fit(const WorkloadSpec& workload, const topology::Accelerator& accelerator,
                             std::uint32_t accelerators, const std::vector<Change>& changes) {
  for (const Change& change : changes) {
    WorkloadSpec changed = workload;
    const std::string what = change(changed);
    // A tensor group larger than a node is no remedy.
    if (changed.plan.tp > std::max(workload.plan.tp, workload.host.accelerators)) continue;
    const auto use = try_plan(changed, accelerator, accelerators);
    if (!use || !use->fits()) continue;
    // A bare name means what the changed plan needs.
    const Framework &before = set_of(workload), &after = set_of(changed);
    const std::string under = &before == &after ? "" : fmt::format(" (framework {})", full_name(after));
    return Fit{what + under + beside(workload, changed, accelerators), use->peak().total()};
  }
  return std::nullopt;
}

// A key-value cache is linear in the batch. Each replica has the same number of requests, and each
// micro-batch where its size is given; 0: none fits, or the scenario states no batch.
int largest_batch(const WorkloadSpec& workload, const topology::Accelerator& accelerator,
                  std::uint32_t accelerators) {
  const PlanSpec& plan = workload.plan;
  const int given = plan.global_batch.value_or(0);
  const int across = plan.tp * plan.pp * plan.cp;
  if (!serves(workload.task) || given == 0 || across <= 0) return 0;
  const int replicas = std::max(1, static_cast<int>(accelerators) / across);
  const int unit = replicas * (plan.micro_batch ? plan.pp * *plan.micro_batch : 1);
  const auto fits = [&](int units) {
    WorkloadSpec changed = workload;
    changed.plan.global_batch = units * unit;
    const auto use = try_plan(changed, accelerator, accelerators);
    return use && use->fits();
  };
  int low = 0, high = (given + unit - 1) / unit;  // the first fits, the second does not
  while (high - low > 1) {
    const int middle = low + (high - low) / 2;
    (fits(middle) ? low : high) = middle;
  }
  return low * unit;
}

}  // namespace

std::string fitting_change(const WorkloadSpec& workload, const topology::Accelerator& accelerator,
                           std::uint32_t accelerators) {
  std::vector<Change> changes = savings(workload);
  const auto factors = {2, 4, 8, 16, 32, 64};
  for (const int factor : factors) {
    changes.push_back(spread_experts(factor));
    changes.push_back(larger(&PlanSpec::tp, "tp", factor));
    changes.push_back(larger(&PlanSpec::pp, "pp", factor));
    changes.push_back(larger(&PlanSpec::cp, "cp", factor));
  }
  if (shards_elsewhere(workload))
    for (const int stage : {2, 3}) changes.push_back(zero(stage));
  changes.push_back(with_full_recompute([](WorkloadSpec& w) {
    w.plan.micro_batch = 1;
    return std::string("micro_batch = 1");
  }));
  for (const int factor : factors)
    changes.push_back(with_full_recompute(larger(&PlanSpec::pp, "pp", factor)));
  // The slowest change: the optimiser's step crosses PCIe.
  changes.emplace_back(
      [](WorkloadSpec& w) { return w.plan.offload = Offload::cpu, std::string("offload = cpu"); });
  const auto of = [&](const std::vector<Change>& tried) {
    return first_fit(workload, accelerator, accelerators, tried);
  };
  const auto general = of(changes);
  const auto first = workload.task == Task::lora ? of(adapter_changes(workload)) : std::nullopt;
  const int batch = largest_batch(workload, accelerator, accelerators);
  if (!first && !general && batch == 0) return {};
  if (!first && !general) return fmt::format("global_batch = {} is the largest that fits", batch);
  const Fit& named = first ? *first : *general;
  std::string text = fmt::format("{} would fit ({})", named.change, gibibytes(named.bytes));
  if (first && general && general->change != first->change)
    text += fmt::format(", or {} ({})", general->change, gibibytes(general->bytes));
  if (batch > 0) text += fmt::format("; as it is, global_batch = {} is the largest that fits", batch);
  return text;
}

namespace {
// The faster of two comes first.
std::string fitting_host(const WorkloadSpec& workload, const topology::Accelerator& accelerator,
                         std::uint32_t accelerators) {
  std::vector<Change> changes;
  for (const int stage : {1, 2, 3}) changes.push_back(zero(stage));
  const auto to = [](Offload where, const char* name) {
    return [=](WorkloadSpec& w) { return w.plan.offload = where, fmt::format("offload = {}", name); };
  };
  if (workload.plan.offload_activations)
    changes.emplace_back([](WorkloadSpec& w) {
      return w.plan.offload_activations = false, std::string("offload_activations = false");
    });
  changes.emplace_back(to(Offload::none, "none"));
  changes.emplace_back(to(Offload::nvme, "nvme"));
  std::string text;
  if (const auto fit = first_fit(workload, accelerator, accelerators, changes))
    text = fmt::format("{} would fit", fit->change);
  constexpr std::uint32_t kMostTimes = 64;
  WorkloadSpec wider = workload;  // more replicas, which shard further
  wider.plan.dp.reset();
  for (std::uint32_t times = 2; times <= kMostTimes; times *= 2) {
    const auto use = try_plan(wider, accelerator, accelerators * times);
    if (!use || !use->fits()) continue;
    return text + (text.empty() ? "" : ", or ") + fmt::format("{} times as many nodes", times) +
           (text.empty() ? " would fit" : "");
  }
  return text;
}

void require_host_fit(const WorkloadSpec& workload, const topology::Accelerator& accelerator,
                      std::uint32_t accelerators, const MemoryUse& use) {
  if (use.fits_host()) return;
  Problem problem;
  problem.path =
      workload.plan.offload == Offload::cpu ? "workload.plan.offload" : "workload.plan.offload_activations";
  problem.message =
      fmt::format("does not fit: what is offloaded needs {} of host memory per node, a node has {}",
                  gibibytes(use.host), gibibytes(use.host_capacity));
  problem.label = fmt::format("{} too much", gibibytes(use.host - use.host_capacity));
  const std::string change = fitting_host(workload, accelerator, accelerators);
  problem.help = (change.empty() ? "use nodes with more memory" : change) + "; --allow-oom simulates anyway";
  throw ConfigError({problem});
}
}  // namespace

void require_fit(const WorkloadSpec& workload, const topology::Accelerator& accelerator,
                 std::uint32_t accelerators) {
  const MemoryUse use = memory_use(workload, accelerator, accelerators);
  if (use.fits_accelerator()) return require_host_fit(workload, accelerator, accelerators, use);
  const double total = use.peak().total();
  Problem problem;
  problem.path = "workload.plan";
  problem.message = fmt::format("does not fit: {} {} needs {}, {} has {}", use.holder, use.fullest,
                                gibibytes(total), accelerator.id, gibibytes(use.capacity));
  if (use.share < 1)
    problem.message += fmt::format(", of which engines fill {} (plan.memory_utilization {:g})",
                                   gibibytes(use.room()), use.share);
  problem.label =
      fmt::format("{} too much, most of it {}", gibibytes(total - use.room()), largest_part(use.peak()));
  const std::string change = fitting_change(workload, accelerator, accelerators);
  const char* const none =
      serves(workload.task)
          ? "no single change fits: combine several, or use more accelerators, or more memory in each"
      : accelerators > 1 ? "no single change that keeps tensor groups inside a node fits: `topsim plan FILE` "
                           "searches combinations; else more accelerators, or more memory in each"
                         : "no single change fits: use more accelerators, or accelerators with more memory";
  problem.help = (change.empty() ? none : change) + "; --allow-oom simulates anyway";
  throw ConfigError({problem});
}
}  // namespace topsim::workloads
