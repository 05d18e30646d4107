#include <gtest/gtest.h>

#include "sim/executor/executor.hpp"
#include "sim/executor/intervals.hpp"
#include "tests/executor/small_world.hpp"

namespace topsim::executor::communication_time_test {

using namespace topsim::literals;
using program::Dimension;
using program::OpKind;

const StepAccount& first_step(const Outcome& outcome, std::size_t rank) {
  return outcome.ranks[rank].steps[0];
}

// Rank 0 computes until 10 us, joins the collective, and computes until 13; rank 1 joins at 20 and computes
// until 23; the bytes take until 25. Rank 0's kernel is there from 10 on: 15 us, 3 of them beside
// computation.
TEST(CommunicationTime, ACollectiveCountsFromTheOwnArrival) {
  SmallWorld world(2);
  for (const Duration first : {10_us, 20_us})
    world.add_class({compute(first), communicate(OpKind::collective, 5000, 1), compute(3_us)}, {{}, {0}, {}});
  const Outcome outcome = world.run(Dimension::data);
  EXPECT_EQ(first_step(outcome, 0).communication, 15_us);
  EXPECT_EQ(first_step(outcome, 0).hidden_communication, 3_us);
  EXPECT_EQ(first_step(outcome, 1).communication, 5_us);
  EXPECT_EQ(first_step(outcome, 1).hidden_communication, 3_us);
}

// Rank 1 receives from the beginning on, rank 0 sends at 4 us: the message takes 5 us from then, 2 of them
// beside the 6 us that rank 1 computes.
TEST(CommunicationTime, AMessageCountsFromWhenBothEndsAreThere) {
  SmallWorld world(2);
  world.add_class({compute(4_us), communicate(OpKind::send, 5000, 1, 0)}, {{}, {0}});
  world.add_class({compute(6_us), communicate(OpKind::recv, 5000, 1, 1)});
  const Outcome outcome = world.run(Dimension::pipeline);
  EXPECT_EQ(first_step(outcome, 0).communication, 5_us);
  EXPECT_EQ(first_step(outcome, 0).hidden_communication, Duration{});
  EXPECT_EQ(first_step(outcome, 1).communication, 5_us);
  EXPECT_EQ(first_step(outcome, 1).hidden_communication, 2_us);
}

// Collectives of 5 and 8 us from the beginning on, computation of 4 us on either of two streams.
TEST(CommunicationTime, WhatIsUnderWayTogetherCountsOnce) {
  SmallWorld world(2);
  auto beside = compute(4_us);
  beside.stream = 3;
  world.add_class({communicate(OpKind::collective, 5000, 1), communicate(OpKind::collective, 8000, 2),
                   compute(4_us), beside});
  const Outcome outcome = world.run(Dimension::data);
  EXPECT_EQ(first_step(outcome, 0).communication, 8_us);
  EXPECT_EQ(first_step(outcome, 0).hidden_communication, 4_us);
}

// {0..3, 3..4, 2..3} is 0..4; of {1..2, 3..9} it has 1..2 and 3..4.
TEST(Intervals, AreSets) {
  const auto at = [](int us) { return SimTime(Duration(std::int64_t{us} * 1'000'000)); };
  Intervals some = {{at(0), at(3)}, {at(2), at(3)}, {at(3), at(4)}};
  unite(some);
  EXPECT_EQ(some, (Intervals{{at(0), at(4)}}));
  EXPECT_EQ(length(some), 4_us);
  EXPECT_EQ(common(some, {{at(1), at(2)}, {at(3), at(9)}}), 2_us);
  EXPECT_EQ(common(some, {}), Duration{});
}
}  // namespace topsim::executor::communication_time_test
