#include "sim/report/member.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "sim/base/error.hpp"
#include "sim/report/spans.hpp"
#include "tests/report/sample.hpp"

namespace topsim::testing::member_test {
using ::testing::HasSubstr;
using ::testing::Not;

TEST(Spans, SayRunsAndStridesInFewCharacters) {
  using Numbers = std::vector<std::uint32_t>;
  EXPECT_EQ(report::to_spans(Numbers{0, 1, 2, 3, 8, 16, 24, 300}), "0-3,8-24:8,300");
  EXPECT_EQ(report::to_spans(Numbers{5}), "5");
  EXPECT_EQ(report::to_spans(Numbers{5, 9}), "5,9");  // two numbers are not written as a stride
  EXPECT_EQ(report::to_spans(Numbers{}), "");
}

TEST(Spans, HoldWhatTheyWereMadeOfAndNothingElse) {
  std::vector<std::uint32_t> numbers;
  for (std::uint32_t n = 0; n < 1000; ++n)
    if (n % 7 == 0 || (n > 300 && n < 350) || n % 64 == 5) numbers.push_back(n);
  const std::string spans = report::to_spans(numbers);
  for (std::uint32_t n = 0; n < 1000; ++n)
    EXPECT_EQ(report::in_spans(spans, n), std::binary_search(numbers.begin(), numbers.end(), n)) << n;
}

TEST(Spans, OfAnotherFormAreRefused) {
  EXPECT_THROW((void)report::in_spans("0-3;7", 9), ConfigError);
}

TEST(Members, ALinkOfAClassHasItsOwnNameAndTheFiguresOfTheClass) {
  const topology::Topology topology = two_nodes();
  const report::Result result = sample_result();  // both uplinks are one class: leaf0 and leaf1 to spine0
  const std::string id = topology.name(link_between(topology, "leaf1", "spine0"));
  const report::Members members = report::find_members(result, topology, {}, std::vector<std::string>{id});
  ASSERT_EQ(members.links.size(), 1U);
  EXPECT_EQ(members.links[0].first.from, "leaf1");
  EXPECT_EQ(members.links[0].first.bytes.value(), 500'000'000);
  EXPECT_EQ(members.links[0].first.count, 1U);
  EXPECT_EQ(members.links[0].second, 2U);
}

// The spine stands for five. One of them carries a fifth of 500 MB at a fifth of 25 GB/s, and ten cables are
// alike.
TEST(Members, OneSwitchOfSeveralAlikeHasItsShare) {
  const topology::Topology topology = two_nodes(55_GBps, 5);
  const std::vector<std::string> one{"leaf1 -> spine0[4]"};
  const report::Members members = report::find_members(sample_result(), topology, {}, one);
  EXPECT_EQ(members.links[0].first.id, "leaf1 -> spine0[4]");
  EXPECT_EQ(members.links[0].first.bytes.value(), 100'000'000);
  EXPECT_EQ(members.links[0].first.capacity, 5e9);
  EXPECT_DOUBLE_EQ(members.links[0].first.utilization, 1);
  EXPECT_EQ(members.links[0].second, 10U);
}

TEST(Members, ALinkThatCarriedNothingSaysSo) {
  const topology::Topology topology = two_nodes();
  const std::string id = topology.name(link_between(topology, "spine0", "leaf1"));
  const auto members = report::find_members(sample_result(), topology, {}, std::vector<std::string>{id});
  EXPECT_EQ(members.links[0].first.bytes.value(), 0);
  EXPECT_EQ(members.links[0].second, 0U);
  EXPECT_THAT(report::to_text(members), HasSubstr("carried nothing"));
}

TEST(Members, ARankHasTheAccountOfItsClass) {
  const topology::Topology topology = two_nodes();
  const std::vector<std::uint32_t> one{1};
  const auto members = report::find_members(sample_result(), topology, one, {});
  EXPECT_EQ(members.ranks[0].first.rank, 1U);
  EXPECT_EQ(members.ranks[0].first.account, sample_result().ranks[1].account);
}

// 0.5 GB over two steps are 250 MB per step; 1 ms per step is spent waiting for the slowest.
TEST(Members, AreToldAStepAndInTheWordsOfTheMainScreen) {
  const topology::Topology topology = two_nodes();
  const std::string id = topology.name(link_between(topology, "leaf1", "spine0"));
  const std::vector<std::uint32_t> one{1};
  const std::string text =
      report::to_text(report::find_members(sample_result(), topology, one, std::vector<std::string>{id}));
  EXPECT_THAT(text, HasSubstr("carried 250 MB a step"));
  EXPECT_THAT(text, HasSubstr("waiting for the slowest              1.00 ms"));
}

// As on the main screen it is a part of the busy time, not of the idle time.
TEST(Members, ARankSaysHowMuchOfItsBusyTimeKernelsLoseBesideCommunication) {
  const topology::Topology topology = two_nodes();
  report::Result result = sample_result();
  const std::vector<std::uint32_t> one{1};
  EXPECT_THAT(report::to_text(report::find_members(result, topology, one, {})), Not(HasSubstr("slowed")));
  result.ranks[1].account.slowed = 3_ms;
  EXPECT_THAT(report::to_text(report::find_members(result, topology, one, {})),
              HasSubstr("  of which: slowed by communication  3.00 ms"));
}

TEST(Members, WhoIsNotThereIsRefusedByName) {
  const topology::Topology topology = two_nodes();
  const std::vector<std::uint32_t> none{99};
  EXPECT_THROW((void)report::find_members(sample_result(), topology, none, {}), ConfigError);
  EXPECT_THROW(
      (void)report::find_members(sample_result(), topology, {}, std::vector<std::string>{"leaf9 -> spine0"}),
      ConfigError);
}
}  // namespace topsim::testing::member_test
