// Which receive takes which message.
#include "workloads/trace/messages.hpp"

#include <gtest/gtest.h>

#include <numeric>

namespace topsim::workloads::trace::messages_test {
struct Item {
  std::int64_t peer, tag, bytes;  // bytes 0: a receive
};
Trace trace_of(const std::vector<std::vector<Item>>& ranks) {
  Trace trace;
  trace.ranks = static_cast<std::uint32_t>(ranks.size());
  for (std::uint32_t r = 0; r < trace.ranks; ++r) {
    RankTrace& program = trace.programs.emplace_back();
    program.ranks = {r};
    for (const Item& item : ranks[r]) {
      Node node;
      node.kind = item.bytes == 0 ? Kind::recv : Kind::send;
      node.peer = item.peer, node.tag = item.tag, node.bytes = item.bytes;
      program.add(node);
    }
  }
  return trace;
}
Messages match(const Trace& trace) {
  std::vector<std::vector<std::uint32_t>> orders;
  for (const RankTrace& program : trace.programs) {
    std::vector<std::uint32_t>& order = orders.emplace_back(program.nodes.size());
    std::iota(order.begin(), order.end(), 0U);
  }
  return match_messages(trace, orders);
}

// Rank 1 sends tags 7 and 5, rank 2 sends tags 3 and 5. The fourth receive names rank and tag, so it is
// matched first (25 bytes). Then, in order: the lowest rank left with tag 5 is 1 (15 bytes), the lowest tag
// left of rank 2 is 3 (23), and rank 1's tag 7 remains (17).
TEST(Messages, AnOpenReceiveTakesTheLowestSenderAndOfThatTheLowestTag) {
  const Trace trace = trace_of({{{kAny, 5, 0}, {2, kAny, 0}, {kAny, kAny, 0}, {2, 5, 0}},
                                {{0, 7, 17}, {0, 5, 15}},
                                {{0, 3, 23}, {0, 5, 25}}});
  const Messages messages = match(trace);
  std::vector<std::int64_t> bytes;
  for (std::uint32_t node = 0; node < 4; ++node) bytes.push_back(messages.find(0, node)->bytes);
  EXPECT_EQ(bytes, (std::vector<std::int64_t>{15, 23, 17, 25}));
}

// How long they take, tests/bench/micro_bench.cpp measures.
TEST(Messages, ManyOpenReceivesTakeTheMessagesInTheOrderOfTheirTags) {
  constexpr std::int64_t kMany = 4'000;
  std::vector<std::vector<Item>> ranks(2);
  for (std::int64_t i = 0; i < kMany; ++i) {
    ranks[0].push_back({kAny, kAny, 0});
    ranks[1].push_back({0, i, i + 1});
  }
  const Trace trace = trace_of(ranks);
  const Messages messages = match(trace);
  for (std::uint32_t node = 0; node < kMany; ++node) EXPECT_EQ(messages.find(0, node)->bytes, node + 1);
}
}  // namespace topsim::workloads::trace::messages_test
