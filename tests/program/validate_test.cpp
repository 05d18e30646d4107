#include <gtest/gtest.h>

#include "sim/base/error.hpp"
#include "sim/program/program.hpp"

namespace topsim::program::validate_test {

// Two ranks: rank 0 sends 8 bytes to rank 1, both join one all-reduce.
Program two_ranks() {
  Program program;
  program.ranks = 2;
  program.communicators = {{Dimension::data, 0, 2}};
  program.members = {RankId(0), RankId(1)};
  program.communicator_slots = {{CommunicatorId(0), CommunicatorId(0)}};
  program.peer_slots = {{RankId(1), RankId(0)}};
  program.peer_counterpart = {0};
  program.peer_dimension = {Dimension::pipeline};
  for (const auto kind : {OpKind::send, OpKind::recv}) {
    RankProgramBuilder builder(program, kind == OpKind::send ? "sender" : "receiver");
    Op op;
    op.label = builder.label("message");
    op.kind = kind;
    op.stream = builder.stream("pipeline");
    op.bytes = Bytes(8);
    const std::uint32_t message = builder.add(op);
    op.kind = OpKind::collective;
    op.stream = builder.stream("data");
    op.bytes = Bytes(64);
    builder.add(op, std::span(&message, 1));
    program.class_of_rank.push_back(builder.finish());
  }
  return program;
}

TEST(Validate, AcceptsMatchingRanks) {
  EXPECT_NO_THROW(validate(two_ranks()));
}

// Ranks name their class in 16 bits: numbers 0 to 65,535. The next one would be class 0 again.
TEST(Validate, MoreClassesThanRanksCanNameAreRefused) {
  Program program;
  program.classes.resize(65'535);
  EXPECT_EQ(RankProgramBuilder(program, "the last").finish(), 65'535);
  EXPECT_THROW(RankProgramBuilder(program, "one more").finish(), ConfigError);
}

TEST(Validate, StreamsAndLabelsAreInterned) {
  const Program program = two_ranks();
  EXPECT_EQ(program.labels, std::vector<std::string>{"message"});
  EXPECT_EQ(program.classes[0].streams, (std::vector<std::string>{"compute", "pipeline", "data"}));
}

TEST(Validate, RefusesACollectiveOfAnotherSize) {
  Program program = two_ranks();
  program.classes[1].ops[1].bytes = Bytes(65);
  EXPECT_THROW(validate(program), InternalError);
}

TEST(Validate, RefusesASendWithoutItsReceive) {
  Program program = two_ranks();
  program.classes[1].ops[0].kind = OpKind::compute;
  EXPECT_THROW(validate(program), InternalError);
}

TEST(Validate, RefusesAPeerThatDoesNotNameItBack) {
  Program program = two_ranks();
  program.peer_slots[0][1] = RankId(1);
  EXPECT_THROW(validate(program), InternalError);
}

// The counterpart of slot 0 has a higher number, so its column is needed before its own turn comes.
TEST(Validate, RefusesACounterpartThatDoesNotListEveryRank) {
  Program program = two_ranks();
  program.peer_slots.push_back({RankId(1)});
  program.peer_counterpart = {1, 0};
  program.peer_dimension.push_back(Dimension::pipeline);
  EXPECT_THROW(validate(program), InternalError);
}

TEST(Validate, RefusesACopyWithTheHostInAThirdDirection) {
  Program program = two_ranks();
  Op& op = program.classes[0].ops[0];
  op.kind = OpKind::host_copy;
  op.slot = 2;
  program.classes[1].ops[0].kind = OpKind::compute;
  EXPECT_THROW(validate(program), InternalError);
}

TEST(Validate, RefusesGridsThatTheClassDoesNotList) {
  Program program = two_ranks();
  program.classes[0].ops[0].grids = 1;
  EXPECT_THROW(validate(program), InternalError);
}

TEST(Validate, RefusesOpsThatWaitForEachOther) {
  Program program = two_ranks();
  // Op 0 waits for op 1, which waits for op 0.
  program.classes[0].dependency_begin = {0, 1, 2};
  program.classes[0].dependencies = {1, 0};
  EXPECT_THROW(validate(program), InternalError);
}

TEST(Validate, AcceptsAnOpThatWaitsForALaterOneOfAnotherStream) {
  Program program = two_ranks();
  program.classes[0].dependency_begin = {0, 1, 1};
  program.classes[0].dependencies = {1};
  EXPECT_NO_THROW(validate(program));
}

TEST(Validate, RefusesACommunicatorWithAMemberWhoDoesNotKnowIt) {
  Program program = two_ranks();
  program.communicator_slots[0][1] = CommunicatorId{};
  program.classes[1].ops[1].kind = OpKind::compute;
  EXPECT_THROW(validate(program), InternalError);
}
}  // namespace topsim::program::validate_test
