#include "sim/study/plan_space.hpp"

#include <algorithm>
#include <array>

#include "sim/base/error.hpp"
#include "sim/base/suggest.hpp"
#include "topology/routes.hpp"
#include "workloads/framework.hpp"
#include "workloads/model.hpp"
#include "workloads/plan.hpp"

namespace topsim::study {
namespace {
using workloads::RecomputeKind;
using workloads::Schedule;

// Bounds the search: half of a context rank's share of the longest sequences of Llama 3, 131,072 tokens on 16
// (arXiv 2407.21783, table 4).
constexpr int kTokensPerContextRank = 4096;
// 98 % of 832 published runs whose micro-batch is stated have no more (configs/validation).
constexpr int kMostMicroBatch = 16;

// The schedules that a search tries; DualPipe needs a plan of stages of its own.
constexpr std::array kSchedules = {Schedule::gpipe, Schedule::one_f_one_b, Schedule::interleaved,
                                   Schedule::zb_h1, Schedule::zb_1p,       Schedule::zb_2p,
                                   Schedule::zb_v};

std::vector<int> divisors(int number, int most) {
  std::vector<int> result;
  for (int d = 1; d <= std::min(number, most); ++d) {
    if (number % d == 0) result.push_back(d);
  }
  return result;
}

std::vector<int> powers_of_two(int most) {
  std::vector<int> result;
  for (int p = 1; p <= most; p *= 2) result.push_back(p);
  return result;
}

// Whether accelerators / (a x b x ...) is a whole number. No product: three factors of 2^14 may overflow an
// int.
bool divide(int accelerators, std::initializer_list<int> factors) {
  return std::all_of(factors.begin(), factors.end(),
                     [&](int factor) { return accelerators % factor == 0 && (accelerators /= factor) > 0; });
}

// The number of accelerators in the first one's scale-up domain (NVLink), or in its node if it has none.
int domain_size(const topology::Topology& topology) {
  const topology::Router router(topology, 0);
  const auto accelerators = topology.accelerators();
  const auto same = [&](DeviceId id) {
    return router.scale_up_domain(id) == router.scale_up_domain(accelerators.front()) ||
           topology.device(id).node == topology.device(accelerators.front()).node;
  };
  return static_cast<int>(std::count_if(accelerators.begin(), accelerators.end(), same));
}

// A grid of choices that grows by one dimension at a time; the first one varied changes slowest.
class Grid {
 public:
  explicit Grid(const PlanChoice& own) : choices_{own} {}
  void vary(const std::vector<int>& values, int PlanChoice::*member) {
    vary_by([&](const PlanChoice&) { return values; },
            [&](PlanChoice& choice, int value) { choice.*member = value; });
  }
  // values_of(choice) may depend on what was varied before; take(choice, value) sets one.
  template <class ValuesOf, class Take>
  void vary_by(const ValuesOf& values_of, const Take& take) {
    std::vector<PlanChoice> varied;
    for (const PlanChoice& each : choices_) {
      for (const auto& value : values_of(each)) take(varied.emplace_back(each), value);
    }
    choices_ = std::move(varied);
  }
  template <class Fits>
  void keep(const Fits& fits) {
    std::erase_if(choices_, [&](const PlanChoice& each) { return !fits(each); });
  }
  [[nodiscard]] std::vector<PlanChoice> choices() && { return std::move(choices_); }

 private:
  std::vector<PlanChoice> choices_;
};
}  // namespace

std::span<const std::string> plan_dimensions() {
  static const std::vector<std::string> names = {
      "tp", "pp", "cp", "ep", "virtual_stages", "micro_batch", "recompute", "schedule", "zero"};
  return names;
}

Schedule schedule_named(const std::string& name) {
  std::vector<std::string> names;
  for (const Schedule schedule : kSchedules) {
    if (name == name_of(schedule)) return schedule;
    names.emplace_back(name_of(schedule));
  }
  const auto close = closest(name, names);
  throw ConfigError("no schedule \"" + name + "\" to search",
                    (close ? "did you mean " + *close + "? " : std::string()) + "schedules: " + join(names));
}

std::string recompute_words(const PlanChoice& choice) {
  if (choice.recompute_layers)
    return std::to_string(*choice.recompute_layers) + (*choice.recompute_layers == 1 ? " layer" : " layers");
  constexpr std::array words = {"none", "selective", "full"};
  return words[static_cast<std::size_t>(choice.recompute)];
}

bool alike(int layers, int stages) {
  return layers % stages == 0 || (layers + 1) % stages == 0 || (layers + 2) % stages == 0;
}

bool has_known_stages(const workloads::WorkloadSpec& workload, const PlanChoice& choice) {
  const workloads::PlanSpec& own = workload.plan;
  return alike(workload.model.layers, choice.pp * choice.virtual_stages) ||
         (choice.pp == own.pp && choice.virtual_stages == own.virtual_stages);
}

PlanChoice own_choice(const scenario::Scenario& scenario) {
  const workloads::PlanSpec& plan = scenario.workload.plan;
  const workloads::Framework& defaults = workloads::framework(scenario.workload.framework);
  const workloads::RecomputeSpec recompute = workloads::recompute_meant(plan, defaults);
  PlanChoice own;
  own.tp = plan.tp, own.pp = plan.pp, own.cp = plan.cp, own.ep = plan.ep.value_or(1);
  own.virtual_stages = plan.virtual_stages;
  own.micro_batch = plan.micro_batch.value_or(1);
  own.schedule = workloads::schedule_meant(plan);
  own.recompute = recompute.kind;
  own.recompute_layers = recompute.layers;
  own.zero = workloads::zero_meant(plan, defaults);
  return own;
}

workloads::WorkloadSpec with_plan(const workloads::WorkloadSpec& workload, const PlanChoice& choice) {
  workloads::WorkloadSpec result = workload;
  workloads::PlanSpec& plan = result.plan;
  plan.tp = choice.tp, plan.pp = choice.pp, plan.cp = choice.cp, plan.ep = choice.ep;
  plan.virtual_stages = choice.virtual_stages;
  plan.micro_batch = choice.micro_batch;
  plan.schedule = choice.schedule;
  plan.zero = choice.zero;
  // Recompute modules belong to the selective recompute of the scenario.
  const auto own = workloads::recompute_meant(plan, workloads::framework(workload.framework));
  if (choice.recompute != RecomputeKind::selective && choice.recompute != own.kind)
    plan.recompute_modules.clear();
  plan.recompute = workloads::RecomputeSpec{choice.recompute, choice.recompute_layers};
  plan.dp.reset();
  // DeepSpeed's pipeline has no buckets.
  const auto family = workloads::framework(workload.framework).family;
  if (family == workloads::FrameworkFamily::deepspeed && choice.pp > 1 && workload.plan.pp == 1)
    plan.bucket_size.reset();
  // Layers by stage fit only one number of stages.
  if (choice.pp != workload.plan.pp || choice.virtual_stages != workload.plan.virtual_stages)
    plan.stage_layers.clear();
  // The global batch stays the same for any number of replicas.
  return result;
}

std::vector<PlanChoice> plan_choices(const scenario::Scenario& scenario, const topology::Topology& topology,
                                     const PlanSpace& space) {
  const workloads::WorkloadSpec& workload = scenario.workload;
  const workloads::ModelSpec model = workloads::complete_model(workload);
  const workloads::Framework& framework = workloads::framework(workload.framework);
  const PlanChoice own = own_choice(scenario);
  const auto accelerators = static_cast<int>(topology.accelerators().size());
  const int sequence = workload.sequence.value_or(model.sequence);
  const auto kept = [&](const char* name) {
    return std::find(space.keep.begin(), space.keep.end(), name) != space.keep.end();
  };
  const auto values = [&](const char* name, int given, std::vector<int> all) {
    return kept(name) ? std::vector<int>{given} : all;
  };
  const auto tps = values("tp", own.tp, divisors(model.heads, domain_size(topology)));
  const auto pps = values("pp", own.pp, divisors(accelerators, model.layers + 2));
  const auto cps = values("cp", own.cp, powers_of_two(std::max(1, sequence / kTokensPerContextRank)));
  const auto eps =
      values("ep", own.ep,
             divisors(std::max(1, model.experts.count + workload.plan.redundant_experts), accelerators));
  const auto micro_batches = values("micro_batch", own.micro_batch, powers_of_two(kMostMicroBatch));
  using workloads::RecomputeSpec;
  const std::vector<RecomputeSpec> recomputes =
      kept("recompute")
          ? std::vector{RecomputeSpec{own.recompute, own.recompute_layers}}
          : std::vector<RecomputeSpec>{
                {RecomputeKind::none, {}}, {RecomputeKind::selective, {}}, {RecomputeKind::full, {}}};
  const std::vector<Schedule> schedules = kept("schedule") ? std::vector{own.schedule} : space.schedules;

  // With one stage there is no choice of schedules.
  const std::vector<Schedule> of_one_stage =
      kept("schedule") ? schedules : std::vector{Schedule::one_f_one_b};
  const auto chunks_of = [&](Schedule schedule, int stages) -> std::vector<int> {
    const workloads::SecondChunk second = traits(schedule).second_chunk;
    if (second == workloads::SecondChunk::on_return) return {2};
    if (second != workloads::SecondChunk::next) return {1};
    std::vector<int> chunks;
    for (int each = 2; each * stages <= model.layers + 2; ++each)
      if (alike(model.layers, each * stages)) chunks.push_back(each);
    return chunks;
  };

  Grid grid(own);
  grid.vary(tps, &PlanChoice::tp);
  grid.vary_by([&](const PlanChoice&) { return pps; },
               [&](PlanChoice& choice, int stages) {
                 choice.pp = stages;
                 workloads::PlanSpec piped = workload.plan;
                 piped.pp = stages;
                 if (!kept("zero")) choice.zero = workloads::zero_meant(piped, framework);
               });
  grid.vary(cps, &PlanChoice::cp);
  grid.keep([&](const PlanChoice& c) { return divide(accelerators, {c.tp, c.pp, c.cp}); });
  grid.vary(eps, &PlanChoice::ep);
  // Experts are divided over ep x etp of a stage's ranks; etp is what these allow.
  grid.keep([&](const PlanChoice& c) {
    return divide(accelerators / c.pp, {c.ep, workload.plan.etp.value_or(1)});
  });
  grid.vary(micro_batches, &PlanChoice::micro_batch);
  grid.vary_by([&](const PlanChoice&) { return recomputes; },
               [](PlanChoice& choice, const RecomputeSpec& recompute) {
                 choice.recompute = recompute.kind;
                 choice.recompute_layers = recompute.layers;
               });
  grid.vary_by([&](const PlanChoice& c) { return c.pp == 1 ? of_one_stage : schedules; },
               [](PlanChoice& choice, Schedule schedule) { choice.schedule = schedule; });
  grid.vary_by(
      [&](const PlanChoice& c) {
        return values("virtual_stages", own.virtual_stages, chunks_of(c.schedule, c.pp));
      },
      [](PlanChoice& choice, int chunks) { choice.virtual_stages = chunks; });
  grid.keep([&](const PlanChoice& c) { return has_known_stages(workload, c); });
  return std::move(grid).choices();
}
}  // namespace topsim::study
