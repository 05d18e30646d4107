// Teams that walk in lock-step (sim/executor/lock_step.hpp) do what their members do one by one: a run that
// keeps its timeline takes every event by itself, one that does not may walk. Both must give the same
// picoseconds.
#include <gtest/gtest.h>

#include <cmath>

#include "tests/property/random_cluster.hpp"

namespace topsim::property {
namespace {

executor::Outcome run(const Case& c, const topology::Router& router, const program::Program& program,
                      bool fold, bool event_by_event) {
  const collective::NcclModel nccl(router, {});
  executor::RunOptions options = c.options;
  options.fold = fold;
  options.timeline = event_by_event;
  return executor::simulate(program, router, nccl, options, nullptr);
}

Duration path_time(const executor::Outcome& outcome) {
  Duration sum{};
  for (const executor::PathLeg& leg : outcome.critical_path) sum += leg.share;
  return sum;
}

TEST(LockStep, gives_the_picoseconds_of_a_run_event_by_event) {
  const topology::Catalogue catalogue = topology::Catalogue::load(TOPSIM_SOURCE_DIR "/configs");
  std::uint64_t walked = 0, taken = 0;
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    Case c = random_case(seed, 8);
    c.options.steps = 2;
    // Every other case has tensor groups that fill their nodes: nobody else is on their NVLinks.
    const bool fills = seed % 4 < 2;
    if (fills) {
      auto& plan = c.workload.plan;
      plan.tp = 8;
      if (c.workload.model.experts.count > 0) plan.sequence_parallel = true;  // as experts need with tp
      if (plan.pp > c.topology.nodes) plan.pp = 1;
      plan.dp = c.topology.nodes / plan.pp;
    }
    SCOPED_TRACE(c.text);
    const topology::Topology topology = topology::build(c.topology, catalogue);
    const topology::Router router(topology, c.options.seed);
    const program::Program program = workloads::training_step(c.workload, topology, catalogue);
    const bool fold = seed % 2 == 0;
    const executor::Outcome quick = run(c, router, program, fold, false);
    const executor::Outcome slow = run(c, router, program, fold, true);
    if (fills) {
      walked += quick.events;
      taken += slow.events;
    }
    ASSERT_EQ(quick.step_times, slow.step_times);
    ASSERT_EQ(quick.ranks.size(), slow.ranks.size());
    for (std::size_t r = 0; r < quick.ranks.size(); ++r) {
      for (std::size_t s = 0; s < quick.ranks[r].steps.size(); ++s) {
        EXPECT_EQ(quick.ranks[r].steps[s].busy, slow.ranks[r].steps[s].busy) << "rank class " << r;
        EXPECT_EQ(quick.ranks[r].steps[s].idle, slow.ranks[r].steps[s].idle) << "rank class " << r;
      }
    }
    ASSERT_EQ(quick.links.size(), slow.links.size());
    for (std::size_t l = 0; l < quick.links.size(); ++l) {
      EXPECT_NEAR(quick.links[l].bytes, slow.links[l].bytes, 1e-12 * slow.links[l].bytes);
      EXPECT_EQ(quick.links[l].busy, slow.links[l].busy);
    }
    ASSERT_EQ(quick.collectives.size(), slow.collectives.size());
    for (std::size_t i = 0; i < quick.collectives.size(); ++i) {
      EXPECT_EQ(quick.collectives[i].calls, slow.collectives[i].calls);
      EXPECT_EQ(quick.collectives[i].total, slow.collectives[i].total);
    }
    EXPECT_EQ(quick.flows, slow.flows);
    EXPECT_EQ(path_time(quick), path_time(slow));
    if (HasFailure()) break;
  }
  EXPECT_LT(walked, taken * 9 / 10) << "hardly anything walked: nothing was tested";
}
}  // namespace
}  // namespace topsim::property
