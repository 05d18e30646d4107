#include "sim/report/reliability.hpp"

#include <gmock/gmock.h>

#include <cmath>
#include <random>

#include "sim/report/findings.hpp"
#include "topology/build.hpp"

namespace topsim::report::reliability_test {

constexpr double kMinute = 60, kHour = 3600;

// Daly 2006, figures 3 to 5: optimum intervals as printed, for a dump of 5 min and three mean times between
// failures.
TEST(Reliability, TheOptimumIsTheOneThatDalyPrints) {
  EXPECT_NEAR(daly_interval(5 * kMinute, 24 * kHour) / kMinute, 117, 0.5);
  EXPECT_NEAR(daly_interval(5 * kMinute, 6 * kHour) / kMinute, 57, 0.5);
  EXPECT_NEAR(daly_interval(5 * kMinute, 15 * kMinute) / kMinute, 9.1, 0.05);
}

TEST(Reliability, TheOptimumIsTheBestInterval) {
  const double best = daly_interval(60, 3 * kHour);
  for (const double other : {0.5, 0.8, 1.25, 2.0})
    EXPECT_GT(goodput_share(best, 60, 600, 3 * kHour), goodput_share(best * other, 60, 600, 3 * kHour))
        << other;
}

TEST(Reliability, WithoutFailuresOnlyCheckpointsCost) {
  EXPECT_NEAR(goodput_share(1000, 10, 600, 1e12), 1000.0 / 1010, 1e-6);
}

// A simulation of the closed form's assumptions: train t, write d, exponential failures, R after each; a
// failure during a restart begins it again.
TEST(Reliability, TheClosedFormIsTheMeanOfManyRuns) {
  const double interval = 1500, dump = 120, restart = 400, mean = 6000;
  std::mt19937_64 dice(7);
  const auto next = [&] { return -mean * std::log(1 - std::ldexp(static_cast<double>(dice() >> 11U), -53)); };
  double time = 0, trained = 0, failure = next();
  while (trained < interval * 200000) {
    double end = time + interval + dump;
    while (failure < end) {
      time = failure + restart;
      for (failure = failure + next(); failure < time; failure += next()) time = failure + restart;
      end = time + interval + dump;
    }
    time = end;
    trained += interval;
  }
  EXPECT_NEAR(trained / time, goodput_share(interval, dump, restart, mean), 0.003);
}

const topology::Catalogue& catalogue() {
  static const topology::Catalogue loaded = topology::Catalogue::load(TOPSIM_SOURCE_DIR "/configs");
  return loaded;
}

topology::Topology cluster(const char* node, int nodes, const char* fabric) {
  topology::TopologySpec spec;
  spec.node.use = node;
  spec.nodes = nodes;
  spec.fabric.use = fabric;
  return build(spec, catalogue());
}

// Llama 3: 16,384 GPUs with a NIC and a cable each had 419 unexpected interruptions in 54 days, one in 24 x
// 54 / 419 = 3.09 h.
TEST(Reliability, TheJobOfLlama3IsInterruptedAsOftenAsPublished) {
  ReliabilitySpec spec;
  spec.days = 54;
  spec.checkpoint_time = from_seconds(30);
  spec.restart = from_seconds(600);
  const auto sources = failure_sources(cluster("hgx-h100-roce", 2048, "100k-tomahawk5"), catalogue(), spec);
  const Goodput result = goodput(sources, spec, {});
  EXPECT_NEAR(result.interruptions_per_day.usual * 54, 419, 4);
  EXPECT_TRUE(result.optimum);
  EXPECT_LT(result.share.low, result.share.usual);
  EXPECT_LT(result.share.usual, 1);
}

TEST(Reliability, WhatACountIsOfIsSaid) {
  for (const char* id : {"accelerator", "software-and-host", "nic", "fabric-link"})
    EXPECT_NE(counted_of(id), "") << id;
  EXPECT_EQ(counted_of("fabric-link"), "cables that join a NIC to its only leaf");
  EXPECT_EQ(counted_of("leaf-switch"), "");
}

TEST(Reliability, ANicWithTwoLeavesSurvivesTheLossOfACable) {
  const ReliabilitySpec spec;
  const auto count = [&](const topology::Topology& t) {
    for (const FailureSource& each : failure_sources(t, catalogue(), spec))
      if (each.id == "fabric-link") return each.count;
    return std::int64_t{0};
  };
  EXPECT_EQ(count(cluster("hgx-h100-roce", 8, "100k-tomahawk5")), 64);
  EXPECT_EQ(count(cluster("hgx-h800", 8, "alibaba-hpn7")), 0);
}

TEST(Reliability, AKnownLossCostsTheRestartAndTheWorkSinceTheLastCheckpoint) {
  ReliabilitySpec spec;
  spec.days = 1;
  spec.checkpoint_time = from_seconds(10);
  spec.restart = from_seconds(600);
  spec.checkpoint_interval = from_seconds(990);
  // Lost at 2,500 s, 500 s after the second checkpoint: 500 + 600 of 86,400 s, and 1 % for checkpoints.
  const Goodput result = goodput({}, spec, {from_seconds(2500)});
  EXPECT_NEAR(result.share.usual, 0.99 * (1 - 1100.0 / 86400), 1e-9);
}

// 100 accelerators that each fail 87.66 times a year: 24 stops a day, one an hour. Checkpoints of 5 minutes,
// no restart. Every 10 hours: 600 / (60 (e^(605/60) - 1)) = 0.0004. Daly's optimum is 21.3 min:
// 21.3 / (60 (e^(26.3/60) - 1)) = 64.5 %.
TEST(Reliability, AnIntervalFarFromTheOptimumIsAFinding) {
  ReliabilitySpec spec;
  spec.checkpoint_time = from_seconds(5 * kMinute);
  spec.checkpoint_interval = from_seconds(10 * kHour);
  const std::vector<FailureSource> sources{{"accelerator", 100, {87.66, 87.66, 87.66}}};
  const auto found = far_from_optimum(spec, goodput(sources, spec, {}));
  ASSERT_TRUE(found);
  EXPECT_EQ(
      found->message,
      "the job stops every 1.00 h, and checkpoints every 10.0 h leave 0.0 % of the time to training; every "
      "21.3 min would leave 64.5 %");
  spec.checkpoint_interval = from_seconds(20 * kMinute);
  EXPECT_FALSE(far_from_optimum(spec, goodput(sources, spec, {})));
  spec.checkpoint_interval.reset();
  EXPECT_FALSE(far_from_optimum(spec, goodput(sources, spec, {})));
}

// A run of one day: a loss in its 40th hour does not count.
TEST(Reliability, OnlyLossesDuringTheRunCount) {
  ReliabilitySpec spec;
  spec.days = 1;
  spec.checkpoint_interval = from_seconds(990);
  const Duration hour = from_seconds(kHour);
  const Goodput late = goodput({}, spec, {40 * hour, 24 * hour});
  EXPECT_EQ(late.known_losses, 0);
  EXPECT_EQ(late.share.usual, goodput({}, spec, {}).share.usual);
  // With restarts of 13 hours: lost at 1 h, training goes on at 14 h; lost at 20 h, what is left of the day
  // is the restart: 13 + 4 of 24 hours, and 3600 mod 990 = 630 s and 21600 mod 990 = 810 s of work.
  spec.restart = 13 * hour;
  const Goodput twice = goodput({}, spec, {hour, 20 * hour, 40 * hour});
  EXPECT_EQ(twice.known_losses, 2);
  EXPECT_NEAR(twice.share.usual, 1 - (17 * kHour + 630 + 810) / (24 * kHour), 1e-9);
}

// Checkpoints of 30 s after every hour of training, restarts of 10 minutes; of a day 3600 / 3630 trains.
ReliabilitySpec hourly() {
  ReliabilitySpec spec;
  spec.days = 1;
  spec.checkpoint_time = from_seconds(30);
  spec.restart = from_seconds(10 * kMinute);
  spec.checkpoint_interval = from_seconds(kHour);
  return spec;
}

// All eight GPUs of a node at 50 min: 3000 s of work and 600 s of restart, as if it were one.
TEST(Reliability, ANodesDeathIsOneInterruption) {
  ReliabilitySpec spec = hourly();
  const std::vector<Duration> node(8, from_seconds(50 * kMinute));
  const Goodput day = goodput({}, spec, node);
  EXPECT_EQ(day.known_losses, 1);
  EXPECT_NEAR(day.share.usual, 3600.0 / 3630 * (1 - 3600.0 / 86400), 1e-9);
  spec.days = 0.1;
  EXPECT_NEAR(goodput({}, spec, node).share.usual, 3600.0 / 3630 * (8640.0 - 3600) / 8640, 1e-9);
}

// Without checkpoints: at 1 h 3600 s of work are lost, and training goes on at 4200 s; at 2 h it has lost
// 3000 s more: with two restarts 3600 + 600 + 3000 + 600 = 7800 s, all that has passed by then.
TEST(Reliability, ALossCostsNoWorkFromBeforeTheLastRestart) {
  ReliabilitySpec spec = hourly();
  spec.checkpoint_time = {};
  spec.checkpoint_interval = from_seconds(24 * kHour);
  const Duration hour = from_seconds(kHour);
  EXPECT_NEAR(goodput({}, spec, {2 * hour, hour}).share.usual, 1 - 7800.0 / 86400, 1e-9);
}

// At 1500 s, and 400 s later, when 200 s of the restart are left: it begins again, so 400 + 600 s.
TEST(Reliability, ALossDuringARestartBeginsItAgain) {
  const Goodput result = goodput({}, hourly(), {from_seconds(1500), from_seconds(1900)});
  EXPECT_EQ(result.known_losses, 2);
  EXPECT_NEAR(result.share.usual, 3600.0 / 3630 * (1 - (1500.0 + 1000) / 86400), 1e-9);
}
}  // namespace topsim::report::reliability_test
