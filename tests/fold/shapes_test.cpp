// The distinct calls of a program and which of them each op is.
#include "sim/fold/shapes.hpp"

#include <gtest/gtest.h>

namespace topsim::fold::shapes_test {

// 70,000 all-reduces of 1, 2, 3, ... bytes are 70,000 calls, more than 16 bits can number: the last would be
// the call of 70,000 - 65,536 = 4,464 bytes.
TEST(Shapes, MoreCallsThan65536KeepTheirOwnSizes) {
  program::Program program;
  program.ranks = 1;
  program.communicator_slots = {{CommunicatorId(0)}};
  program::RankProgramBuilder builder(program, "all");
  program::Op op;
  op.kind = program::OpKind::collective;
  constexpr std::int64_t kCalls = 70'000;
  for (std::int64_t bytes = 1; bytes <= kCalls; ++bytes) {
    op.bytes = Bytes(bytes);
    builder.add(op);
  }
  builder.finish();
  const Shapes shapes = collect_shapes(program);
  const auto& calls = shapes.collectives[0][0];
  ASSERT_EQ(calls.size(), std::size_t{kCalls});
  EXPECT_EQ(calls[shapes.op_shape[0].back()].bytes, kCalls);
}
}  // namespace topsim::fold::shapes_test
