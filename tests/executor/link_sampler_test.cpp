// Mean rates of links over windows of time.
#include "sim/executor/link_sampler.hpp"

#include <gtest/gtest.h>

namespace topsim::executor::link_sampler_test {

constexpr SimTime at(int microseconds) {
  return SimTime{} + Duration(microseconds * 1'000'000LL);
}

// Windows of 10 us. A link carries 100 bytes in the first, and 100 in the first 4 us of the second, when the
// run ends: 10 and 25 MB/s. As a part of a whole window the rest would have 10 MB/s too, until whenever one
// looks.
TEST(LinkSampler, TheLastWindowEndsWithTheRun) {
  LinkSampler sampler(1, at(0));
  EXPECT_EQ(sampler.next(), at(10));
  sampler.sample([](std::uint32_t) { return 100.0; });
  sampler.finish(at(14), [](std::uint32_t) { return 200.0; });
  const std::vector<LinkSample> samples = sampler.samples({0});
  ASSERT_EQ(samples.size(), 2U);
  EXPECT_EQ(samples[0].time, at(0));
  EXPECT_NEAR(samples[0].rate, 10e6, 1);
  EXPECT_EQ(samples[1].time, at(10));
  EXPECT_NEAR(samples[1].rate, 25e6, 1);
}

// 100 and 300 bytes in turn: as many windows as there may be, 512, become 256 of 20 us with 400 bytes each,
// 20 MB/s. The next ends at 512 x 10 + 20 us.
TEST(LinkSampler, JoinsNeighboursWhereThereAreTooManyWindows) {
  LinkSampler sampler(1, at(0));
  double carried = 0;
  for (int window = 0; window < 512; ++window) {
    ASSERT_EQ(sampler.next(), at(10 * (window + 1)));
    carried += window % 2 == 0 ? 100 : 300;
    sampler.sample([&](std::uint32_t) { return carried; });
  }
  EXPECT_EQ(sampler.next(), at(5120 + 20));
  sampler.sample([&](std::uint32_t) { return carried + 800; });
  sampler.finish(at(5140), [&](std::uint32_t) { return carried + 800; });
  const std::vector<LinkSample> samples = sampler.samples({0});
  ASSERT_EQ(samples.size(), 2U);
  EXPECT_EQ(samples[0].time, at(0));
  EXPECT_NEAR(samples[0].rate, 20e6, 1);
  EXPECT_EQ(samples[1].time, at(5120));
  EXPECT_NEAR(samples[1].rate, 40e6, 1);
}

// A rate that stays is told once.
TEST(LinkSampler, ARateThatStaysIsOneSample) {
  LinkSampler sampler(1, at(0));
  sampler.sample([](std::uint32_t) { return 100.0; });
  sampler.finish(at(14), [](std::uint32_t) { return 140.0; });
  EXPECT_EQ(sampler.samples({0}).size(), 1U);
}
}  // namespace topsim::executor::link_sampler_test
