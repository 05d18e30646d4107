#include "sim/network/flow.hpp"

#include <gtest/gtest.h>

#include <array>

#include "sim/network/analytic.hpp"

namespace topsim::network::flow_test {
using namespace literals;
constexpr double kGB = 1e9;  // with capacities in GB/s and sizes in 1e6 bytes, times are milliseconds

SimTime ms(double t) {
  return SimTime(from_seconds(t * 1e-3));
}

struct Harness {
  explicit Harness(std::vector<double> capacities) : network(capacities) {}
  void start(double bytes, std::vector<Usage> usage, SimTime now = {}, double cap = 0, double weight = 1,
             Duration latency = {}) {
    network.start({bytes, usage, cap, weight, latency, tag++, {}, {}, 0}, now);
  }
  // (tag, milliseconds) in order of completion.
  std::vector<std::pair<std::uint64_t, double>> finish() {
    std::vector<std::pair<std::uint64_t, double>> result;
    std::vector<Completion> completed;
    while (network.next_event() != kNever) {
      completed.clear();
      network.advance(network.next_event(), completed);
      for (const auto& [done, time] : completed)
        result.emplace_back(done, seconds(time.time_since_epoch()) * 1e3);
    }
    return result;
  }
  FlowNetwork network;
  std::uint64_t tag = 0;
};
using Ends = std::vector<std::pair<std::uint64_t, double>>;

// A record may be read in the middle of an instant (Ctrl-C does so), before what starts there is solved. It
// counts what was carried up to then: 0.5 ms at 1 GB/s.
TEST(Flow, ARecordBetweenAStartAndItsSolveCountsWhatWasCarried) {
  Harness h({1 * kGB});
  h.start(1e6, {{0, 1}});
  EXPECT_EQ(h.network.next_event(), ms(1));
  h.start(1e6, {{0, 1}}, ms(0.5));
  EXPECT_EQ(h.network.record(0).bytes, 5e5);
  EXPECT_EQ(h.finish(), (Ends{{0, 1.5}, {1, 2.0}}));  // 0.5 ms alone, 1 ms shared; then the rest alone
}

TEST(Flow, OneTransferTakesItsBytesOverTheTightestLinkThenItsLatency) {
  Harness h({4 * kGB, 2 * kGB});
  h.start(1e6, {{0, 1}, {1, 1}}, {}, 0, 1, 10_us);
  EXPECT_EQ(h.finish(), (Ends{{0, 0.51}}));  // 1 MB / 2 GB/s = 0.5 ms, + 0.01
}

// Messages of 1 MB, each at most 1 GB/s. Two of line 7 are sent one after the other, by 1 and 2 ms, and each
// arrives 5 ms later; their latencies overlap. Messages of another line, or of none, wait for nobody.
TEST(Flow, TransfersOfOneLineAreSentOneAfterTheOtherAndTravelSideBySide) {
  Harness h({4 * kGB});
  const std::vector<Usage> usage{{0, 1}};
  for (const std::uint64_t line : {7, 7, 8, 0}) {
    Transfer transfer{1e6, usage, 1 * kGB, 1, from_seconds(5e-3), h.tag++, {}, {}, 0};
    transfer.line = line;
    h.network.start(transfer, SimTime{});
  }
  EXPECT_EQ(h.finish(), (Ends{{0, 6.0}, {2, 6.0}, {3, 6.0}, {1, 7.0}}));
}

// Three flows share their first link of 1 GB/s. SimGrid 3.32 with lazy updates loads it beyond its capacity.
TEST(Flow, ALinkIsNeverLoadedPastItsCapacity) {
  Harness h({1 * kGB, 1 * kGB, 2 * kGB});
  h.start(1e6, {{0, 1}, {1, 1}});
  h.start(1e6, {{0, 1}, {1, 1}});
  h.start(1e6, {{0, 1}, {2, 1}});
  EXPECT_EQ(h.finish(), (Ends{{0, 3}, {1, 3}, {2, 3}}));  // three thirds of link 0
  EXPECT_EQ(h.network.record(0).peak_rate, 1 * kGB);
  EXPECT_EQ(h.network.record(0).bytes, 3e6);
  EXPECT_EQ(h.network.record(0).busy, 3_ms);
}

// Links 1 GB/s and 2 GB/s; A on both, B on the first, C on the second. First link: A = B = 0.5; C gets 1.5.
// C ends at 1.5/1.5 = 1 ms; A and B at 2 ms.
TEST(Flow, WhatABottleneckLeavesGoesToTheOthers) {
  Harness h({1 * kGB, 2 * kGB});
  h.start(1e6, {{0, 1}, {1, 1}});
  h.start(1e6, {{0, 1}});
  h.start(1.5e6, {{1, 1}});
  EXPECT_EQ(h.finish(), (Ends{{2, 1}, {0, 2}, {1, 2}}));
  EXPECT_EQ(h.network.record(1).busy, 2_ms);
  EXPECT_EQ(h.network.record(1).peak_rate, 2 * kGB);
}

// Weights 3 and 1 on 4 GB/s: 3 and 1 GB/s. The first (3 MB) ends at 1 ms; the other has 3 MB left at 4 GB/s.
TEST(Flow, WeightsShareInProportion) {
  Harness h({4 * kGB});
  h.start(3e6, {{0, 1}}, {}, 0, 3);
  h.start(4e6, {{0, 1}});
  EXPECT_EQ(h.finish(), (Ends{{0, 1}, {1, 1.75}}));
}

// A cap of 1 GB/s leaves 3 of 4 GB/s to the other.
TEST(Flow, ACapHoldsAndItsLeftoverIsShared) {
  Harness h({4 * kGB});
  h.start(1e6, {{0, 1}}, {}, 1 * kGB);
  h.start(3e6, {{0, 1}});
  EXPECT_EQ(h.finish(), (Ends{{0, 1}, {1, 1}}));
  EXPECT_EQ(h.network.record(0).bytes, 4e6);
}

// A ring all-reduce of S = 1 MB over 4 ranks as one activity: u = 2(n-1)/n = 1.5 on each edge of 1 GB/s.
TEST(Flow, APipelinedCollectiveIsOneActivityWithAUsageVector) {
  Harness h({1 * kGB, 1 * kGB, 1 * kGB, 1 * kGB});
  h.start(1e6, {{0, 1.5}, {1, 1.5}, {2, 1.5}, {3, 1.5}});
  EXPECT_EQ(h.finish(), (Ends{{0, 1.5}}));
  EXPECT_EQ(h.network.record(2).bytes, 1.5e6);
}

// 1 MB alone at 1 GB/s: at 0.5 ms half is left. A second one halves the rate, so that half takes 1 ms more.
// The second then has 0.5 MB left, at full rate.
TEST(Flow, AStartInTheMiddleChangesTheRates) {
  Harness h({1 * kGB});
  h.start(1e6, {{0, 1}});
  EXPECT_EQ(h.network.next_event(), ms(1));
  std::vector<Completion> none;
  h.network.advance(ms(0.5), none);
  EXPECT_TRUE(none.empty());
  h.start(1e6, {{0, 1}}, ms(0.5));
  EXPECT_EQ(h.finish(), (Ends{{0, 1.5}, {1, 2}}));
}

// 1 MB at 1 GB/s: half is sent by 0.5 ms. The link is down until 3 ms, and the rest takes 0.25 ms at 2 GB/s.
TEST(Flow, ACapacityThatChangesMidRunChangesTheRate) {
  Harness h({1 * kGB});
  h.start(1e6, {{0, 1}});
  std::vector<Completion> none;
  h.network.advance(ms(0.5), none);
  h.network.set_capacity(0, 0, ms(0.5));  // link down: nothing moves
  EXPECT_EQ(h.network.next_event(), kNever);
  h.network.set_capacity(0, 2 * kGB, ms(3));
  EXPECT_EQ(h.finish(), (Ends{{0, 3.25}}));
  EXPECT_EQ(h.network.record(0).bytes, 1e6);
  EXPECT_EQ(h.network.record(0).busy, Duration(750'000'000));
}

TEST(Flow, NothingToCarryStillTakesItsLatency) {
  Harness h({1 * kGB});
  h.start(0, {{0, 1}}, {}, 0, 1, 7_us);
  h.start(0, {});
  EXPECT_EQ(h.finish(), (Ends{{1, 0}, {0, 0.007}}));
}

TEST(Flow, CompletionsOfOneInstantComeInOrderOfStart) {
  Harness h(std::vector<double>(100, 1 * kGB));
  for (LinkIndex link = 0; link < 100; ++link) h.start(1e6, {{99 - link, 1}});
  const auto ends = h.finish();
  for (std::uint64_t i = 0; i < 100; ++i) EXPECT_EQ(ends[i].first, i);
}

TEST(Flow, StartsOfOneInstantCostOneSolve) {
  Harness h({1 * kGB});
  for (int i = 0; i < 1000; ++i) h.start(1e6, {{0, 1}});
  EXPECT_EQ(h.finish().size(), 1000u);
  EXPECT_EQ(h.network.sharing().solves(), 1u);
}

// Fifty links with two flows each: the end of a flow solves only its own link's component again. So there are
// 50 solves at first and 49 more, since the two flows of link 0 end together.
TEST(Flow, OnlyTheTouchedComponentIsSolvedAgain) {
  Harness h(std::vector<double>(50, 1 * kGB));
  for (LinkIndex link = 0; link < 50; ++link) {
    h.start(1e6, {{link, 1}});
    h.start(1e6 + link * 1e3, {{link, 1}});
  }
  h.finish();
  EXPECT_EQ(h.network.sharing().solves(), 50u + 49u);
}

// Three transfers of 1 MB on one link of 1 GB/s each run as if alone: 1 ms and 5 us of latency.
TEST(Analytic, TransfersDoNotSeeEachOther) {
  const std::array capacities{1 * kGB};
  const std::array<Usage, 1> usage{{{0, 1}}};
  AnalyticNetwork network(capacities);
  for (std::uint64_t tag = 0; tag < 3; ++tag) network.start({1e6, usage, 0, 1, 5_us, tag, {}, {}, 0}, {});
  std::vector<Completion> completed;
  network.advance(network.next_event(), completed);
  EXPECT_TRUE(completed.empty());
  EXPECT_EQ(network.record(0).bytes, 3e6);
  EXPECT_EQ(network.record(0).peak_rate, 3 * kGB);
  network.advance(network.next_event(), completed);
  ASSERT_EQ(completed.size(), 3u);
  EXPECT_EQ(completed[2].tag, 2u);
  EXPECT_EQ(completed[2].time, ms(1.005));
}

TEST(Analytic, ACapacityThatChangesMidRunChangesTheRate) {
  const std::array capacities{1 * kGB};
  const std::array<Usage, 1> usage{{{0, 1}}};
  AnalyticNetwork network(capacities);
  network.start({1e6, usage, 0, 1, {}, 0, {}, {}, 0}, {});
  network.set_capacity(0, 0, ms(0.5));
  EXPECT_EQ(network.next_event(), kNever);
  network.set_capacity(0, 2 * kGB, ms(3));
  EXPECT_EQ(network.next_event(), ms(3.25));
}
// Two links of 100 GB/s. A (1,000 MB) has sent 400 MB on the first when it is moved to the second at 4 ms.
// There B (2,000 MB) has 1,600 MB left. Both get 50 GB/s: A ends at 4 + 600 / 50 = 16 ms, and B, which then
// has 1,000 MB left, at 26 ms.
TEST(FlowNetwork, ATransferThatIsReroutedGoesOnWithWhatIsLeft) {
  for (const double cap : {0.0, 1e12}) {
    Harness h({100 * kGB, 100 * kGB});
    h.start(1e9, {{0, 1}}, {}, cap);
    h.start(2e9, {{1, 1}});
    const std::vector<Usage> second{{1, 1}};
    EXPECT_EQ(h.network.next_event(), ms(10));
    h.network.reroute({1e9, second, cap, 1, {}, 0, {}, {}, 0}, ms(4));
    EXPECT_EQ(h.finish(), (Ends{{0, 16}, {1, 26}}));
    EXPECT_DOUBLE_EQ(h.network.record(0).bytes, 4e8);
    EXPECT_DOUBLE_EQ(h.network.record(1).bytes, 2.6e9);
    EXPECT_EQ(h.network.record(0).busy, 4_ms);
  }
}

// The transfer is alone, and its link stops at 4 ms with 600 MB left. At 7 ms it is moved to a free link,
// over which the rest takes 6 ms.
TEST(FlowNetwork, ATransferLeavesALinkThatHasStopped) {
  std::vector<double> capacities{100 * kGB, 100 * kGB};
  const std::vector<Usage> first{{0, 1}}, second{{1, 1}};
  FlowNetwork flow(capacities);
  AnalyticNetwork analytic(capacities);
  for (Network* network : {static_cast<Network*>(&flow), static_cast<Network*>(&analytic)}) {
    network->start({1e9, first, 0, 1, {}, 0, {}, {}, 0}, {});
    network->set_capacity(0, 0, ms(4));
    EXPECT_EQ(network->next_event(), kNever);
    network->reroute({1e9, second, 0, 1, {}, 0, {}, {}, 0}, ms(7));
    EXPECT_EQ(network->next_event(), ms(13));
    EXPECT_DOUBLE_EQ(network->record(0).bytes, 4e8);
    EXPECT_EQ(network->record(0).busy, 4_ms);
  }
}

// Two rings of at most 0.5 GB/s put 0.05 GB/s each on 20 links of 1 GB/s, beside one transfer on each. The
// first of these, at 0.9 GB/s, would end at 10 ms, but is moved to another link at 4 ms, where the 5.4 MB
// that it has left take 5.4 ms. Nothing else changes: the rings end after 10 MB / 0.5 GB/s = 20 ms; the
// others, with 27 MB - 20 ms x 0.9 GB/s = 9 MB left, 9 ms later. So a part of the component is solved that
// holds nothing.
TEST(FlowNetwork, ALinkThatItsLastMemberLeavesEndsNobody) {
  constexpr LinkIndex kLinks = 20, kFree = kLinks;
  Harness h(std::vector<double>(kLinks + 2, 1 * kGB));
  std::vector<Usage> ring;
  for (LinkIndex link = 0; link < kLinks; ++link) {
    h.start(link == 0 ? 9e6 : 27e6, {{link, 1}});
    ring.push_back({link, 0.1});
  }
  for (int i = 0; i < 2; ++i) h.start(10e6, ring, {}, 0.5 * kGB);
  EXPECT_EQ(h.network.next_event(), ms(10));
  h.start(1e6, {{kLinks + 1, 1}}, ms(1));  // regions are tried again after it
  EXPECT_EQ(h.network.next_event(), ms(2));
  std::vector<Completion> completed;
  h.network.advance(ms(2), completed);
  const std::vector<Usage> free{{kFree, 1}};
  h.network.reroute({9e6, free, 0, 1, {}, 0, {}, {}, 0}, ms(4));
  (void)h.network.next_event();
  h.network.sharing().check();
  const Ends ends = h.finish();
  ASSERT_EQ(ends.size(), std::size_t{kLinks} + 2);
  for (const auto& [tag, end] : ends) EXPECT_NEAR(end, tag == 0 ? 9.4 : tag >= kLinks ? 20 : 29, 1e-6) << tag;
}
}  // namespace topsim::network::flow_test
