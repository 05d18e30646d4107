// Teams that walk in lock-step (sim/executor/lock_step.hpp) must do what their members do one by one. A run
// with a timeline takes every event by itself, one without may walk. Both must give the same picoseconds.
#include <gtest/gtest.h>

#include <cmath>

#include "tests/property/random_cluster.hpp"

namespace topsim::property::lock_step_test {

executor::Outcome run(const Case& c, const topology::Router& router, const program::Program& program,
                      bool fold, bool event_by_event, bool explained = true) {
  const collective::NcclModel nccl(router, {});
  executor::RunOptions options = c.options;
  options.fold = fold;
  options.timeline = event_by_event;
  options.explained = explained;
  return executor::simulate(program, router, nccl, options, nullptr);
}

// Of several links that limit a call equally, any may be named: only their types agree.
std::optional<std::uint32_t> type_of(const topology::Topology& topology, LinkId link) {
  return link.valid() ? std::optional(topology.link(link).type) : std::nullopt;
}

void expect_same_path(const executor::Outcome& quick, const executor::Outcome& slow,
                      const topology::Topology& topology) {
  ASSERT_EQ(quick.critical_path.size(), slow.critical_path.size());
  for (std::size_t i = 0; i < quick.critical_path.size(); ++i) {
    const executor::PathLeg &a = quick.critical_path[i], &b = slow.critical_path[i];
    EXPECT_EQ(a.rank_class, b.rank_class) << "leg " << i;
    EXPECT_EQ(a.op, b.op) << "leg " << i;
    EXPECT_EQ(a.share, b.share) << "leg " << i;
    EXPECT_EQ(a.reason, b.reason) << "leg " << i;
    EXPECT_EQ(type_of(topology, a.limiting_link), type_of(topology, b.limiting_link)) << "leg " << i;
    EXPECT_EQ(type_of(topology, a.paced_link), type_of(topology, b.paced_link)) << "leg " << i;
  }
}

void expect_same(const executor::Outcome& quick, const executor::Outcome& slow,
                 const executor::Outcome& unexplained, const topology::Topology& topology) {
  ASSERT_EQ(quick.step_times, slow.step_times);
  ASSERT_EQ(unexplained.step_times, slow.step_times);
  EXPECT_EQ(unexplained.flows, slow.flows);
  EXPECT_TRUE(unexplained.ranks.empty());
  ASSERT_EQ(quick.ranks.size(), slow.ranks.size());
  for (std::size_t r = 0; r < quick.ranks.size(); ++r) {
    for (std::size_t s = 0; s < quick.ranks[r].steps.size(); ++s) {
      EXPECT_EQ(quick.ranks[r].steps[s].busy, slow.ranks[r].steps[s].busy) << "rank class " << r;
      EXPECT_EQ(quick.ranks[r].steps[s].communication, slow.ranks[r].steps[s].communication) << r;
      EXPECT_EQ(quick.ranks[r].steps[s].hidden_communication, slow.ranks[r].steps[s].hidden_communication)
          << r;
      EXPECT_EQ(quick.ranks[r].steps[s].slowed, slow.ranks[r].steps[s].slowed) << "rank class " << r;
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
    EXPECT_EQ(quick.collectives[i].each, slow.collectives[i].each);
    EXPECT_EQ(quick.collectives[i].seconds, slow.collectives[i].seconds);
  }
  EXPECT_EQ(quick.flows, slow.flows);
  expect_same_path(quick, slow, topology);
}

// Changes a case so that its tensor groups can walk in lock-step for long: a group fills its node and only
// computes and calls its own collectives, on equal accelerators that do not wait for their hosts.
void make_walkable(Case& c) {
  auto& w = c.workload;
  if (w.framework == "dataparallel") w.framework = "megatron";
  w.task = workloads::Task::pretrain;
  w.lora.reset();
  w.model.layers = 32, w.model.hidden = 8192, w.model.heads = 64;
  w.sequence = 4096;
  w.model.experts.count = 0;
  w.plan.ep = 1;
  w.plan.etp.reset();
  w.plan.offload = workloads::Offload::none;
  w.plan.tp_overlap.reset();
  w.compute.launch_overhead = Duration(2'000'000);
  c.options.slow_ranks.clear();
}

struct Events {
  std::uint64_t walked, taken;  // of the run in lock-step and of the one event by event
};
// Runs a case in both ways, and without explanations, and expects the same.
Events expect_same_either_way(Case& c, const topology::Catalogue& catalogue, bool fold) {
  const topology::Topology topology = topology::build(c.topology, catalogue);
  disturb(c, topology, catalogue);
  SCOPED_TRACE(c.text);
  const topology::Router router(topology, c.options.seed);
  const program::Program program = workloads::training_step(c.workload, topology, catalogue);
  const executor::Outcome quick = run(c, router, program, fold, false);
  const executor::Outcome slow = run(c, router, program, fold, true);
  expect_same(quick, slow, run(c, router, program, fold, false, false), topology);
  return {quick.events, slow.events};
}

TEST(LockStep, GivesThePicosecondsOfARunEventByEvent) {
  const topology::Catalogue catalogue = topology::Catalogue::load(TOPSIM_SOURCE_DIR "/configs");
  std::uint64_t walked = 0, taken = 0;
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    Case c = random_case(seed, 8);
    c.options.steps = 2;
    // In two of every four cases tensor groups fill their nodes, so nobody else uses their NVLinks.
    const bool fills = seed % 4 < 2, walkable = fills && seed % 8 < 4;
    if (fills) {
      auto& plan = c.workload.plan;
      plan.tp = 8;
      if (c.workload.model.experts.count > 0) plan.sequence_parallel = true;  // as experts need with tp
      if (plan.pp > c.topology.nodes) plan.pp = 1;
      plan.dp = c.topology.nodes / plan.pp;
    }
    if (walkable) make_walkable(c);
    const Events events = expect_same_either_way(c, catalogue, seed % 2 == 0);
    if (walkable) walked += events.walked, taken += events.taken;
    if (HasFailure()) break;
  }
  EXPECT_LT(walked, taken / 4) << "hardly anything walked: nothing was tested";
}

// Tensor and context groups share the NVLinks of their trays, so that both together walk as one team, or
// tensor groups alone where a circle does not agree; the network solves large components by regions
// meanwhile.
TEST(LockStep, HoldsForCirclesAcrossNvlinkDomains) {
  const topology::Catalogue catalogue = topology::Catalogue::load(TOPSIM_SOURCE_DIR "/configs");
  std::uint64_t walked = 0, taken = 0;
  for (std::uint64_t seed = 0; seed < 24; ++seed) {
    Case c = across_domains_case(seed);
    c.options.steps = 2;
    const Events events = expect_same_either_way(c, catalogue, seed % 2 == 0);
    walked += events.walked, taken += events.taken;
    if (HasFailure()) break;
  }
  EXPECT_LT(walked, taken / 2) << "hardly anything walked: nothing was tested";
}

// Every other GPU of these nodes sends by the NIC of its neighbour. So messages of the pipeline use links of
// the tensor group now and then, which has them to itself in between.
TEST(LockStep, HoldsWhereOthersComeAndGo) {
  const topology::Catalogue catalogue = topology::Catalogue::load(TOPSIM_SOURCE_DIR "/configs");
  std::uint64_t walked = 0, taken = 0;
  for (std::uint64_t seed = 0; seed < 6; ++seed) {
    Case c = random_case(seed, 1);
    c.topology.node.use = "mi250x-4";
    c.topology.nodes = 4;
    c.topology.fabric = {};
    c.topology.fabric.use = "frontier";
    make_walkable(c);
    auto& plan = c.workload.plan;
    plan = {};
    plan.tp = 8, plan.pp = 4, plan.dp = 1;
    plan.micro_batch = 1, plan.grad_accumulation = 8;
    plan.sequence_parallel = seed % 2 == 0;
    const topology::Topology topology = topology::build(c.topology, catalogue);
    const topology::Router router(topology, c.options.seed);
    const program::Program program = workloads::training_step(c.workload, topology, catalogue);
    const executor::Outcome quick = run(c, router, program, seed % 2 == 0, false);
    const executor::Outcome slow = run(c, router, program, seed % 2 == 0, true);
    expect_same(quick, slow, run(c, router, program, seed % 2 == 0, false, false), topology);
    walked += quick.events;
    taken += slow.events;
  }
  EXPECT_LT(walked, taken / 2) << "hardly anything walked: nothing was tested";
}
}  // namespace topsim::property::lock_step_test
