#include "sim/scenario/run/folded_scenario.hpp"

#include "sim/base/error.hpp"
#include "sim/base/heap.hpp"
#include "sim/collective/searches.hpp"
#include "sim/executor/carrier.hpp"
#include "sim/executor/executor.hpp"
#include "sim/scenario/cluster/faults.hpp"
#include "sim/scenario/cluster/unreachable.hpp"

namespace topsim::scenario {
namespace {
// Measured at 16,384 classes: 46 KB of state each, which a run accesses in small, scattered pieces.
void expect_classes(std::size_t ranks) {
  constexpr std::size_t kMany = 4000, kBytes = 48 << 10;
  if (ranks > kMany) put_heap_on_huge_pages(ranks * kBytes);
}

}  // namespace

// If a reduction in the switches has stopped, a job that waits for a failed part waits for that reduction.
void FoldedScenario::say_stop() const {
  if (!stops_.empty()) throw ConfigError({stops_.front().problem});
}
template <class Work>
void FoldedScenario::explained(const Work& work) const {
  try {
    work();
  } catch (const executor::CutOff& cut) {
    say_stop();
    auto down = parts_that_stay_down(scenario_.faults, cut.problems().front().message);
    if (down.empty()) throw;
    throw ConfigError(std::move(down));
  } catch (const executor::Blocked&) {
    say_stop();
    auto down = parts_that_stay_down(scenario_.faults);
    if (down.empty()) throw;
    throw ConfigError(std::move(down));
  } catch (const ConfigError&) {
    const auto problem = unreachable_rank(router_, !scenario_.faults.empty());
    if (!problem) throw;
    throw ConfigError({*problem});
  }
}

FoldedScenario::FoldedScenario(const Scenario& scenario, const Prepared& prepared,
                               const topology::Router& router, std::span<const LinkId> dead,
                               const executor::RunOptions& options)
    : scenario_(scenario),
      prepared_(prepared),
      router_(router),
      nccl_(router, library_choices(scenario), {}, collective::searches_without(prepared.searches, dead)) {
  // With hashing hardly any two ranks are alike.
  const bool hashed = prepared.topology.routing == topology::Routing::ecmp;
  if (hashed || !options.fold) expect_classes(prepared.program.ranks);
  explained([&] { system_ = executor::fold_for(prepared.program, router, nccl_, options); });
  stops_ = sharp_stops(system_, prepared.topology, options.capacity_changes);
}

std::uint64_t FoldedScenario::ops(int steps) const {
  std::uint64_t of_a_step = 0;
  for (const auto& rank : system_.ranks) of_a_step += program().classes[rank.program_class].ops.size();
  return of_a_step * static_cast<std::uint64_t>(steps);
}

executor::Outcome FoldedScenario::run(const executor::RunOptions& options,
                                      executor::Progress* progress) const {
  executor::Outcome outcome;
  explained(
      [&] { outcome = executor::simulate(prepared_.program, system_, router_, nccl_, options, progress); });
  if (!stops_.empty() && stops_.front().at < outcome.end) throw ConfigError({stops_.front().problem});
  return outcome;
}

}  // namespace topsim::scenario
