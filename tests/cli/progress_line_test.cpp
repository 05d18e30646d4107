#include "sim/cli/progress_line.hpp"

#include <gtest/gtest.h>

namespace topsim::cli::progress_line_test {
using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

constexpr Clock::time_point kBegan{100s};

// A run with `done` of 1,000 ops done.
void begin(executor::Progress& run, std::uint64_t done, executor::UnfoldedReason apart) {
  run.ranks = 6144, run.rank_classes = 6140;
  run.unfolded_by = apart;
  run.ops_done = done, run.ops_total = 1000;
  run.began = kBegan;
}

// 20 of 1,000 ops in 2 s: about 100 s in all. 10 in 8 s: 800 s, or 13.3 min.
TEST(LongRun, IsSaidWithItsCauseAndHowLongItWillTake) {
  executor::Progress run;
  begin(run, 20, executor::UnfoldedReason::by_hash);
  EXPECT_EQ(long_run_text(run, kBegan + 2s),
            "note: paths by hash keep 6140 of 6144 ranks apart: about 100 s a run; with "
            "topology.fabric.routing=adaptive more of them are simulated as one\n");
  begin(run, 10, executor::UnfoldedReason::by_choice);
  EXPECT_EQ(long_run_text(run, kBegan + 8s),
            "note: all 6144 ranks are simulated one by one: about 13 min a run\n");
  begin(run, 20, executor::UnfoldedReason::by_place);
  EXPECT_EQ(long_run_text(run, kBegan + 2s), "note: 6144 ranks are of 6140 kinds: about 100 s a run\n");
}

// Only the first call of each collective is simulated packet by packet; later ones cost nothing. So the ops
// done foretell nothing before a step is over: a run of a minute had a 600th of them done after 6 s. After a
// step, 100 of 1,000 ops in 10 s are about 100 s in all.
TEST(LongRun, OfPacketsHasNoTimeBeforeAStepIsOver) {
  executor::Progress run;
  begin(run, 1, executor::UnfoldedReason::by_packet);
  EXPECT_EQ(long_run_text(run, kBegan + 9s), "");
  EXPECT_EQ(
      long_run_text(run, kBegan + 10s),
      "note: every packet is simulated, which may take minutes; network.model=flow shares links without "
      "packets\n");
  begin(run, 100, executor::UnfoldedReason::by_packet);
  run.step = 1;
  EXPECT_EQ(long_run_text(run, kBegan + 10s),
            "note: every packet is simulated: about 100 s a run; network.model=flow shares links without "
            "packets\n");
}

TEST(LongRun, IsNotSaidOfShortRunsNorBeforeMuchIsKnown) {
  executor::Progress run;
  EXPECT_EQ(long_run_text(run, kBegan), "");  // not folded yet
  begin(run, 0, executor::UnfoldedReason::by_hash);
  EXPECT_EQ(long_run_text(run, kBegan + 1s), "");
  begin(run, 1, executor::UnfoldedReason::by_hash);
  EXPECT_EQ(long_run_text(run, kBegan + 2s), "");  // 2000 s by one op: too early to tell
  begin(run, 10, executor::UnfoldedReason::by_hash);
  EXPECT_EQ(long_run_text(run, kBegan + 1900ms), "");  // 190 s, but less than 2 s have passed
  begin(run, 200, executor::UnfoldedReason::by_hash);
  EXPECT_EQ(long_run_text(run, kBegan + 2s), "");  // 10 s are no long run
  begin(run, 1000, executor::UnfoldedReason::by_hash);
  EXPECT_EQ(long_run_text(run, kBegan + 1h), "");  // over
}

// A study has no ops of its own: its longest run counts, 100 s beside 50 s.
TEST(LongRun, OfAStudyIsItsLongest) {
  executor::Progress study;
  executor::RunOfStudy quick(&study);
  begin(quick.progress, 40, executor::UnfoldedReason::by_place);
  {
    executor::RunOfStudy slow(&study);
    begin(slow.progress, 20, executor::UnfoldedReason::by_hash);
    EXPECT_NE(long_run_text(study, kBegan + 2s).find("about 100 s"), std::string::npos);
  }
  EXPECT_NE(long_run_text(study, kBegan + 2s).find("about 50 s"), std::string::npos);
  study.stop = true;
  EXPECT_TRUE(quick.progress.stopped());
}

// 5 of 1,000 ops are too few to tell; 20 in a second leave 980 / 20 = 49 s.
TEST(ProgressJson, SaysHowMuchIsLeftOnceItCanBeTold) {
  executor::Progress run;
  begin(run, 5, executor::UnfoldedReason::by_place);
  EXPECT_EQ(progress_json(run, 1).find("seconds_left"), std::string::npos);
  run.ops_done = 20;
  EXPECT_NE(progress_json(run, 1).find("\"seconds_left\":49.0"), std::string::npos);
}
}  // namespace topsim::cli::progress_line_test
