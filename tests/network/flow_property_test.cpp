// Properties of every sharing problem, checked on seeded random cases.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>

#include "random_case.hpp"
#include "sim/network/analytic.hpp"
#include "sim/network/flow.hpp"

namespace topsim::network::flow_property_test {
constexpr std::uint64_t kCases = 400;

std::int64_t distance(SimTime a, SimTime b) {
  return std::abs((a - b).count());
}
// Integer picoseconds round at every event that a completion depends on.
std::int64_t tolerance(const RandomCase& problem, SimTime time) {
  return static_cast<std::int64_t>(2 * problem.transfers.size()) +
         static_cast<std::int64_t>(1e-9 * static_cast<double>(time.time_since_epoch().count()));
}

// What all transfers put on a link.
double put_on(const RandomCase& problem, LinkIndex link) {
  double sum = 0;
  for (const RandomTransfer& transfer : problem.transfers)
    for (const Usage& use : transfer.usage)
      if (use.link == link) sum += transfer.bytes * use.coefficient;
  return sum;
}

// MaxMin::check throws unless every capacity is kept and every activity has a bottleneck.
TEST(FlowProperty, EverySolveIsTheMaxMinFairAllocation) {
  for (std::uint64_t seed = 0; seed < kCases; ++seed) {
    const RandomCase problem = random_case(seed);
    FlowNetwork network(problem.capacities);
    const auto times = run(network, problem, [&] {
      (void)network.next_event();
      ASSERT_NO_THROW(network.sharing().check()) << "seed " << seed;
    });
    for (const SimTime time : times) ASSERT_NE(time, kNever) << "seed " << seed;
  }
}

// Large components that only lose activities are solved from remembered rows and snapshots. Late starts and a
// change of capacity in the middle invalidate those.
TEST(FlowProperty, EverySolveOfALargeComponentIsTheMaxMinFairAllocation) {
  MaxMin::Shortcuts taken;
  for (std::uint64_t seed = 0; seed < 12; ++seed) {
    std::mt19937_64 random(seed);
    const RandomCase problem = all_pairs_case(random);
    FlowNetwork network(problem.capacities);
    std::size_t events = 0;
    SimTime now{};
    const auto times = run(network, problem, [&] {
      if (++events == 100) network.set_capacity(3, 3e8, now);
      now = network.next_event();
      ASSERT_NO_THROW(network.sharing().check()) << "seed " << seed;
    });
    for (const SimTime time : times) ASSERT_NE(time, kNever) << "seed " << seed;
    taken.rows += network.sharing().shortcuts().rows;
    taken.resumes += network.sharing().shortcuts().resumes;
  }
  EXPECT_GT(taken.rows, 1000U);
  EXPECT_GT(taken.resumes, 100U);
}

// Every change concerns a part, which is solved as a region (maxmin_region.cpp). Some calls move to another
// switch of their node.
TEST(FlowProperty, EverySolveOfAPartOfALargeComponentIsTheMaxMinFairAllocation) {
  std::uint64_t regions = 0;
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    std::mt19937_64 random(seed);
    const auto below = [&](std::uint64_t n) { return random() % n; };
    const RandomCase problem = neighbours_case(random);
    constexpr LinkIndex kNodes = Neighbours::kNodes, kOther = Neighbours::kOther;
    FlowNetwork network(problem.capacities);
    const auto times = run(network, problem, [&](SimTime now) {
      const SimTime next = network.next_event();
      ASSERT_NO_THROW(network.sharing().check()) << "seed " << seed;
      if (next <= now || below(5) != 0) return;
      const std::size_t tag = below(problem.transfers.size());
      const RandomTransfer& call = problem.transfers[tag];  // under way, over, or still to come
      if (below(2) == 0) {
        const auto link = static_cast<LinkIndex>(below(problem.capacities.size()));
        network.set_capacity(link, problem.capacities[link] * (0.5 + 0.1 * static_cast<double>(below(10))),
                             now);
      } else if (call.usage.size() == 1) {
        const std::vector<Usage> other{{kOther + call.usage[0].link, call.usage[0].coefficient}};
        network.reroute({call.bytes, other, call.cap, call.weight, {}, tag, {}, {}, 0}, now);
      }
      (void)network.next_event();
      ASSERT_NO_THROW(network.sharing().check()) << "seed " << seed;
    });
    for (const SimTime time : times) ASSERT_NE(time, kNever) << "seed " << seed;
    for (LinkIndex link = 0; link < kOther; ++link) {
      const double expected = put_on(problem, link);
      const double moved = link < kNodes ? network.record(kOther + link).bytes : 0;
      EXPECT_NEAR(network.record(link).bytes + moved, expected, 1e-9 * expected) << "seed " << seed;
    }
    regions += network.sharing().shortcuts().regions;
  }
  EXPECT_GT(regions, 1000U);
}

// Links fail (capacity 0), degrade and come back while transfers run. Every solve stays the fair allocation,
// and no byte is lost.
TEST(FlowProperty, CapacitiesMayChangeAtAnyTime) {
  for (std::uint64_t seed = 0; seed < kCases; ++seed) {
    const RandomCase problem = random_case(seed);
    FlowNetwork network(problem.capacities);
    std::mt19937_64 random(seed);
    std::size_t changes = 0;
    const auto times = run(network, problem, [&](SimTime now) {
      const SimTime next = network.next_event();
      ASSERT_NO_THROW(network.sharing().check()) << "seed " << seed;
      if (next == kNever || next <= now || ++changes > 60) return;
      const auto link = static_cast<LinkIndex>(random() % problem.capacities.size());
      const double factor = changes % 10 == 0 ? 0 : 0.5 * static_cast<double>(1 + random() % 4);
      network.set_capacity(link, problem.capacities[link] * factor, now);
      (void)network.next_event();
      ASSERT_NO_THROW(network.sharing().check()) << "seed " << seed;
      network.set_capacity(link, problem.capacities[link] * (factor == 0 ? 1 : factor), now);
      (void)network.next_event();
      ASSERT_NO_THROW(network.sharing().check()) << "seed " << seed;
    });
    for (const SimTime time : times) ASSERT_NE(time, kNever) << "seed " << seed;
    for (LinkIndex link = 0; link < problem.capacities.size(); ++link) {
      const double expected = put_on(problem, link);
      EXPECT_NEAR(network.record(link).bytes, expected, 1e-9 * expected) << "seed " << seed;
    }
  }
}

// Two transfers of 1 MB share a link of 1 GB/s, and one of them also has a second link. The first link is
// down from 1 ms to 3 ms: nothing moves, and neither link counts as busy. Half of 2 ms is done at 1 ms, so
// both end at 4 ms, and both links were busy for 2 ms.
TEST(FlowProperty, ALinkWithoutCapacityKeepsNothingBusy) {
  const std::vector<double> capacities = {1e9, 5e9};
  FlowNetwork network(capacities);
  const std::vector<Usage> both = {{0, 1}, {1, 1}}, one = {{0, 1}};
  const auto ms = [](std::int64_t n) { return SimTime(Duration(n * 1'000'000'000)); };
  network.start({.bytes = 1e6, .usage = both, .tag = 1}, SimTime{});
  network.start({.bytes = 1e6, .usage = one, .tag = 2}, SimTime{});
  std::vector<Completion> completed;
  EXPECT_EQ(network.next_event(), ms(2));
  network.advance(ms(1), completed);
  network.set_capacity(0, 0, ms(1));
  EXPECT_EQ(network.next_event(), kNever);
  network.advance(ms(3), completed);
  network.set_capacity(0, 1e9, ms(3));
  EXPECT_EQ(network.next_event(), ms(4));
  network.advance(ms(4), completed);
  EXPECT_EQ(completed.size(), 2U);
  for (const LinkIndex link : {0U, 1U})
    EXPECT_EQ(network.record(link).busy, Duration(2'000'000'000)) << "link " << link;
  EXPECT_NEAR(network.record(1).peak_rate, 0.5e9, 1);
}

TEST(FlowProperty, EveryLinkHasCarriedExactlyWhatItsTransfersPutOnIt) {
  for (std::uint64_t seed = 0; seed < kCases; ++seed) {
    const RandomCase problem = random_case(seed);
    FlowNetwork network(problem.capacities);
    run(network, problem);
    for (LinkIndex link = 0; link < problem.capacities.size(); ++link) {
      const double expected = put_on(problem, link);
      EXPECT_NEAR(network.record(link).bytes, expected, 1e-9 * expected) << "seed " << seed;
      EXPECT_LE(network.record(link).peak_rate, problem.capacities[link] * (1 + 1e-9));
    }
  }
}

TEST(FlowProperty, AloneItIsTheAnalyticModelToThePicosecondAndMoreBandwidthNeverHurts) {
  for (std::uint64_t seed = 0; seed < kCases; ++seed) {
    RandomCase problem = random_case(seed);
    problem.transfers.resize(1);
    problem.transfers[0].weight = 1;
    FlowNetwork flow(problem.capacities);
    AnalyticNetwork analytic(problem.capacities);
    const SimTime alone = run(flow, problem)[0];
    EXPECT_EQ(alone, run(analytic, problem)[0]) << "seed " << seed;
    for (double& capacity : problem.capacities) {
      capacity *= 1.5;
      FlowNetwork faster(problem.capacities);
      EXPECT_LE(run(faster, problem)[0], alone) << "seed " << seed;
    }
  }
}

TEST(FlowProperty, SharingNeverMakesATransferFasterThanTheAnalyticModel) {
  for (std::uint64_t seed = 0; seed < kCases; ++seed) {
    const RandomCase problem = random_case(seed);
    FlowNetwork flow(problem.capacities);
    AnalyticNetwork analytic(problem.capacities);
    const auto shared = run(flow, problem), alone = run(analytic, problem);
    for (std::size_t i = 0; i < shared.size(); ++i)
      EXPECT_GE(shared[i] + Duration(tolerance(problem, shared[i])), alone[i]) << "seed " << seed;
  }
}

TEST(FlowProperty, TheOrderOfStartsAtOneInstantDoesNotMatter) {
  for (std::uint64_t seed = 0; seed < kCases; ++seed) {
    const RandomCase problem = random_case(seed);
    RandomCase shuffled = problem;
    std::vector<std::size_t> from(problem.transfers.size());
    for (std::size_t i = 0; i < from.size(); ++i) from[i] = i;
    std::mt19937_64 random(seed);
    std::shuffle(from.begin(), from.end(), random);
    std::stable_sort(from.begin(), from.end(), [&](std::size_t a, std::size_t b) {
      return problem.transfers[a].start < problem.transfers[b].start;
    });
    for (std::size_t i = 0; i < from.size(); ++i) shuffled.transfers[i] = problem.transfers[from[i]];
    FlowNetwork first(problem.capacities), second(problem.capacities);
    const auto expected = run(first, problem), times = run(second, shuffled);
    for (std::size_t i = 0; i < from.size(); ++i)
      EXPECT_LE(distance(times[i], expected[from[i]]), tolerance(problem, times[i])) << "seed " << seed;
  }
}

// A class of k identical transfers runs as one activity whose coefficients are k times theirs. Folding relies
// on this.
TEST(FlowProperty, AClassWithMultiplicityAsCoefficientRunsAsItsMembersDo) {
  for (std::uint64_t seed = 0; seed < kCases; ++seed) {
    const RandomCase members = [&] {
      RandomCase problem = random_case(seed);
      RandomCase result{problem.capacities, {}};
      for (std::size_t i = 0; i < problem.transfers.size(); ++i)
        for (std::size_t k = 0; k <= i % 4; ++k) result.transfers.push_back(problem.transfers[i]);
      return result;
    }();
    RandomCase classes = random_case(seed);
    for (std::size_t i = 0; i < classes.transfers.size(); ++i)
      for (Usage& use : classes.transfers[i].usage) use.coefficient *= static_cast<double>(i % 4 + 1);
    FlowNetwork unfolded(members.capacities), folded(classes.capacities);
    const auto each = run(unfolded, members), one = run(folded, classes);
    std::size_t member = 0;
    for (std::size_t i = 0; i < one.size(); ++i)
      for (std::size_t k = 0; k <= i % 4; ++k, ++member)
        EXPECT_LE(distance(each[member], one[i]), tolerance(members, one[i])) << "seed " << seed;
  }
}
}  // namespace topsim::network::flow_property_test
