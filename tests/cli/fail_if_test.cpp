#include "sim/cli/fail_if.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/base/error.hpp"

namespace topsim::cli::fail_if_test {
constexpr const char* kResult =
    R"({"step": {"seconds": 0.5}, "throughput": {"mfu": 0.4}, "memory": {"per_accelerator_bytes": 1073741824}})";

TEST(FailIf, ComparesAKeyWithAQuantity) {
  EXPECT_TRUE(judge(parse_condition("step_time > 499 ms"), kResult).holds);
  EXPECT_FALSE(judge(parse_condition("step_time > 500 ms"), kResult).holds);
  EXPECT_TRUE(judge(parse_condition("step_time>=500 ms"), kResult).holds);
  EXPECT_TRUE(judge(parse_condition("step.seconds == 0.5"), kResult).holds);
  EXPECT_TRUE(judge(parse_condition("mfu < 45 %"), kResult).holds);
  EXPECT_TRUE(judge(parse_condition("memory <= 1 GiB"), kResult).holds);
  EXPECT_EQ(judge(parse_condition("mfu < 0.1"), kResult).value, 0.4);
}

TEST(FailIf, ColumnsOfASweepAreKeysToo) {
  EXPECT_TRUE(judge(parse_condition("step_seconds > 499 ms"), kResult).holds);
  EXPECT_TRUE(judge(parse_condition("step_seconds > 0.49"), kResult).holds);  // the name says the unit
  EXPECT_TRUE(judge(parse_condition("memory_bytes <= 1 GiB"), kResult).holds);
  EXPECT_EQ(parse_condition("idle_seconds.host > 1 ms").key, "accelerators.idle_seconds.host");
}

TEST(FailIf, PrintsBothSidesWithTheirUnits) {
  const auto text = [](const char* condition, double value) {
    return figures_text(parse_condition(condition), value);
  };
  EXPECT_EQ(text("step_time > 1 ms", 17.7404), "17.7 s, the limit 1.00 ms");
  EXPECT_EQ(text("step.seconds > 0.5", 0.75), "750 ms, the limit 500 ms");
  EXPECT_EQ(text("mfu < 0.45", 0.412), "41.2 %, the limit 45.0 %");
  EXPECT_EQ(text("memory > 50 GiB", 0x1p30 * 58), "58.0 GiB, the limit 50.0 GiB");
  EXPECT_EQ(text("tokens_per_second < 70000", 59106), "59 100 tokens/s, the limit 70 000 tokens/s");
  EXPECT_EQ(text("collectives[0].bus_bandwidth < 3 GB/s", 2.5e9), "2.50 GB/s, the limit 3.00 GB/s");
  EXPECT_EQ(text("links[0].capacity > 0", 50e9), "50.0 GB/s, the limit 0 B/s");
  // To three digits both are 17.7 s, and nobody would believe that one is greater.
  EXPECT_EQ(text("step_time > 17.7 s", 17.7004), "17.7004 s, the limit 17.7 s");
}

TEST(FailIf, RefusesWhatIsNoCondition) {
  for (const char* text :
       {"", "step_time", "> 3", "step_time > ", "step_time > fast", "step_time > 3 parsecs"}) {
    EXPECT_THROW((void)parse_condition(text), ConfigError) << text;
  }
}

// A condition of the wrong kind could never hold: it is refused, not passed.
TEST(FailIf, RefusesAFigureOfAnotherKind) {
  for (const char* text : {"step_time > 3 GB", "mfu > nan", "mfu > inf", "mfu > 1 ms", "memory > 10 s",
                           "tokens_per_second < 3 GB/s", "accelerators.idle_seconds.straggler > 1 GB"}) {
    EXPECT_THROW((void)parse_condition(text), ConfigError) << text;
  }
  try {
    (void)parse_condition("step_time > 3 GB");
    FAIL();
  } catch (const ConfigError& error) {
    EXPECT_THAT(error.problems().front().message,
                testing::HasSubstr("\"3 GB\" is no figure for step.seconds, which is a time"));
  }
}

// 'mfu < 90' would hold of every run, 'step_time > 1' may mean milliseconds.
TEST(FailIf, ASharesFigureIsAtMostOneAndATimeHasItsUnit) {
  for (const char* text : {"mfu < 90", "step_time > 1", "memory > 80", "step_time != 1 s"})
    EXPECT_THROW((void)parse_condition(text), ConfigError) << text;
  for (const char* text : {"mfu < 90 %", "mfu < 0.9", "step_time > 0", "step.seconds > 1", "mfu > 105 %"})
    EXPECT_NO_THROW((void)parse_condition(text)) << text;
}

TEST(FailIf, AnUnknownKeyGetsTheClosest) {
  try {
    (void)judge(parse_condition("step_tim > 1 s"), kResult);
    FAIL();
  } catch (const ConfigError& error) {
    EXPECT_THAT(error.problems().front().help, testing::HasSubstr("did you mean \"step_time\"?"));
  }
}

TEST(FailIf, AKeyIsCheckedBeforeAnythingRuns) {
  EXPECT_NO_THROW(check_key(parse_condition("step_time > 1 s")));
  EXPECT_NO_THROW(check_key(parse_condition("accelerators.idle_seconds.straggler > 1 ms")));
  EXPECT_NO_THROW(check_key(parse_condition("links[0].utilization > 0.9")));
  EXPECT_NO_THROW(check_key(parse_condition("reliability.goodput.usual < 0.9")));
  EXPECT_THROW(check_key(parse_condition("step_tim > 1 s")), ConfigError);
  EXPECT_THROW(check_key(parse_condition("cost.usd_per_step > 5 %", Percent::of_baseline)), ConfigError);
  const std::vector<std::string> more = {"cost.usd_per_step"};
  EXPECT_NO_THROW(check_key(parse_condition("cost.usd_per_step > 5 %", Percent::of_baseline), more));
  EXPECT_DOUBLE_EQ(parse_condition("cost.capital_usd > 0.7 MUSD").limit, 700e3);
  EXPECT_DOUBLE_EQ(parse_condition("cost.watts > 10 kW").limit, 10e3);
}
}  // namespace topsim::cli::fail_if_test
