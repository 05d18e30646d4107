#include "sim/network/packet/event_queue.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

namespace topsim::network::packet::event_queue_test {

EventQueue::Event take(EventQueue& queue) {
  EventQueue::Event event{};
  EXPECT_TRUE(queue.pop(EventQueue::kNever, event));
  return event;
}

TEST(EventQueue, IsEmptyAtFirst) {
  EventQueue queue;
  EXPECT_TRUE(queue.empty());
  EXPECT_EQ(queue.next_time(), EventQueue::kNever);
}

TEST(EventQueue, GivesEqualTimesInTheOrderOfPushingNearAndFar) {
  for (const std::int64_t time : {std::int64_t{5}, std::int64_t{3'000'000}, std::int64_t{900'000'000}}) {
    EventQueue queue;
    for (std::uint32_t i = 0; i < 100; ++i) queue.push(time, i);
    for (std::uint32_t i = 0; i < 100; ++i) EXPECT_EQ(take(queue).target, i);
  }
}

// Event 1 was pushed while its time was beyond the calendar; event 2 of the same time when it was within
// reach. Event 1 comes first.
TEST(EventQueue, KeepsAnOldFarEventBeforeAYoungNearOneOfTheSameTime) {
  EventQueue queue;
  queue.push(20'000'000, 1);  // beyond the calendar's 8.4 us
  queue.push(15'000'000, 0);
  EXPECT_EQ(take(queue).target, 0U);
  queue.push(20'000'000, 2);  // now within reach
  EXPECT_EQ(take(queue).target, 1U);
  EXPECT_EQ(take(queue).target, 2U);
}

TEST(EventQueue, TakesAnEarlierEventAfterTheNextOneHasBeenLookedAt) {
  EventQueue queue;
  queue.push(1'000'000'000, 1);
  EXPECT_EQ(queue.next_time(), 1'000'000'000);
  queue.push(7, 0);
  EXPECT_EQ(queue.next_time(), 7);
  EXPECT_EQ(take(queue).target, 0U);
  EXPECT_EQ(take(queue).target, 1U);
}

// 1,000,100 and 1,000,200 ps share a bucket. At a limit of 1,000,150 the second is not due, and events that
// are pushed meanwhile come before it.
TEST(EventQueue, GivesNothingBeyondTheLimit) {
  EventQueue queue;
  EventQueue::Event event{};
  EXPECT_FALSE(queue.pop(EventQueue::kNever, event));
  queue.push(1'000'100, 0);
  queue.push(1'000'200, 3);
  EXPECT_FALSE(queue.pop(999'999, event));
  EXPECT_TRUE(queue.pop(1'000'150, event));
  EXPECT_EQ(event.target, 0U);
  EXPECT_FALSE(queue.pop(1'000'150, event));
  queue.push(1'000'180, 2);
  queue.push(1'000'160, 1);
  for (const std::uint32_t target : {1U, 2U, 3U}) EXPECT_EQ(take(queue).target, target);
}

// 60,000 events at all distances, pushed while others are popped, come as a stable sort by time orders them,
// with buckets of 64 ps, 1 ns and 16 ns.
class Widths : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(EventQueue, Widths, testing::Values(6, 10, 14));
TEST_P(Widths, AgreeWithAStableSortByTime) {
  std::mt19937_64 random(1);
  EventQueue queue(GetParam());
  struct Expected {
    std::int64_t time;
    std::uint32_t target;
  };
  std::vector<Expected> all;
  std::vector<std::uint32_t> popped;
  std::int64_t now = 0;
  std::uint32_t next = 0;
  const auto push = [&] {
    const std::int64_t distance = static_cast<std::int64_t>(random() >> (20 + random() % 44));
    const std::int64_t time = now + distance % 100'000'000;
    all.push_back({time, next});
    queue.push(time, next++);
  };
  for (int i = 0; i < 60'000; ++i) {
    push();
    if (random() % 4 == 0) {
      const auto event = take(queue);
      now = event.time;
      popped.push_back(event.target);
    }
  }
  while (!queue.empty()) popped.push_back(take(queue).target);
  // No push is earlier than the last pop, so the order of popping must be the stable sort of all pushes by
  // time.
  std::stable_sort(all.begin(), all.end(),
                   [](const Expected& a, const Expected& b) { return a.time < b.time; });
  ASSERT_EQ(popped.size(), all.size());
  for (std::size_t i = 0; i < all.size(); ++i) ASSERT_EQ(popped[i], all[i].target) << i;
}
}  // namespace topsim::network::packet::event_queue_test
