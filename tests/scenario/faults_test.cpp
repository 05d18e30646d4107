#include "sim/scenario/cluster/faults.hpp"

#include <gmock/gmock.h>

#include "sim/base/error.hpp"
#include "sim/report/json.hpp"
#include "sim/report/text.hpp"
#include "sim/scenario/read/read.hpp"
#include "sim/scenario/run/simulate.hpp"

namespace topsim::scenario::faults_test {
using testing::HasSubstr;

const std::string kConfigs = std::string(TOPSIM_SOURCE_DIR) + "/configs";

const topology::Catalogue& catalogue() {
  static const topology::Catalogue loaded = topology::Catalogue::load(kConfigs);
  return loaded;
}

// Two boxes on eight rails, a step without warm-up; `faults` is the JSON of the list.
Scenario with_faults(const std::string& faults, const std::string& more = "") {
  return parse_scenario(
      R"({"topology": {"node": "hgx-h100", "nodes": 2,
          "fabric": {"kind": "rail", "link": "ib-ndr", "switch": "qm9700", "tiers": 2}},
          "workload": {"model": "llama3-8b", "sequence": 4096, "framework": "megatron",
                       "plan": {"tp": 8, "dp": 2, "micro_batch": 1, "global_batch": 8, "zero": 1},
                       "compute": {"launch_overhead": "2 us"}},
          "run": {"steps": 1, "warmup": 0}, "faults": )" +
          faults + more + "}",
      "test", {}, config::Library({kConfigs}));
}

report::Result result_of(const Scenario& scenario) {
  return simulate(scenario, catalogue(), {}, nullptr).result;
}

Duration step_with(const std::string& faults) {
  return result_of(with_faults(faults)).step;
}

TEST(Faults, ADeadNicsTrafficTakesAnotherNicOfTheNode) {
  const report::Result whole = result_of(with_faults("[]"));
  const report::Result left = result_of(with_faults(R"([{"kind": "nic_down", "target": "node0/nic3"}])"));
  EXPECT_GE(left.step, whole.step);
  for (const report::LinkRow& link : left.links) EXPECT_NE(link.from, "node0/nic3") << link.id;
  std::string said;
  for (const report::Finding& finding : left.findings) said += finding.message + '\n';
  EXPECT_THAT(said, HasSubstr("node0/nic3 is down"));
}

// A NIC cut off from its host still has its cable, but nothing behind it: as if the NIC were down.
TEST(Faults, ANicWithoutItsHostIsAsGoodAsDown) {
  const Duration down = step_with(R"([{"kind": "nic_down", "target": "node0/nic0"}])");
  EXPECT_EQ(step_with(R"([{"kind": "link_down", "target": "node0/pcie0 - node0/nic0"}])"), down);
  EXPECT_GT(down, step_with("[]"));
}

// Messages go over PCIe, and collectives no longer sum in the NVSwitches.
TEST(Faults, AnAcceleratorThatLostItsNvlinksGoesOnOverPcie) {
  const Scenario scenario =
      with_faults(R"([{"kind": "link_down", "target": "node0/gpu0 - node0/nvswitch0"}])");
  const report::Result cut = result_of(scenario);
  EXPECT_GT(cut.step, step_with("[]"));
  for (const report::LinkRow& link : cut.links) {
    EXPECT_NE(link.id, "node0/gpu0 -> node0/nvswitch0");
    EXPECT_NE(link.id, "node0/nvswitch0 -> node0/gpu0");
  }
  for (const report::CollectiveRow& row : cut.collectives) EXPECT_THAT(row.algorithm, Not(HasSubstr("NVLS")));
  EXPECT_EQ(simulate(scenario, catalogue(), {.fold = false}, nullptr).result.step, cut.step);
}

// If the NIC fails 1 us after the start, channels are those of eight NICs, and two of them share one from
// then on. A job that starts without it has channels for seven.
TEST(Faults, WhoStartsWithoutANicHasChannelsForTheOthers) {
  const auto fault = [](const char* more) {
    return std::string(R"([{"kind": "nic_down", "target": "node0/nic3")") + more + "}]";
  };
  const auto step = [](const std::string& faults) {
    Scenario scenario = with_faults(faults);
    scenario.workload.plan.tp = 1, scenario.workload.plan.dp = 16;
    scenario.workload.plan.global_batch = 16;
    return simulate(scenario, catalogue(), {.allow_oom = true}, nullptr).result.step;
  };
  EXPECT_LT(step(fault("")), step(fault(R"(, "at": "1 us", "failover": "1 us")")));
  std::string said;
  for (const report::Finding& finding : result_of(with_faults(fault(""))).findings)
    said += finding.message + '\n';
  EXPECT_THAT(said, HasSubstr("collectives between nodes begin without a NIC that is down"));
  EXPECT_THAT(said, HasSubstr("as many NICs as node0, where the fewest are left: 7 of 8"));
}

// Adaptive routing uses all cables between two switches as one link; its name means all of them.
TEST(Faults, ALinkOfSeveralCablesSaysThatAllAreDown) {
  Scenario scenario = with_faults(R"([{"kind": "link_down", "target": "leaf0 - spine0", "for": "1 ms"}])");
  scenario.topology.fabric.kind = topology::FabricKind::fat_tree, scenario.topology.fabric.nodes_per_leaf = 1;
  std::string said;
  for (const report::Finding& finding : result_of(scenario).findings) said += finding.message + '\n';
  EXPECT_THAT(said,
              testing::ContainsRegex(
                  "leaf0 - spine0 is 8 cables side by side and all are down; .leaf0 - spine0 #0. to .#7."));
}

// Eight NICs per leaf at 1:1: eight cables up to the one spine. One cut leaves seven eighths of the bundle,
// seven cut leave one eighth.
TEST(Faults, ASingleCableOfABundleIsItsShareOfIt) {
  const auto step = [](const std::string& faults) {
    Scenario scenario = with_faults("[" + faults + "]");
    scenario.topology.fabric.kind = topology::FabricKind::fat_tree,
    scenario.topology.fabric.nodes_per_leaf = 1;
    return result_of(scenario).step;
  };
  const auto cut = [](const char* cable) {
    return std::string(R"({"kind": "link_down", "target": "leaf0 - spine0 #)") + cable + "\"}";
  };
  const auto left = [](const char* factor) {
    return std::string(R"({"kind": "link_degraded", "target": "leaf0 - spine0", "factor": )") + factor + "}";
  };
  std::string seven;
  for (const char* cable : {"0", "1", "2", "3", "4", "5", "7"})
    seven += (seven.empty() ? "" : ", ") + cut(cable);
  EXPECT_GT(step(seven), step(""));
  EXPECT_EQ(step(seven), step(left("0.125")));
  EXPECT_EQ(step(seven + ", " + cut("3")), step(left("0.125")));
  EXPECT_EQ(step(cut("3")), step(left("0.875")));
}

// Two factors of 0.5 from the beginning are one of 0.25.
TEST(Faults, TwoSlowDownsOfOneAcceleratorMultiply) {
  const auto slow = [](const std::string& factor) {
    return R"({"kind": "gpu_slow", "target": "node0/gpu2", "factor": )" + factor + "}";
  };
  EXPECT_EQ(step_with("[" + slow("0.5") + ", " + slow("0.5") + "]"), step_with("[" + slow("0.25") + "]"));
}

// The only step begins at 0 and takes less than a second.
TEST(Faults, AFaultThatNoMeasuredStepSeesIsAFinding) {
  const auto said = [](const std::string& when) {
    std::string all;
    for (const report::Finding& finding :
         result_of(with_faults(R"([{"kind": "link_degraded", "target": "node0/nic3 - leaf3")" + when + "}]"))
             .findings)
      all += finding.path + ": " + finding.message + '\n';
    return all;
  };
  constexpr const char* kOutside = "falls outside the measured steps";
  EXPECT_THAT(said(R"(, "at": "1 h")"),
              HasSubstr("faults[0]: the fault of node0/nic3 - leaf3 falls outside"));
  EXPECT_THAT(said(""), testing::Not(HasSubstr(kOutside)));
  EXPECT_THAT(said(R"(, "at": "1 ms", "for": "1 ms")"), testing::Not(HasSubstr(kOutside)));
}

// A lost accelerator counts in the run of `reliability`, which lasts longer than the measured steps.
TEST(Faults, ALossAfterTheEndOfTheRunIsAFinding) {
  const auto said = [](const std::string& at) {
    std::string all;
    for (const report::Finding& finding :
         result_of(
             with_faults(R"([{"kind": "gpu_down", "target": "node0/gpu0", "at": ")" + at + "\"}]",
                         R"(, "reliability": {"days": 1, "checkpoint_time": "30 s", "restart": "1 h"})"))
             .findings)
      all += finding.path + ": " + finding.message + '\n';
    return all;
  };
  EXPECT_THAT(said("24 h"),
              HasSubstr("faults[0]: the fault of node0/gpu0 falls outside the run (reliability.days: 1)"));
  EXPECT_THAT(said("23 h"), testing::Not(HasSubstr("falls outside")));
}

// 0.5 x 0.5 = 0.25; a link that comes back from an outage is still degraded by a fault that lasts longer.
TEST(Faults, FaultsOfOnePartAddUp) {
  const auto degraded = [](const std::string& factor, const std::string& at = "0 s") {
    return R"({"kind": "link_degraded", "target": "node0/nic3 - leaf3", "factor": )" + factor +
           R"(, "at": ")" + at + "\"}";
  };
  const Duration quarter = step_with("[" + degraded("0.25") + "]");
  EXPECT_GT(quarter, step_with("[" + degraded("0.5") + "]"));
  EXPECT_EQ(step_with("[" + degraded("0.5") + ", " + degraded("0.5") + "]"), quarter);
  const std::string blink =
      R"({"kind": "link_down", "target": "node0/nic3 - leaf3", "at": "10 us", "for": "1 us"})";
  EXPECT_GE(step_with("[" + degraded("0.25") + ", " + blink + "]"), quarter);
  const auto slow = [](const std::string& factor) {
    return R"({"kind": "gpu_slow", "target": "node0/gpu0", "at": "1 us", "for": "1000 s", "factor": )" +
           factor + "}";
  };
  EXPECT_EQ(step_with("[" + slow("0.5") + ", " + slow("0.5") + "]"), step_with("[" + slow("0.25") + "]"));
}

TEST(Faults, WithoutAnyPathTheRankThatCannotBeReachedIsNamed) {
  std::string all = "[";
  for (int nic = 0; nic < 8; ++nic)
    all += (nic > 0 ? ", " : "") + std::string(R"({"kind": "nic_down", "target": "node1/nic)") +
           std::to_string(nic) + "\"}";
  try {
    const report::Result result = result_of(with_faults(all + "]"));
    FAIL() << result.headline;
  } catch (const ConfigError& error) {
    EXPECT_EQ(error.problems().at(0).path, "faults");
    EXPECT_THAT(error.problems().at(0).message, HasSubstr("no working cable leaves node1's NICs"));
  }
}

TEST(Faults, AnAcceleratorThatThrottlesForAWhileCostsLessThanOneThatAlwaysDoes) {
  const Duration whole = step_with("[]");
  const Duration always = step_with(R"([{"kind": "gpu_slow", "target": "node0/gpu2", "factor": 0.5}])");
  const std::string half = std::to_string(seconds(whole) / 4) + " s";
  const Duration briefly =
      step_with(R"([{"kind": "gpu_slow", "target": "node0/gpu2", "factor": 0.5, "for": ")" + half + "\"}]");
  EXPECT_LT(whole, briefly);
  EXPECT_LT(briefly, always);
  // Half speed for a quarter of the step leaves an eighth of its work, so at most an eighth of the time is
  // added.
  EXPECT_LT(seconds(briefly), seconds(whole) * 1.126);
}

TEST(Faults, AnAcceleratorCanBeNamedByTheRankThatRunsThere) {
  EXPECT_EQ(step_with(R"([{"kind": "gpu_slow", "target": 2, "factor": 0.5}])"),
            step_with(R"([{"kind": "gpu_slow", "target": "node0/gpu2", "factor": 0.5}])"));
}

TEST(Faults, OverBeforeTheFirstStepIsMeasuredOrAfterTheLastOneChangeNothing) {
  const Duration whole = step_with("[]");
  EXPECT_EQ(step_with(R"([{"kind": "gpu_slow", "target": "node0/gpu2", "at": "0 s", "for": "1 ns"}])"),
            whole);
  EXPECT_EQ(step_with(R"([{"kind": "gpu_slow", "target": "node0/gpu2", "at": "1 h", "for": "1 s"}])"), whole);
  // The fault ends beyond the 106 days that the clock holds.
  EXPECT_EQ(step_with(R"([{"kind": "gpu_slow", "target": "node0/gpu2", "at": "60 days", "for": "60 days"}])"),
            whole);
}

TEST(Faults, AFlappingCableCostsAtMostItsOutages) {
  const Duration whole = step_with("[]");
  const std::string flap =
      R"([{"kind": "link_flapping", "target": "node0/nic0 - leaf0", "for": "10 s", "period": "50 ms", "down": "40 ms"}])";
  const Duration flapping = step_with(flap);
  EXPECT_GT(flapping, whole);
  // Up a fifth of the time: at most five times as long, plus the last outage.
  EXPECT_LT(seconds(flapping), seconds(whole) * 5 + 0.04);
}

// Down for 30 of every 40 ms, and an accelerator that is at 0.999 of its speed for 1 ms: the cable costs the
// step, the accelerator does not, and each is left out by itself.
TEST(Faults, WhatAFlappingCableCostsIsAFinding) {
  const std::string slow =
      R"({"kind": "gpu_slow", "target": "node0/gpu2", "at": "1 ms", "for": "1 ms", "factor": 0.999})";
  const std::string flap = R"({"kind": "link_flapping", "target": "node0/nic0 - leaf0", "at": "0 ms",
                               "for": "2 s", "period": "40 ms", "down": "30 ms"})";
  const std::string both = "[" + slow + ", " + flap + "]";
  const Duration sound = step_with("[" + slow + "]"), step = step_with(both);
  const auto finding = [&](int fault, bool further_runs) {
    const report::Result result =
        simulate(with_faults(both), catalogue(), {.further_runs = further_runs}, nullptr).result;
    const auto found = std::find_if(result.findings.begin(), result.findings.end(), [&](const auto& each) {
      return each.path == "faults[" + std::to_string(fault) + "]";
    });
    EXPECT_NE(found, result.findings.end());
    return found == result.findings.end() ? report::Finding{} : *found;
  };
  EXPECT_THAT(finding(1, false).message, Not(HasSubstr("without that")));
  const report::Finding measured = finding(1, true);
  EXPECT_EQ(measured.severity, report::Severity::warning);
  EXPECT_GT(measured.share, 0.1);
  EXPECT_DOUBLE_EQ(measured.share, 1 - seconds(sound) / seconds(step));
  EXPECT_THAT(measured.message, HasSubstr("without that a step takes " + report::duration_text(sound)));
  EXPECT_THAT(finding(0, true).message, HasSubstr("without that alone a step takes as long"));
}

// A cable is down for the first 50 ms, longer than the whole step (26 ms). In both models whatever must pass
// it waits until then.
TEST(Faults, AnOutageCostsTheSameInPacketsAsInTheFluid) {
  const auto step = [](const std::string& model, const std::string& faults) {
    return microseconds(result_of(parse_scenario(R"({"topology": {"node": "hgx-h100", "nodes": 2,
          "fabric": {"kind": "rail", "link": "ib-ndr", "switch": "qm9700", "tiers": 2}},
          "workload": {"model": "opt-125m", "sequence": 1024, "framework": "megatron",
                       "plan": {"tp": 4, "dp": 4, "micro_batch": 1, "global_batch": 4, "zero": 1},
                       "compute": {"launch_overhead": "2 us"}},
          "network": {"model": ")" + model + R"("}, "run": {"steps": 1, "warmup": 0}, "faults": )" +
                                                     faults + "}",
                                                 "test", {}, config::Library({kConfigs})))
                            .step);
  };
  const std::string outage = R"([{"kind": "link_down", "target": "node0/nic0 - leaf0", "for": "50 ms"}])";
  const double fluid = step("flow", outage) - step("flow", "[]");
  EXPECT_GT(fluid, 25e3);
  EXPECT_NEAR(step("packet", outage) - step("packet", "[]"), fluid, 0.02 * fluid);
}

TEST(Faults, ALostAcceleratorCountsInTheGoodput) {
  const std::string more = R"(, "reliability": {"days": 1, "checkpoint_time": "10 s", "restart": "600 s",
      "checkpoint_interval": "990 s", "failures_per_year":
      {"accelerator": 0, "software-and-host": 0, "nic": 0, "fabric-link": 0}})";
  const report::Result result =
      result_of(with_faults(R"([{"kind": "gpu_down", "target": "node1/gpu0", "at": "2500 s"}])", more));
  ASSERT_TRUE(result.goodput);
  // 500 s since the second checkpoint and 600 s of restart, of one day; 1 % for checkpoints.
  EXPECT_NEAR(result.goodput->share.usual, 0.99 * (1 - 1100.0 / 86400), 1e-9);
}

TEST(Faults, TheResultWithGoodputReadsBackToTheSame) {
  const report::Result result =
      result_of(with_faults("[]", R"(, "reliability": {"checkpoint_time": "30 s", "restart": "10 min"})"));
  const std::string text = report::to_json(result);
  EXPECT_EQ(report::to_json(report::result_from_json(text, "test")), text);
}
}  // namespace topsim::scenario::faults_test
