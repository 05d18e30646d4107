#include "sim/report/findings.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/report/sample.hpp"

namespace topsim::report::findings_test {
using namespace topsim::testing;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::vector<std::string> messages(const Result& result) {
  std::vector<std::string> texts;
  for (const Finding& each : result.findings) texts.push_back(each.message);
  return texts;
}

bool says(const Result& result, const std::string& part) {
  const auto texts = messages(result);
  return std::any_of(texts.begin(), texts.end(),
                     [&](const std::string& text) { return text.find(part) != std::string::npos; });
}

Result with(const executor::Outcome& outcome, const topology::Topology& topology, Memory used = memory()) {
  return make_result(facts(), topology, two_ranks(), std::move(used), outcome);
}

TEST(Findings, AFabricThatCarriedNothingIsSaidFirst) {
  const topology::Topology topology = two_nodes();
  executor::Outcome outcome = two_steps(topology);
  EXPECT_FALSE(says(with(outcome, topology), "carried no traffic"));
  outcome.links = {{{link_between(topology, "node0/gpu0", "node0/nic0")}, 1e6, 1e9, 1_ms}};
  const Result result = with(outcome, topology);
  ASSERT_FALSE(result.findings.empty());
  EXPECT_EQ(result.findings[0].message,
            "the fabric carried no traffic; no other fabric would change this step");
}

// A flag of 16 B between the nodes takes latency only, which the bytes on links do not show.
TEST(Findings, AFabricThatCarriedFlagsAloneIsNotCalledIdle) {
  const topology::Topology topology = two_nodes();
  executor::Outcome outcome = two_steps(topology);
  outcome.links.clear();
  program::Program program = two_ranks();
  for (program::RankProgram& each : program.classes) each.ops[1].bytes = 16_B;
  const Result result = make_result(facts(), topology, program, memory(), outcome);
  EXPECT_FALSE(says(result, "carried no traffic"));
  EXPECT_TRUE(says(result, "the fabric carried only messages of 16 B and less"));
  for (program::RankProgram& each : program.classes) each.ops[1].bytes = 17_B;
  EXPECT_TRUE(says(make_result(facts(), topology, program, memory(), outcome), "carried no traffic"));
}

// A demand of 137.5 GB/s on a cable of 50 GB/s: 275 %.
TEST(Findings, APeakAboveACableIsTheDemandWhereMessagesShareNothing) {
  const topology::Topology topology = two_nodes();
  executor::Outcome outcome = two_steps(topology);
  ScenarioFacts analytic = facts();
  analytic.network_model = "analytic";
  const auto result = [&] { return make_result(analytic, topology, two_ranks(), memory(), outcome); };
  EXPECT_FALSE(says(result(), "analytic model"));
  outcome.links.front().peak_rate = 137.5e9;
  EXPECT_TRUE(says(result(), "messages share no link in the analytic model"));
  EXPECT_TRUE(says(result(), "is asked for 275 % of what it carries"));
}

// 105 % of the peak: a card that clocks above its data sheet.
TEST(Findings, MoreThanThePeakIsExplained) {
  const topology::Topology topology = two_nodes();
  const executor::Outcome outcome = two_steps(topology);
  program::Program program = two_ranks();
  const double mfu = make_result(facts(), topology, program, memory(), outcome).throughput.mfu;
  ASSERT_GT(mfu, 0);
  EXPECT_FALSE(says(make_result(facts(), topology, program, memory(), outcome), "of the peak"));
  program.facts.model_flops = Flops(program.facts.model_flops.value() * 1.05 / mfu);
  EXPECT_TRUE(says(make_result(facts(), topology, program, memory(), outcome), "105 % of the peak"));
}

// The same of times that the scenario gives: no clock explains them.
TEST(Findings, TimesGivenThatBeatTheAcceleratorAreAWarning) {
  const topology::Topology topology = two_nodes();
  const executor::Outcome outcome = two_steps(topology);
  program::Program program = two_ranks();
  ScenarioFacts given = facts();
  given.stage_times = true;
  const double mfu = make_result(given, topology, program, memory(), outcome).throughput.mfu;
  program.facts.model_flops = Flops(program.facts.model_flops.value() * 7.27 / mfu);
  const Result result = make_result(given, topology, program, memory(), outcome);
  ASSERT_TRUE(says(result, "727 % of the peak"));
  const auto found = std::find_if(result.findings.begin(), result.findings.end(),
                                  [](const Finding& f) { return f.path == "workload.compute.stage_times"; });
  ASSERT_NE(found, result.findings.end());
  EXPECT_EQ(found->severity, Severity::warning);
}

// 1 ms of a step of 10 is lost beside a ring of 8 channels, on a full fabric. Leaving a margin of 8 of 132
// units would cost 8 / 124 of 5.5 ms of work, 0.35 ms, if products take all units.
TEST(Findings, KernelsThatCommunicationSlowsAreSaidWithWhatShortensThem) {
  const topology::Topology topology = two_nodes();
  executor::Outcome outcome = two_steps(topology);
  program::Program program = two_ranks();
  ScenarioFacts facts = testing::facts();
  facts.compute_units = 132;
  const auto said = [&] {
    const Result result = make_result(facts, topology, program, memory(), outcome);
    const auto at = std::find_if(result.findings.begin(), result.findings.end(), [](const Finding& each) {
      return each.message.find("slower beside communication") != std::string::npos;
    });
    return at == result.findings.end() ? Finding{} : *at;
  };
  const auto lose = [&](Duration time) {
    for (executor::RankClass& rank : outcome.ranks)
      for (executor::StepAccount& step : rank.steps) step.slowed = time;
  };
  lose(290_us);
  EXPECT_EQ(said().message, "");
  lose(1_ms);
  EXPECT_THAT(said().message, HasSubstr("10.0 % of the step, counted as busy"));
  EXPECT_EQ(said().severity, Severity::warning);
  EXPECT_THAT(said().remedy, HasSubstr("more network bandwidth (NICs in wider PCIe slots, links"));
  EXPECT_THAT(said().remedy, ::testing::Not(HasSubstr("sm_margin")));
  program.classes[0].grids = {{0, {}, 1, {}, 1}};
  EXPECT_THAT(said().remedy, HasSubstr("compute.sm_margin 8"));
  EXPECT_THAT(said().remedy, ::testing::Not(HasSubstr("micro_batch")));  // the bubble would grow
  facts.pipeline_stages = 1;
  EXPECT_THAT(said().remedy, HasSubstr("micro_batch"));
  lose(340_us);  // less than the margin would cost
  EXPECT_EQ(said().severity, Severity::note);
  EXPECT_THAT(said().remedy, ::testing::Not(HasSubstr("sm_margin")));
  lose(1_ms);
  for (executor::LinkClass& link : outcome.links) link.bytes = 0.1e9;  // 4 of 20 ms on the uplink
  EXPECT_THAT(said().remedy, ::testing::Not(HasSubstr("sm_margin")));
}

// Where launches are the limit, a change that launches more kernels is not proposed.
TEST(Findings, WhatLaunchesMoreKernelsIsNoHintWhereTheHostIsTheLimit) {
  const topology::Topology topology = two_nodes();
  executor::Outcome outcome = two_steps(topology);
  ScenarioFacts facts = testing::facts();
  facts.open = {{.phrase = "no user buffers",
                 .path = "workload.plan.tp_overlap",
                 .reason = executor::Reason::tensor_parallel,
                 .from = 0.05,
                 .more_launches = true}};
  for (executor::RankClass& rank : outcome.ranks)
    for (executor::StepAccount& step : rank.steps) {
      step.idle[static_cast<std::size_t>(executor::Reason::tensor_parallel)] = 1_ms;
      step.busy -= 1_ms;
    }
  const auto hints = [&] {
    const Result result = make_result(facts, topology, two_ranks(), memory(), outcome);
    const auto assumes = [](const Finding& each) {
      return each.assumed == std::vector<std::string>{"workload.plan.tp_overlap"};
    };
    const bool told = std::any_of(result.findings.begin(), result.findings.end(), assumes);
    EXPECT_EQ(told, says(result, "no user buffers"));
    return told;
  };
  EXPECT_TRUE(hints());
  for (executor::RankClass& rank : outcome.ranks)
    for (executor::StepAccount& step : rank.steps) {
      step.idle[static_cast<std::size_t>(executor::Reason::host)] = 1_ms;
      step.busy -= 1_ms;
    }
  EXPECT_FALSE(hints());
  facts.open.front().more_launches = false;
  EXPECT_TRUE(hints());
}

// A trace of ranks and messages in which one of the two ranks does nothing.
TEST(Findings, RanksWithoutAPartInATraceAreCounted) {
  const topology::Topology topology = two_nodes();
  executor::Outcome outcome = two_steps(topology);
  const auto waits = account({}, {{executor::Reason::straggler, 10_ms}});
  outcome.ranks[1].steps = {waits, waits};
  ScenarioFacts facts = testing::facts();
  facts.trace = true;
  EXPECT_TRUE(
      says(make_result(facts, topology, two_ranks(), memory(), outcome), "1 of 2 have no part in it"));
}

TEST(Findings, AMachineWithoutAFabricIsNotBlamedForAnIdleOne) {
  topology::TopologyBuilder builder;
  builder.set_nodes(1);
  const auto type = builder.link_type({"nvlink4", "NVLink4", "test"});
  const auto a = builder.device({DeviceKind::accelerator, 0, 1, 0, 0, builder.model("h100")});
  const auto b = builder.device({DeviceKind::accelerator, 0, 1, 0, 1, builder.model("h100")});
  builder.cable({a, b, LinkKind::nvlink, 1, type, {}, 450_GBps, 450_GBps, 0_ns});
  const topology::Topology topology = std::move(builder).finish();
  executor::Outcome outcome;
  outcome.step_times = {4_ms};
  outcome.ranks = {{0, {RankId(0)}, {account(4_ms, {})}}};
  outcome.end = SimTime(4_ms);
  EXPECT_THAT(messages(with(outcome, topology)), IsEmpty());
}

TEST(Findings, OversubscriptionIsAWarningOnlyWhereItLimits) {
  const topology::Topology topology = two_nodes();  // 50 GB/s below a leaf, 25 above
  executor::Outcome outcome = two_steps(topology);
  const auto severity = [&] {
    const Result result = with(outcome, topology);
    const auto at = std::find_if(result.findings.begin(), result.findings.end(), [](const Finding& each) {
      return each.message.find("oversubscribed") != std::string::npos;
    });
    return at->severity;
  };
  // The uplink limits 8 of the critical path's 12 + 8 ms.
  EXPECT_TRUE(
      says(with(outcome, topology),
           "leaf switches are 2.00:1 oversubscribed; links between switches limit 40.0 % of the step"));
  EXPECT_EQ(severity(), Severity::warning);
  // 7.5 of these 8 ms are latency, which more bandwidth does not shorten.
  outcome.critical_path[1].latency = 7500_us;
  EXPECT_TRUE(says(with(outcome, topology), "links between switches limit 2.5 % of the step"));
  EXPECT_FALSE(says(with(outcome, topology), "links limit"));
  EXPECT_EQ(severity(), Severity::note);
  outcome.critical_path[1].limiting_link = link_between(topology, "node0/nic0", "leaf0");
  // The uplink is full at times, at 25 GB/s, but limits nothing on the critical path.
  EXPECT_TRUE(
      says(with(outcome, topology), "2.00:1 oversubscribed; links between switches are full at times"));
  for (executor::LinkClass& each : outcome.links) each.peak_rate = std::min(each.peak_rate, 24e9);
  EXPECT_TRUE(says(with(outcome, topology), "2.00:1 oversubscribed and limit nothing"));
}

// Three leaves with 50 GB/s below and 25, 12.5 and 50 above: two are oversubscribed, the second most, 4:1.
// The mean, 150 to 87.5, is the ratio of none.
TEST(Findings, TheLeafThatIsOversubscribedMostIsNamed) {
  topology::TopologyBuilder builder;
  builder.set_nodes(3);
  const auto ndr = builder.link_type({"ib-ndr", "NDR 400 Gbit/s", "test"});
  const auto gpu = builder.model("h100-sxm5"), card = builder.model("connectx-7"),
             box = builder.model("qm9700");
  std::vector<DeviceId> nics, leaves;
  for (std::uint32_t node = 0; node < 3; ++node) {
    const DeviceId chip = builder.device({DeviceKind::accelerator, 0, 1, node, 0, gpu});
    nics.push_back(builder.device({DeviceKind::nic, 0, 1, node, 0, card}));
    builder.cable({chip, nics.back(), LinkKind::pcie, 1, ndr, {}, 55_GBps, 55_GBps, 0_ns});
  }
  for (std::uint32_t leaf = 0; leaf < 3; ++leaf)
    leaves.push_back(builder.device({DeviceKind::fabric_switch, 1, 1, Id<void>::kNone, leaf, box}));
  const DeviceId spine = builder.device({DeviceKind::fabric_switch, 2, 1, Id<void>::kNone, 0, box});
  const BytesPerSecond up[] = {25_GBps, 12.5_GBps, 50_GBps};
  for (std::size_t i = 0; i < 3; ++i) {
    builder.cable({nics[i], leaves[i], LinkKind::infiniband, 1, ndr, {}, 50_GBps, 50_GBps, 1_us});
    builder.cable({leaves[i], spine, LinkKind::infiniband, 1, ndr, {}, up[i], up[i], 1_us});
  }
  const topology::Topology topology = std::move(builder).finish();
  executor::Outcome outcome;
  outcome.step_times = {4_ms};
  outcome.ranks = {{0, {RankId(0)}, {account(4_ms, {})}}};
  outcome.links = {{{link_between(topology, "node0/nic0", "leaf0")}, 1e6, 1e9, 1_ms}};
  outcome.end = SimTime(4_ms);
  EXPECT_TRUE(says(with(outcome, topology),
                   "2 of 3 leaf switches are oversubscribed (leaf1 the most, 4.00:1) and limit nothing"));
}

TEST(Findings, ASlotNarrowerThanItsNicIsNamed) {
  EXPECT_FALSE(says(sample_result(), "PCIe"));
  const topology::Topology topology = two_nodes(25_GBps);
  EXPECT_TRUE(says(with(two_steps(topology), topology),
                   "on 2 of 2 NICs: node0/nic0 carries 25.0 GB/s to a fabric port of 50.0 GB/s"));
}

// Most collectives are limited by NCCL's own rate: the link that it loads most is named, and that NCCL drives
// it.
TEST(Findings, ALinkThatNcclDrivesIsNamedToo) {
  const topology::Topology topology = two_nodes();
  executor::Outcome outcome = two_steps(topology);
  outcome.critical_path[1].paced_link = link_between(topology, "node0/nic0", "leaf0");
  outcome.critical_path[1].limiting_link = {};
  // 8 of the 20 ms of the path.
  EXPECT_TRUE(says(with(outcome, topology), "links, as NCCL drives them, limit 40.0 % of the step"));
}

TEST(Findings, WhatAPartialRunHasNotCarriedIsNoFinding) {
  const topology::Topology topology = two_nodes();
  executor::Outcome outcome = two_steps(topology);
  outcome.complete = false;
  outcome.links.clear();
  EXPECT_FALSE(says(with(outcome, topology), "carried no traffic"));
  EXPECT_FALSE(says(with(outcome, topology), "oversubscribed"));
}

TEST(Findings, NearlyFullMemoryNamesTheShare) {
  const topology::Topology topology = two_nodes();
  EXPECT_FALSE(says(with(two_steps(topology), topology), "memory"));
  EXPECT_TRUE(says(with(two_steps(topology), topology, memory(76_GiB)), "memory is nearly full"));
  Memory over = memory(90_GiB);
  over.fits = false;
  EXPECT_TRUE(says(with(two_steps(topology), topology, over), "does not fit"));
}

TEST(Findings, OffloadSaysWhatHostMemoryItNeeds) {
  const topology::Topology topology = two_nodes();
  Memory used = memory();
  used.host = 120_GiB;
  EXPECT_TRUE(says(with(two_steps(topology), topology, used), "does not say how much"));
  used.host_capacity = 128_GiB;
  EXPECT_TRUE(says(with(two_steps(topology), topology, used), "120 GiB of host memory per node, which has"));
}

TEST(Findings, LaunchBoundAndStragglerComeFromTheIdleAccount) {
  const topology::Topology topology = two_nodes();
  executor::Outcome outcome = two_steps(topology);
  // Mean over both ranks: 0.5 of 10 ms for the slowest; nobody waits for the host.
  EXPECT_TRUE(says(with(outcome, topology), "wait 5.0 % of the step for the slowest"));
  EXPECT_FALSE(says(with(outcome, topology), "launch-bound"));
  for (auto& step : outcome.ranks[0].steps) step = account(6_ms, {{Reason::host, 4_ms}});
  EXPECT_TRUE(says(with(outcome, topology), "launch-bound: accelerators wait 20.0 %"));
}

// Both ranks wait 4 of 10 ms for one reason and 1 ms for another.
TEST(Findings, WhatTakesMoreOfTheStepIsSaidFirst) {
  const topology::Topology topology = two_nodes();
  executor::Outcome outcome = two_steps(topology);
  const auto first = [&](Duration bubble, Duration straggler) {
    for (auto& rank : outcome.ranks)
      for (auto& step : rank.steps)
        step = account(5_ms, {{Reason::pipeline_bubble, bubble}, {Reason::straggler, straggler}});
    const auto texts = messages(with(outcome, topology));
    return *std::find_if(texts.begin(), texts.end(), [](const std::string& text) {
      return text.find("bubble") != std::string::npos || text.find("slowest") != std::string::npos;
    });
  };
  EXPECT_THAT(first(4_ms, 1_ms), HasSubstr("bubble takes 40.0 %"));
  EXPECT_THAT(first(1_ms, 4_ms), HasSubstr("wait 40.0 % of the step for the slowest"));
}

// The micro-batches of a replayed trace are recorded: no key of a plan changes them.
TEST(Findings, AReplayedTraceIsNotAdvisedAnotherPlan) {
  const topology::Topology topology = two_nodes();
  executor::Outcome outcome = two_steps(topology);
  for (auto& step : outcome.ranks[1].steps)
    step = account(4_ms, {{Reason::straggler, 4_ms}, {Reason::host, 2_ms}});
  ScenarioFacts replayed = facts();
  replayed.trace = true;
  const Result result = make_result(replayed, topology, two_ranks(), memory(), outcome);
  EXPECT_TRUE(says(result, "wait 20.0 % of the step for other ranks' part of the trace"));
  for (const Finding& each : result.findings)
    EXPECT_FALSE(each.path.starts_with("workload.plan")) << each.message;
}

TEST(Findings, APartialRunSaysSo) {
  const topology::Topology topology = two_nodes();
  executor::Outcome outcome = two_steps(topology);
  outcome.complete = false;
  EXPECT_THAT(messages(with(outcome, topology)).front(), HasSubstr("stopped early"));
}
}  // namespace topsim::report::findings_test
