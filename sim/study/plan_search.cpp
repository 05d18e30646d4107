#include "sim/study/plan_search.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <memory>

#include "sim/base/error.hpp"
#include "sim/base/parallel.hpp"
#include "sim/collective/collective.hpp"
#include "sim/scenario/cluster/load_topology.hpp"
#include "sim/scenario/run/simulate.hpp"
#include "sim/study/plan_bound.hpp"
#include "sim/study/plan_misfit.hpp"
#include "topology/build.hpp"
#include "topology/placement.hpp"
#include "topology/routes.hpp"
#include "workloads/memory/memory.hpp"
#include "workloads/model.hpp"
#include "workloads/plan.hpp"
#include "workloads/training_step.hpp"

namespace topsim::study {
namespace {
using scenario::Scenario;

enum class Fate : std::uint8_t { open, impossible, too_large, fits };

struct Candidate {
  PlanChoice choice;
  Fate fate = Fate::open;
  Duration bound{};
  std::optional<Duration> step;  // simulated
  std::vector<Problem> why_not;  // the reasons if it cannot be simulated
  report::Result first;          // the result of that simulation, kept for the best so far
};

// Simulations per batch, between two decisions on what to simulate next. A constant, so that the outcome does
// not depend on the number of threads.
constexpr std::size_t kBatch = 8;

class Search {
 public:
  Search(const Scenario& scenario, const topology::Catalogue& catalogue, const PlanOptions& options,
         PlanProgress& progress)
      : network_(scenario.network.model),
        scenario_(prepared_scenario(scenario)),
        catalogue_(catalogue),
        options_(options),
        progress_(progress),
        topology_(built(scenario_, catalogue)),
        router_(topology_, scenario_.run.seed, {}, scenario_.network.packet.queue_pairs()),
        nccl_(router_, scenario::library_choices(scenario_), {}, searches_),
        ranks_(static_cast<std::uint32_t>(topology_.accelerators().size())),
        accelerator_(catalogue.accelerator(topology_.model_of(topology_.accelerators().front()))) {
    scenario_.workload.host = workloads::host_facts(topology_, catalogue);
    fix_release();
    fix_global_batch();
  }

  PlanReport run() {
    PlanReport report = searched();
    report.assumed_release = assumed_;
    return report;
  }

 private:
  PlanReport searched() {
    std::vector<Candidate> candidates;
    for (const PlanChoice& choice : plan_choices(scenario_, topology_, options_.space))
      candidates.emplace_back().choice = choice;
    progress_.choices = candidates.size();
    const PlanBound bound(scenario_, topology_, catalogue_, nccl_);
    side_by_side(candidates.size(), [&](std::size_t i) {
      judge(candidates[i], bound);
      ++progress_.bounded;
    });
    PlanReport report;
    report.scenario = scenario_.name;
    report.accelerators = ranks_;
    report.choices = candidates.size();
    std::vector<std::size_t> order;
    for (std::size_t i = 0; i < candidates.size(); ++i) {
      report.impossible += candidates[i].fate == Fate::impossible ? 1 : 0;
      report.too_large += candidates[i].fate == Fate::too_large ? 1 : 0;
      if (candidates[i].fate == Fate::fits) order.push_back(i);
    }
    if (order.empty() && !progress_.stop) refuse(candidates, report);
    std::stable_sort(order.begin(), order.end(),
                     [&](std::size_t a, std::size_t b) { return candidates[a].bound < candidates[b].bound; });
    std::vector<std::size_t> best = simulate_in_order(candidates, order, report);
    report.complete = !progress_.stop;
    if (report.complete) finish(candidates, best, bound, report);
    if (!report.complete) keep_first_steps(candidates, best, report);
    return report;
  }

  static Scenario prepared_scenario(const Scenario& given) {
    if (given.workload.trace)
      throw ConfigError("a trace has no plan to choose", "plan needs workload.model, not workload.trace");
    if (workloads::serves(given.workload.task))
      throw ConfigError("plan searches training plans, and the task is inference",
                        "topsim sweep --vary workload.plan.tp=1,2,4,8 compares layouts of inference");
    Scenario changed = given;
    changed.network.model = network::name_of(kSearchModel);
    return changed;
  }

  static topology::Topology built(const Scenario& scenario, const topology::Catalogue& catalogue) {
    try {
      topology::Topology topology =
          topology::build(scenario.topology, catalogue, scenario::build_options(scenario));
      return topology.with_ranks_on(topology::place_ranks(scenario.topology, topology, scenario.run.seed));
    } catch (const ConfigError& error) {
      throw scenario::located(error, scenario);
    }
  }

  // All plans are compared under the release that the scenario's own means: those that set_of() would give
  // another one are not.
  void fix_release() {
    std::string& name = scenario_.workload.framework;
    if (name.find('@') != std::string::npos || scenario_.workload.host.software_year == 0) return;
    const workloads::Framework& own = workloads::set_of(scenario_.workload);
    const workloads::Framework& newest = workloads::framework(name);
    name = workloads::full_name(own);
    if (&own == &newest) return;
    assumed_ = name;
    if (own.release < newest.release && own.release != newest.on_gpus) newest_ = workloads::full_name(newest);
  }

  // Plans are compared at the same work: a given number of accumulation steps stands for the batch that it
  // makes in the scenario's own plan.
  void fix_global_batch() {
    workloads::PlanSpec& plan = scenario_.workload.plan;
    if (plan.global_batch) return;
    try {
      const workloads::Plan own = workloads::resolve(completed(scenario_.workload), ranks_);
      plan.global_batch = own.global_batch;
      plan.grad_accumulation.reset();
    } catch (const ConfigError&) {
      throw ConfigError("plans are compared at one global batch, and the scenario gives none",
                        "--set workload.plan.global_batch=N");
    }
  }

  static workloads::WorkloadSpec completed(workloads::WorkloadSpec workload) {
    workload.model = workloads::complete_model(workload);
    return workload;
  }

  void side_by_side(std::size_t count, const std::function<void(std::size_t)>& work) {
    parallel::in_order(count, options_.jobs, work, [&] { return progress_.stop.load(); });
  }

  // More sharding costs time, so it is used only if the plan does not fit without.
  void judge(Candidate& candidate, const PlanBound& bound) const {
    const bool kept = std::find(options_.space.keep.begin(), options_.space.keep.end(), "zero") !=
                      options_.space.keep.end();
    constexpr int kMostZero = 3;
    const int last = kept ? candidate.choice.zero : kMostZero;
    for (PlanChoice sharded = candidate.choice; sharded.zero <= last; ++sharded.zero) {
      try {
        const auto use = workloads::memory_use(with_plan(scenario_.workload, sharded), accelerator_, ranks_);
        candidate.choice = sharded;
        candidate.fate = use.fits() ? Fate::fits : Fate::too_large;
        if (!use.fits()) continue;
        candidate.bound = bound(candidate.choice);
      } catch (const ConfigError& error) {
        if (candidate.fate == Fate::too_large) return;  // the framework lacks that ZeRO stage
        candidate.fate = Fate::impossible;
        candidate.why_not = error.problems();
      }
      return;
    }
  }

  [[nodiscard]] Scenario with(const PlanChoice& choice) const {
    Scenario changed = scenario_;
    changed.workload = with_plan(scenario_.workload, choice);
    return changed;
  }

  // One step without warm-up; none if the plan turns out not to run, or the search was stopped.
  void take_first_step(Candidate& candidate) const {
    Scenario changed = with(candidate.choice);
    changed.run.warmup = 0;
    changed.run.steps = 1;
    try {
      candidate.first = simulated(changed);
      if (candidate.first.complete) candidate.step = candidate.first.step;
    } catch (const ConfigError& error) {
      candidate.why_not = error.problems();
      candidate.step.reset();
    }
  }

  [[nodiscard]] report::Result simulated(const Scenario& changed) const {
    scenario::SimulateOptions how;
    how.searches = searches_;
    executor::Progress progress;
    progress.stop_all = &progress_.stop;
    return scenario::simulate(changed, catalogue_, how, &progress).result;
  }

  // Simulates in the order of the bounds until the next bound is above the worst of the best plans. Returns
  // the best plans, best first.
  std::vector<std::size_t> simulate_in_order(std::vector<Candidate>& candidates,
                                             const std::vector<std::size_t>& order, PlanReport& report) {
    std::vector<std::size_t> best;
    const auto better = [&](std::size_t a, std::size_t b) {
      return candidates[a].step != candidates[b].step ? *candidates[a].step < *candidates[b].step : a < b;
    };
    std::size_t next = 0;
    while (next < order.size() && !progress_.stop) {
      std::size_t end = next;
      while (end < order.size() && end < next + kBatch) {
        const bool hopeless =
            best.size() == options_.top && candidates[order[end]].bound > *candidates[best.back()].step;
        if (hopeless && !options_.exhaustive) break;
        ++end;
      }
      if (end == next) break;
      side_by_side(end - next, [&](std::size_t i) {
        take_first_step(candidates[order[next + i]]);
        ++progress_.simulated;
      });
      for (; next < end; ++next) {
        if (!progress_.stop || candidates[order[next]].step) ++report.simulated;
        if (candidates[order[next]].step) best.push_back(order[next]);
      }
      std::sort(best.begin(), best.end(), better);
      for (std::size_t i = options_.top; i < best.size(); ++i) candidates[best[i]].first = {};
      best.resize(std::min(best.size(), options_.top));
    }
    report.cut = progress_.stop ? 0 : order.size() - next;
    return best;
  }

  // Simulates the best plans with the scenario's own steps: the figures of `topsim run`.
  void finish(const std::vector<Candidate>& candidates, const std::vector<std::size_t>& best,
              const PlanBound& bound, PlanReport& report) {
    report.rows.resize(best.size());
    const PlanChoice own = own_choice(scenario_);
    side_by_side(best.size() + 1, [&](std::size_t i) {
      if (i < best.size()) {
        const Candidate& candidate = candidates[best[i]];
        report.rows[i] =
            row_of(candidate.choice, *candidate.step, candidate.bound, simulated(with(candidate.choice)));
        return;
      }
      try {
        report.own = row_of(own, {}, bound(own), simulated(with(own)));
      } catch (const ConfigError&) {
        report.own.reset();  // the scenario's own plan need not run
      }
    });
    if (progress_.stop) {
      report.complete = false;
      report.own.reset();
      return;
    }
    std::stable_sort(report.rows.begin(), report.rows.end(),
                     [](const PlanRow& a, const PlanRow& b) { return a.result.step < b.result.step; });
    if (report.rows.empty()) {
      const auto told = std::find_if(candidates.begin(), candidates.end(), [](const Candidate& each) {
        return each.step == std::nullopt && each.fate == Fate::fits && !each.why_not.empty();
      });
      throw told == candidates.end()
          ? ConfigError("no plan of the space can be simulated", "")
          : ConfigError("no plan of the space can be simulated: " + told->why_not.front().message,
                        told->why_not.front().help);
    }
    report.best = with(report.rows.front().choice);
    report.best.workload.plan.dp = report.rows.front().dp;
    report.best.network.model = network_;
    report.network = network_;
  }

  // What was found before the search was stopped: the best plans with the steps by which they were compared.
  void keep_first_steps(std::vector<Candidate>& candidates, const std::vector<std::size_t>& best,
                        PlanReport& report) const {
    report.rows.clear();
    for (const std::size_t i : best) {
      Candidate& each = candidates[i];
      report.rows.push_back(row_of(each.choice, *each.step, each.bound, std::move(each.first)));
    }
  }

  [[nodiscard]] PlanRow row_of(const PlanChoice& choice, Duration first_step, Duration bound,
                               report::Result result) const {
    const int dp = static_cast<int>(ranks_) / (choice.tp * choice.pp * choice.cp);
    return {choice, dp, first_step, bound, std::move(result)};
  }

  // With nothing to choose from, the scenario's own plan tells why: what is kept of it rules out all others.
  void refuse_own_plan() const {
    try {
      (void)workloads::memory_use(with_plan(scenario_.workload, own_choice(scenario_)), accelerator_, ranks_);
    } catch (const ConfigError& error) {
      throw scenario::located(error, scenario_);
    }
  }

  // A problem that all plans share is a problem of the scenario.
  void refuse_what_all_share(const std::vector<Candidate>& candidates) const {
    if (candidates.empty()) return refuse_own_plan();
    std::vector<Problem> shared = candidates.front().why_not;
    for (const Candidate& each : candidates)
      std::erase_if(shared, [&](const Problem& problem) {
        return std::none_of(each.why_not.begin(), each.why_not.end(),
                            [&](const Problem& other) { return other.message == problem.message; });
      });
    if (!shared.empty()) throw scenario::located(ConfigError(shared), scenario_);
  }

  [[noreturn]] void refuse(const std::vector<Candidate>& candidates, const PlanReport& report) const {
    refuse_what_all_share(candidates);
    std::vector<PlanChoice> choices, too_large;
    for (const Candidate& each : candidates) {
      choices.push_back(each.choice);
      if (each.fate == Fate::too_large) too_large.push_back(each.choice);
    }
    const workloads::PlanSpec& plan = scenario_.workload.plan;
    const bool offloads = plan.offload != workloads::Offload::none || plan.offload_activations;
    const std::string release = newest_.empty()
                                    ? std::string()
                                    : fmt::format(" under {} (--set workload.framework={} is the newest)",
                                                  scenario_.workload.framework, newest_);
    const std::string counts = "none of " + std::to_string(report.choices) + " plans fits" + release + ": " +
                               std::to_string(report.too_large) + " need more memory than " +
                               accelerator_.id + (offloads ? " or its host has, " : " has, ") +
                               std::to_string(report.impossible) + " do not divide or are not supported";
    const PlanJob job{scenario_.workload, accelerator_, ranks_, !scenario_.topology.node.use.empty()};
    if (too_large.empty()) throw ConfigError(counts, what_would_divide(job, choices));
    const Misfit nearest = nearest_misfit(job, too_large);
    throw ConfigError(counts + "; the nearest " + nearest.what, nearest.help);
  }

  std::string network_;  // the scenario's own; the search uses flow
  std::string assumed_;  // release of all plans, where none was stated and it is not the newest
  std::string newest_;   // the newest, where that one is older
  Scenario scenario_;
  const topology::Catalogue& catalogue_;
  const PlanOptions& options_;
  PlanProgress& progress_;
  topology::Topology topology_;
  topology::Router router_;
  const std::shared_ptr<collective::Searches> searches_ = collective::no_searches_yet();
  collective::NcclModel nccl_;
  std::uint32_t ranks_;
  const topology::Accelerator& accelerator_;
};
}  // namespace

PlanReport search_plans(const Scenario& scenario, const topology::Catalogue& catalogue,
                        const PlanOptions& options, PlanProgress& progress) {
  return Search(scenario, catalogue, options, progress).run();
}
}  // namespace topsim::study
