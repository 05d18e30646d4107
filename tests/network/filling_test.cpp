// Every rate is what progressive filling from scratch gives (filling.hpp), also where the solver takes the
// shortcuts that make large components cheap. flow_property_test.cpp has what needs no oracle.
#include "filling.hpp"

#include <gtest/gtest.h>

#include <map>

#include "sim/base/error.hpp"
#include "sim/network/flow.hpp"
#include "sim/network/maxmin.hpp"

namespace topsim::network::filling_test {
constexpr SimTime kSecond{std::chrono::seconds(1)};

// Plays a problem on the solver alone.
class Play {
 public:
  explicit Play(const RandomCase& problem)
      : sharing_(problem.capacities), problem_(problem), capacities_(problem.capacities) {}

  // Every `stride`-th event all rates are compared. `change(now)` may change capacities or move activities.
  template <class Change>
  void run(std::size_t stride, Change&& change) {
    std::size_t next = 0, events = 0;
    std::vector<MaxMin::Activity> ended;
    for (;;) {
      const SimTime start = next < problem_.transfers.size() ? problem_.transfers[next].start : kNever;
      const SimTime end = sharing_.next_end(), now = std::min(start, end);
      if (now == kNever) return;
      ended.clear();
      if (end == now) sharing_.end_due(now, ended);
      for (const MaxMin::Activity activity : ended) release(activity);
      for (; next < problem_.transfers.size() && problem_.transfers[next].start == now; ++next)
        begin(problem_.transfers[next], problem_.transfers[next].bytes, now);
      sharing_.solve(now);
      const bool compares = events++ % stride == 0;
      if (compares) compare();
      if (testing::Test::HasFailure()) return;
      if (!change(now)) continue;
      sharing_.solve(now);
      if (compares) compare();
    }
  }

  void set_capacity(LinkIndex link, double capacity, SimTime now) {
    capacities_[link] = capacity;
    sharing_.set_capacity(link, capacity, now);
  }
  // What is left of a running activity goes on over other links.
  template <class Usages>
  void move_one(std::size_t which, SimTime now, Usages&& usages) {
    if (running_.empty()) return;
    const auto at = std::next(running_.begin(), static_cast<std::ptrdiff_t>(which % running_.size()));
    RandomTransfer moved = at->second.transfer;
    if (!usages(moved.usage)) return;
    const double left = sharing_.take(at->first, now);
    release(at->first);
    if (left > 0) begin(moved, left, now);
  }

  [[nodiscard]] std::size_t compared() const { return compared_; }
  [[nodiscard]] const MaxMin::Shortcuts& shortcuts() const { return sharing_.shortcuts(); }

 private:
  struct Running {
    RandomTransfer transfer;
    LinkIndex cap = MaxMin::kNone;
  };

  void begin(const RandomTransfer& transfer, double bytes, SimTime now) {
    std::vector<Usage> usage = transfer.usage;
    LinkIndex cap = MaxMin::kNone;
    if (transfer.cap > 0) usage.push_back({cap = sharing_.add_link(transfer.cap), 1});
    running_[sharing_.start(bytes, transfer.weight, usage, now)] = {transfer, cap};
  }
  void release(MaxMin::Activity activity) {
    const auto at = running_.find(activity);
    if (at->second.cap != MaxMin::kNone) sharing_.release_link(at->second.cap);
    running_.erase(at);
  }
  void compare() {
    std::vector<RandomTransfer> transfers;
    for (const auto& [activity, running] : running_) transfers.push_back(running.transfer);
    const std::vector<double> expected = rates_by_filling(capacities_, transfers);
    std::size_t at = 0;
    for (const auto& [activity, running] : running_) {
      ASSERT_NEAR(sharing_.rate(activity), expected[at], 1e-8 * expected[at])
          << at << " of " << expected.size();
      ++at;
    }
    compared_ += expected.size();
  }

  MaxMin sharing_;
  const RandomCase& problem_;
  std::vector<double> capacities_;
  std::map<MaxMin::Activity, Running> running_;
  std::size_t compared_ = 0;
};

// Of 1 TB each, so that none ends, all that begin at once: after a second a link has carried what their rates
// put on it.
TEST(Filling, AfterASecondEveryLinkHasCarriedWhatTheRatesPutOnIt) {
  std::size_t compared = 0;
  for (std::uint64_t seed = 0; seed < 400; ++seed) {
    RandomCase problem = random_case(seed);
    FlowNetwork network(problem.capacities);
    std::uint64_t tag = 0;
    for (const RandomTransfer& each : problem.transfers)
      network.start(
          {.bytes = 1e12, .usage = each.usage, .rate_cap = each.cap, .weight = each.weight, .tag = tag++},
          SimTime{});
    ASSERT_GT(network.next_event(), kSecond);
    std::vector<Completion> completed;
    network.advance(kSecond, completed);
    const std::vector<double> rates = rates_by_filling(problem.capacities, problem.transfers);
    std::vector<double> expected(problem.capacities.size());
    for (std::size_t i = 0; i < rates.size(); ++i)
      for (const Usage& use : problem.transfers[i].usage) expected[use.link] += rates[i] * use.coefficient;
    for (LinkIndex link = 0; link < expected.size(); ++link, ++compared)
      ASSERT_NEAR(network.record(link).bytes, expected[link], 1e-8 * expected[link]) << "seed " << seed;
  }
  EXPECT_GT(compared, 4000U);  // 400 seeds, 12.5 links on average
}

TEST(Filling, EveryRateIsThatOfProgressiveFilling) {
  std::size_t compared = 0;
  for (std::uint64_t seed = 0; seed < 400 && !testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE(seed);
    const RandomCase problem = random_case(seed);
    std::mt19937_64 random(seed);
    Play play(problem);
    std::size_t changes = 0;
    play.run(1, [&](SimTime now) {
      if (++changes > 60) return false;
      const auto link = static_cast<LinkIndex>(random() % problem.capacities.size());
      play.set_capacity(link, problem.capacities[link] * 0.25 * static_cast<double>(1 + random() % 8), now);
      return true;
    });
    compared += play.compared();
  }
  EXPECT_GT(compared, 100'000U);
}

// The rows of a bottleneck and the snapshots of a filling are kept from solve to solve (maxmin_rows.cpp,
// maxmin_history.cpp).
TEST(Filling, RatesFromRememberedRowsAndSnapshotsAreThoseOfProgressiveFilling) {
  MaxMin::Shortcuts taken;
  for (std::uint64_t seed = 0; seed < 12 && !testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937_64 random(seed);
    const RandomCase problem = all_pairs_case(random);
    Play play(problem);
    std::size_t events = 0;
    play.run(10, [&](SimTime now) {
      if (++events != 100) return false;
      play.set_capacity(3, 3e8, now);
      return true;
    });
    taken.rows += play.shortcuts().rows;
    taken.resumes += play.shortcuts().resumes;
  }
  EXPECT_GT(taken.rows, 1000U);
  EXPECT_GT(taken.resumes, 100U);
}

// A part of a component is shared on what the rest leaves (maxmin_region.cpp).
TEST(Filling, RatesOfAPartThatIsSharedAloneAreThoseOfProgressiveFilling) {
  std::uint64_t regions = 0;
  for (std::uint64_t seed = 0; seed < 40 && !testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937_64 random(seed);
    const RandomCase problem = neighbours_case(random);
    Play play(problem);
    play.run(10, [&](SimTime now) {
      if (random() % 2 == 0) {
        const auto link = static_cast<LinkIndex>(random() % problem.capacities.size());
        play.set_capacity(link, problem.capacities[link] * (0.5 + 0.1 * static_cast<double>(random() % 10)),
                          now);
      } else {
        play.move_one(random(), now, [&](std::vector<Usage>& usage) {
          if (usage.size() != 1 || usage[0].link >= Neighbours::kNodes) return false;
          usage[0].link += Neighbours::kOther;
          return true;
        });
      }
      return true;
    });
    regions += play.shortcuts().regions;
  }
  EXPECT_GT(regions, 1000U);
}

// Two share a link, and its capacity has changed without a solve: at less it carries too much, at more it is
// no bottleneck.
TEST(MaxMin, TheCheckSeesRatesThatAreNotTheFairOnes) {
  const std::vector<double> capacities{1e9};
  const std::vector<Usage> usage{{0, 1}};
  MaxMin sharing(capacities);
  sharing.start(1e6, 1, usage, SimTime{});
  sharing.start(1e6, 1, usage, SimTime{});
  sharing.solve(SimTime{});
  EXPECT_NO_THROW(sharing.check());
  for (const double capacity : {0.9e9, 1.1e9}) {
    sharing.set_capacity(0, capacity, SimTime{});
    EXPECT_THROW(sharing.check(), InternalError) << capacity;
    sharing.solve(SimTime{});
    EXPECT_NO_THROW(sharing.check()) << capacity;
  }
}
}  // namespace topsim::network::filling_test
