#include "sim/engine/engine.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>

#include "sim/base/error.hpp"

namespace topsim::engine::engine_test {
using namespace literals;
constexpr SimTime at(std::int64_t ps) {
  return SimTime(Duration(ps));
}

std::vector<std::uint64_t> drain(Engine& engine) {
  std::vector<std::uint64_t> order;
  engine.run([&](std::uint64_t payload) { order.push_back(payload); });
  return order;
}

TEST(Engine, EventsOfOneInstantComeInTheOrderTheyWereScheduled) {
  Engine engine;
  for (std::uint64_t i = 0; i < 100; ++i) engine.at(at(i % 2 == 0 ? 5 : 3), i);
  std::vector<std::uint64_t> expected;
  for (std::uint64_t i = 1; i < 100; i += 2) expected.push_back(i);
  for (std::uint64_t i = 0; i < 100; i += 2) expected.push_back(i);
  EXPECT_EQ(drain(engine), expected);
  EXPECT_EQ(engine.now(), at(5));
  EXPECT_EQ(engine.events(), 100u);
}

TEST(Engine, AHandlerMaySchedule) {
  Engine engine;
  engine.after(1_ns, 3);
  std::vector<SimTime> times;
  engine.run([&](std::uint64_t left) {
    times.push_back(engine.now());
    if (left > 0) engine.after(2_ns, left - 1);
  });
  EXPECT_EQ(times, (std::vector{at(1000), at(3000), at(5000), at(7000)}));
  EXPECT_EQ(engine.next(), kNever);
}

TEST(Engine, ARetimedEventQueuesBehindThoseOfItsNewInstant) {
  Engine engine;
  const Handle early = engine.at(at(1), 1);
  engine.at(at(9), 2);
  engine.retime(early, at(9));
  EXPECT_EQ(drain(engine), (std::vector<std::uint64_t>{2, 1}));
}

TEST(Engine, AReplacedEventComesAsTheOtherOneBehindThoseOfItsInstant) {
  Engine engine;
  const Handle early = engine.at(at(1), 1);
  engine.at(at(9), 2);
  engine.replace(early, at(9), 3);
  engine.at(at(9), 4);
  EXPECT_EQ(drain(engine), (std::vector<std::uint64_t>{2, 3, 4}));
}

// The event that is being handled is no longer in the queue, whatever its handler schedules, retimes or
// cancels.
TEST(Engine, WhatAHandlerSchedulesRetimesAndCancelsIsInOrder) {
  Engine engine;
  const Handle moved = engine.at(at(2), 2), gone = engine.at(at(3), 3);
  engine.at(at(1), 1);
  EXPECT_EQ(engine.pop(), 1U);
  engine.retime(moved, at(6));
  engine.cancel(gone);
  EXPECT_FALSE(engine.empty());
  engine.at(at(4), 4);
  engine.at(at(1), 5);
  EXPECT_EQ(engine.next(), at(1));
  EXPECT_EQ(drain(engine), (std::vector<std::uint64_t>{5, 4, 2}));
  engine.at(at(7), 7);
  EXPECT_EQ(engine.pop(), 7U);
  EXPECT_TRUE(engine.empty());
  EXPECT_EQ(engine.next(), kNever);
}

TEST(Engine, ACancelledEventNeverComesAndItsHandleIsUsedAgain) {
  Engine engine;
  const Handle gone = engine.at(at(1), 1);
  engine.cancel(gone);
  EXPECT_TRUE(engine.empty());
  EXPECT_EQ(engine.at(at(2), 2), gone);
  EXPECT_EQ(drain(engine), (std::vector<std::uint64_t>{2}));
}

// The clock holds 2^63 - 1 picoseconds, 106 days. A sum beyond that would wrap round and run time backwards.
TEST(Engine, RefusesWhatDoesNotFitItsClock) {
  Engine engine;
  engine.advance(SimTime(Duration(1000)));
  EXPECT_THROW(engine.after(Duration::max(), 0), ConfigError);
  EXPECT_THROW(engine.at(SimTime(Duration(999)), 0), ConfigError);
  const Handle last = engine.after(Duration::max() - Duration(1000), 7);
  EXPECT_THROW(engine.retime(last, SimTime(Duration(0))), ConfigError);
  EXPECT_EQ(engine.pop(), 7U);
}

// The reference is a std::multimap that is filled, re-timed and emptied in the same way.
TEST(Engine, AgreesWithAnOrderedMapOverRandomOperations) {
  std::mt19937_64 random(7);
  Engine engine;
  std::map<std::pair<std::int64_t, std::uint64_t>, std::uint64_t> reference;
  struct Pending {
    Handle handle;
    std::pair<std::int64_t, std::uint64_t> key;
  };
  std::map<std::uint64_t, Pending> pending;  // by payload
  std::uint64_t sequence = 0;
  for (std::uint64_t i = 0; i < 20000; ++i) {
    const std::int64_t time =
        engine.now().time_since_epoch().count() + static_cast<std::int64_t>(random() % 50);
    const auto action = random() % 8;
    if (action < 4 || pending.empty()) {
      pending[i] = {engine.at(at(time), i), {time, sequence}};
      reference[{time, sequence++}] = i;
    } else if (action < 5) {
      auto victim = pending.lower_bound(random() % i);
      if (victim == pending.end()) victim = pending.begin();
      engine.cancel(victim->second.handle);
      reference.erase(victim->second.key);
      pending.erase(victim);
    } else if (action < 6) {
      auto moved = pending.lower_bound(random() % i);
      if (moved == pending.end()) moved = pending.begin();
      engine.retime(moved->second.handle, at(time));
      reference.erase(moved->second.key);
      moved->second.key = {time, sequence};
      reference[{time, sequence++}] = moved->first;
    } else {
      const auto expected = reference.begin()->second;
      ASSERT_EQ(engine.pop(), expected);
      reference.erase(reference.begin());
      pending.erase(expected);
    }
  }
}
}  // namespace topsim::engine::engine_test
