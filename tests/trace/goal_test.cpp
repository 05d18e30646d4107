// GOAL schedules: reading, messages for broken ones, and the programs that they become.
#include "tests/trace/fixtures.hpp"

namespace topsim::workloads::trace::goal_test {
TEST(Goal, ReadsOperationsDependenciesAndComments) {
  const Trace trace = read_goal(kTwo, "x.goal");
  ASSERT_EQ(trace.ranks, 2u);
  const RankTrace& first = trace.programs[0];
  ASSERT_EQ(first.nodes.size(), 2u);
  EXPECT_EQ(first.nodes[0].duration, from_microseconds(0.5));
  EXPECT_EQ(first.nodes[1].bytes, 1000);
  EXPECT_EQ(first.nodes[1].id, 6u);  // its line number
  EXPECT_EQ(first.after[1], std::vector<std::uint32_t>{0});
  EXPECT_EQ(trace.programs[1].nodes[0].processor, 1u);
}

TEST(Goal, MistakesHaveALineAndAColumn) {
  const auto at = [](const std::string& text, int line, int column, const char* message) {
    expect_mistake(goal_problem(text), line, column, message, text);
  };
  at("", 1, 1, "expected \"num_ranks\", found the end of the file");
  at("num_ranks x", 1, 11, "expected a number of ranks, found \"x\"");
  at("num_ranks 2\nrank 1 {\n}\n", 2, 6, "rank 1 where rank 0 comes next");
  at("num_ranks 2\nrank 0 {\n}\n", 4, 1, "num_ranks says 2, the file has 1 ranks");
  at("num_ranks 1\nrank 0 {\nl1: calc 1\n", 4, 1, "rank 0 has no closing }");
  at("num_ranks 1\nrank 0 {\nsend 5 to 0\n}", 3, 6, "expected a size in bytes, found \"5\"");
  at("num_ranks 1\nrank 0 {\nsend 5b to 7\n}", 3, 12, "the schedule has no rank 7");
  at("num_ranks 1\nrank 0 {\na: calc 1\na: calc 2\n}", 4, 1, "label \"a\" twice in one rank");
  at("num_ranks 1\nrank 0 {\na: calc 1\nb requires a\n}", 4, 1, "no item is labelled \"b\" before this line");
  at("num_ranks 1\nrank 0 {\ncalc -4\n}", 3, 6, "a time in nanoseconds cannot be negative");
  at("num_ranks 1\nrank 0 {\ncalc 99999999999999999999\n}", 3, 6, "too large");
  at("num_ranks 1\nrank 0 {\ncalc 1 calc 2\n}", 3, 8, "after the end of an item");
  at("num_ranks 1 /* no end", 1, 13, "a comment has no end");
}

TEST(Goal, WhatCanNeverEndIsSaid) {
  EXPECT_THAT(
      goal_problem("num_ranks 1\nrank 0 {\na: calc 1\nb: calc 1\na requires b\nb requires a\n}").message,
      HasSubstr("2 nodes wait for each other (3, 4)"));
  EXPECT_THAT(
      goal_problem("num_ranks 2\nrank 0 {\nrecv 8b from 1 tag 2\n}\nrank 1 {\nsend 8b to 0 tag 1\n}").message,
      HasSubstr("rank 0: node 3 receives from rank 1 with tag 2 what nobody sends"));
}

// b waits for a. c may start with b and d with c, so that each waits for a too, whichever line comes first: a
// and then 5 us of c and d side by side are 6 us.
TEST(Goal, AnItemThatStartsWithAnotherWaitsForAllThatTheOtherWaitsFor) {
  const std::string items =
      "num_ranks 1\nrank 0 {\na: calc 1000\nb: calc 1000 cpu 1\nc: calc 5000 cpu 2\nd: calc 5000 cpu 3\n";
  std::vector<std::string> lines = {"b requires a\n", "c irequires b\n", "d irequires c\n"};
  do {
    const std::string text = items + lines[0] + lines[1] + lines[2] + "}";
    const Trace trace = read_goal(text, "x.goal");
    for (const std::size_t item : {1, 2, 3})
      EXPECT_EQ(trace.programs[0].after[item], std::vector<std::uint32_t>{0}) << text;
    EXPECT_EQ(run(trace).step_times[0], from_microseconds(6)) << text;
  } while (std::next_permutation(lines.begin(), lines.end()));
}

TEST(Goal, ItemsThatStartWithEachOtherNeverStart) {
  const std::string items = "num_ranks 1\nrank 0 {\na: calc 1\nb: calc 1\nc: calc 1\n";
  const auto at = [&](const std::string& lines, int line, const char* message) {
    const std::string text = items + lines + "}";
    expect_mistake(goal_problem(text), line, 1, message, text);
  };
  at("a irequires b\nb irequires a\n", 7, "\"b\" can never start");
  at("c irequires a\na irequires c\n", 6, "\"c\" can never start");
  at("a irequires a\n", 6, "\"a\" can never start");
  // a starts with b, which waits for a's end
  EXPECT_THAT(goal_problem(items + "a irequires b\nb requires a\n}").message,
              HasSubstr("wait for each other"));
}

// Schedules of htsim mark a rank's end with an empty send to a rank that cannot exist.
TEST(Goal, SentinelsArePassedOver) {
  const Trace trace = read_goal("num_ranks 1\nrank 0 {\nsend 0b to 9999999\n}", "x.goal");
  EXPECT_EQ(trace.programs[0].nodes[0].kind, Kind::join);
  EXPECT_THAT(trace.notes.front(), HasSubstr("mark ends of ranks"));
}

// Ten messages of one pair and tag match receives in the order in which they were sent, whatever their size.
// So the calculation after the first receive waits for 100 bytes only, not for the others.
TEST(Goal, MessagesOfOneTagKeepTheirOrder) {
  std::string sends, receives;
  for (int i = 0; i < 10; ++i) {
    sends += "send " + std::to_string(i == 0 ? 100 : 100000000) + "b to 1\n";
    receives += "r" + std::to_string(i) + ": recv 100b from 0\n";
  }
  const std::string text =
      "num_ranks 2\nrank 0 {\n" + sends + "}\nrank 1 {\n" + receives + "c: calc 1000\nc requires r0\n}\n";
  const program::Program program = to_program(read_goal(text, "x.goal"), accelerator());
  program::validate(program);
  std::vector<std::int64_t> received;
  for (const auto& op : program.classes[1].ops)
    if (op.kind == OpKind::recv) received.push_back(op.bytes.value());
  EXPECT_EQ(received.front(), 100);
  EXPECT_EQ(received.back(), 100000000);
  const auto outcome = run(read_goal(text, "x.goal"));
  EXPECT_GT(seconds(outcome.step_times[0]), 9e8 / 450e9);  // nine of 100 MB at NVLink's 450 GB/s at most
}

// Both ranks send first and receive then. Small messages leave without waiting for their receive, so this
// does not deadlock.
TEST(Goal, SmallMessagesDoNotWaitForTheirReceive) {
  const char* text =
      "num_ranks 2\nrank 0 {\na: send 8b to 1\nb: recv 8b from 1\nb requires a\n}\n"
      "rank 1 {\na: send 8b to 0\nb: recv 8b from 0\nb requires a\n}\n";
  EXPECT_TRUE(run(read_goal(text, "x.goal")).complete);
}

// 65,535 bytes leave at once (LogGOPSim's default S), so the calculation of 1000 us begins at 0. With one
// byte more it begins when the message has arrived.
TEST(Goal, LargeMessagesEndWhenTheyHaveArrived) {
  const auto step = [](int bytes) {
    return run(read_goal("num_ranks 2\nrank 0 {\na: send " + std::to_string(bytes) +
                             "b to 1\nb: calc 1000000 cpu 1\nb requires a\n}\nrank 1 {\nrecv " +
                             std::to_string(bytes) + "b from 0\n}\n",
                         "x.goal"))
        .step_times[0];
  };
  EXPECT_EQ(step(65535), from_microseconds(1000));
  EXPECT_GT(step(65536), from_microseconds(1005));
}

// A message there and one back take two latencies (LogGOPSim: L + 2o each), empty or not. One byte adds a few
// picoseconds.
TEST(Goal, EmptyMessagesTakeTheirLatency) {
  const auto step = [](const std::string& size) {
    return run(read_goal("num_ranks 2\nrank 0 {\na: send " + size + " to 1\nb: recv " + size +
                             " from 1\nb requires a\n}\nrank 1 {\na: recv " + size + " from 0\nb: send " +
                             size + " to 0\nb requires a\n}\n",
                         "x.goal"))
        .step_times[0];
  };
  EXPECT_GT(step("0b"), from_microseconds(10));
  EXPECT_NEAR(seconds(step("0b")), seconds(step("1b")), 1e-9);
}

// Rank 0 computes on two processors at once, 1 and 3 us, and 0.5 us after the message: busy for 3.5 us. Rank
// 1 computes for 5 us.
TEST(Goal, EveryProcessorKeepsTheAcceleratorBusy) {
  const auto outcome = run(
      read_goal("num_ranks 2\nrank 0 {\ncalc 1000 cpu 1\ncalc 3000 cpu 2\na: recv 8b from 1\nb: calc 500\n"
                "b requires a\n}\nrank 1 {\na: calc 5000 cpu 1\nb: send 8b to 0\nb requires a\n}\n",
                "x.goal"));
  std::vector<Duration> busy;
  for (const auto& rank : outcome.ranks) busy.push_back(rank.steps[0].busy);
  EXPECT_THAT(busy, testing::UnorderedElementsAre(from_microseconds(3.5), from_microseconds(5)));
}

// Rank 0's second receive names rank 1, which sends 8 bytes. So the first, from any rank, takes the 9 bytes
// of rank 2.
TEST(Goal, AReceiveFromAnybodyTakesWhatIsLeft) {
  const char* text =
      "num_ranks 3\nrank 0 {\nrecv 8b from -1\nrecv 8b from 1\n}\nrank 1 {\nsend 8b to 0\n}\nrank 2 {\nsend "
      "9b to 0\n}\n";
  const program::Program program = to_program(read_goal(text, "x.goal"), accelerator());
  program::validate(program);
  std::map<std::uint32_t, std::int64_t> received;
  for (const program::Op& op : program.classes[program.class_of_rank[0]].ops)
    if (op.kind == OpKind::recv) received[program.peer_slots[op.slot][0].value] = op.bytes.value();
  EXPECT_THAT(received, testing::ElementsAre(testing::Pair(1, 8), testing::Pair(2, 9)));
}

TEST(Goal, WrittenAndReadAgainIsTheSame) {
  const std::string once = write_goal(read_goal(kTwo, "x.goal"));
  EXPECT_EQ(write_goal(read_goal(once, "x.goal")), once);
}
}  // namespace topsim::workloads::trace::goal_test
