#include "sim/metrics/critical_path.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/report/sample.hpp"

namespace topsim::metrics::critical_path_test {
using namespace topsim::testing;

executor::PathLeg communication(Duration share, LinkId full, LinkId paced, Duration latency) {
  executor::PathLeg leg;
  leg.rank_class = 0;
  leg.op = 2;  // the all-reduce of two_ranks()
  leg.share = share;
  leg.reason = executor::Reason::data_parallel;
  leg.limiting_link = full;
  leg.paced_link = paced;
  leg.latency = latency;
  return leg;
}

TEST(CriticalPath, SplitsWhatDependsOnTheBytesFromWhatDoesNot) {
  const topology::Topology topology = two_nodes();
  const LinkId cable = link_between(topology, "node0/nic0", "leaf0");
  const LinkId slot = link_between(topology, "node0/gpu0", "node0/nic0");
  executor::Outcome outcome = two_steps(topology);
  // 4 ms on a full cable of which 1 ms is latency; 3 ms on a slot at NCCL's pace, 0.5 ms of it latency; 2 ms
  // that no link limits.
  outcome.critical_path = {communication(4_ms, cable, {}, 1_ms), communication(3_ms, {}, slot, 500_us),
                           communication(2_ms, {}, {}, 2_ms)};
  std::map<std::string, Duration> found;
  Duration sum{};
  for (const PathShare& each : path_by_link(outcome, two_ranks(), topology, "NCCL")) {
    found[each.what] = each.time;
    sum += each.time;
  }
  EXPECT_EQ(sum, 9_ms);
  EXPECT_EQ(found.at("NDR 400 Gbit/s"), 3_ms);
  EXPECT_EQ(found.at("PCIe 5 x16, 55 GB/s, as NCCL drives it"), 2500_us);
  EXPECT_EQ(found.at("latency of messages and of collectives' steps"), 3500_us);  // 1 + 0.5 + 2
}

TEST(CriticalPath, TellsWhatCommunicationAddedToComputationApart) {
  const topology::Topology topology = two_nodes();
  executor::Outcome outcome = two_steps(topology);
  outcome.critical_path.resize(1);
  outcome.critical_path[0].slowed = 5_ms;  // of 12 ms of computation
  const auto shares = path_by_link(outcome, two_ranks(), topology, "NCCL");
  ASSERT_EQ(shares.size(), 2U);
  EXPECT_EQ(shares[0].what, "computation");
  EXPECT_EQ(shares[0].time, 7_ms);
  EXPECT_EQ(shares[1].what, "computation, slowed by communication beside it");
  EXPECT_EQ(shares[1].time, 5_ms);
}

// A collective that waits until kernels of computation leave it units is not slow by itself.
TEST(CriticalPath, ChargesTheWaitForUnitsToComputation) {
  const topology::Topology topology = two_nodes();
  executor::Outcome outcome = two_steps(topology);
  outcome.critical_path = {communication(4_ms, {}, {}, {}), communication(2_ms, {}, {}, {})};
  outcome.critical_path[0].for_units = true;
  const auto shares = path_by_link(outcome, two_ranks(), topology, "NCCL");
  ASSERT_EQ(shares.size(), 2U);
  EXPECT_EQ(shares[0].what, "computation that keeps collectives' kernels waiting");
  EXPECT_EQ(shares[0].time, 4_ms);
}

TEST(CriticalPath, SumsTheSameTimeByOperation) {
  const topology::Topology topology = two_nodes();
  executor::Outcome outcome = two_steps(topology);
  outcome.critical_path = {communication(4_ms, {}, {}, {}), communication(2_ms, {}, {}, {})};
  const auto shares = path_by_op(outcome, two_ranks());
  ASSERT_EQ(shares.size(), 1U);
  EXPECT_EQ(shares[0].what, "gradient all_reduce");
  EXPECT_EQ(shares[0].time, 6_ms);
  EXPECT_DOUBLE_EQ(shares[0].share, 1);
}
}  // namespace topsim::metrics::critical_path_test
