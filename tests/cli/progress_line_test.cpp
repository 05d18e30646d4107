#include "sim/cli/progress_line.hpp"

#include <gtest/gtest.h>

namespace topsim::cli::progress_line_test {
using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

constexpr Clock::time_point kBegan{100s};

// `done` of 1,000 ops.
void begin(executor::Progress& run, std::uint64_t done, executor::UnfoldedReason apart) {
  run.ranks = 6144, run.rank_classes = 6140;
  run.unfolded_by = apart;
  run.ops_done = done, run.ops_total = 1000;
  run.began = kBegan;
}

// A hundredth of the ops in a second: 100 s in all. Eight times as slow: 800 s are 13.3 min.
TEST(LongRun, IsSaidWithItsCauseAndHowLongItWillTake) {
  executor::Progress run;
  begin(run, 10, executor::UnfoldedReason::by_hash);
  EXPECT_EQ(long_run_text(run, kBegan + 1s),
            "note: paths by hash keep 6140 of 6144 ranks apart: about 100 s a run; with "
            "topology.fabric.routing=adaptive more of them are simulated as one\n");
  begin(run, 10, executor::UnfoldedReason::by_choice);
  EXPECT_EQ(long_run_text(run, kBegan + 8s),
            "note: all 6144 ranks are simulated one by one: about 13 min a run\n");
  begin(run, 10, executor::UnfoldedReason::by_place);
  EXPECT_EQ(long_run_text(run, kBegan + 1s), "note: 6144 ranks are of 6140 kinds: about 100 s a run\n");
  begin(run, 10, executor::UnfoldedReason::by_packet);
  EXPECT_EQ(long_run_text(run, kBegan + 1s),
            "note: every packet is simulated: about 100 s a run; network.model=flow shares links without "
            "packets\n");
}

TEST(LongRun, IsNotSaidOfShortRunsNorBeforeMuchIsKnown) {
  executor::Progress run;
  EXPECT_EQ(long_run_text(run, kBegan), "");  // not folded yet
  begin(run, 0, executor::UnfoldedReason::by_hash);
  EXPECT_EQ(long_run_text(run, kBegan + 1s), "");
  begin(run, 1, executor::UnfoldedReason::by_hash);
  EXPECT_EQ(long_run_text(run, kBegan + 2s), "");  // 2000 s, as it seems
  begin(run, 10, executor::UnfoldedReason::by_hash);
  EXPECT_EQ(long_run_text(run, kBegan + 400ms), "");  // 40 s
  begin(run, 100, executor::UnfoldedReason::by_hash);
  EXPECT_EQ(long_run_text(run, kBegan + 1s), "");  // 10 s
  begin(run, 1000, executor::UnfoldedReason::by_hash);
  EXPECT_EQ(long_run_text(run, kBegan + 1h), "");  // over
}

// 100 and 50 s, of a study that has no ops of its own.
TEST(LongRun, OfAStudyIsItsLongest) {
  executor::Progress study;
  executor::RunOfStudy quick(&study);
  begin(quick.progress, 20, executor::UnfoldedReason::by_place);
  {
    executor::RunOfStudy slow(&study);
    begin(slow.progress, 10, executor::UnfoldedReason::by_hash);
    EXPECT_NE(long_run_text(study, kBegan + 1s).find("about 100 s"), std::string::npos);
  }
  EXPECT_NE(long_run_text(study, kBegan + 1s).find("about 50 s"), std::string::npos);
  study.stop = true;
  EXPECT_TRUE(quick.progress.stopped());
}
}  // namespace topsim::cli::progress_line_test
