#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/report/findings.hpp"
#include "tests/report/sample.hpp"

namespace topsim::report::pipeline_findings_test {
using namespace topsim::testing;
using ::testing::HasSubstr;

Finding bubble_of(const Result& result) {
  const auto at = std::find_if(result.findings.begin(), result.findings.end(), [](const Finding& each) {
    return each.message.find("bubble takes") != std::string::npos;
  });
  return at == result.findings.end() ? Finding{} : *at;
}

TEST(PipelineFindings, TheBubbleIsHeldAgainstItsClosedForm) {
  // (p-1)/(m+p-1) = 1/9 for two stages and eight micro-batches; interleaved twice 1/17.
  EXPECT_DOUBLE_EQ(closed_form_bubble(facts()), 1.0 / 9);
  ScenarioFacts interleaved = facts();
  interleaved.virtual_stages = 2;
  EXPECT_DOUBLE_EQ(closed_form_bubble(interleaved), 1.0 / 17);
  interleaved.equal_bubble_known = false;
  EXPECT_LT(closed_form_bubble(interleaved), 0);

  const topology::Topology topology = two_nodes();
  executor::Outcome outcome = two_steps(topology);
  for (auto& step : outcome.ranks[1].steps) step = account(6_ms, {{Reason::pipeline_bubble, 4_ms}});
  const Result result = make_result(facts(), topology, two_ranks(), memory(), outcome);
  EXPECT_THAT(bubble_of(result).message,
              HasSubstr("bubble takes 20.0 % of the step; equal stages without transfer "
                        "time would lose 11.1 % (2 stages, 8 micro-batches)"));
}

// Two stages, 20 % of the step beyond busy: 8.9 points more than the 1/9 of the schedule. The path of two
// steps of 10 ms has 12 ms of computing and 8 ms, 40 % of it, of what the test says.
TEST(PipelineFindings, ABubbleBeyondTheScheduleNamesWhatCausesIt) {
  const topology::Topology topology = two_nodes();
  executor::Outcome outcome = two_steps(topology);
  program::Program program = two_ranks();
  const auto idle = [&](Duration first, Duration second) {
    const Duration busy[] = {first, second};
    for (std::size_t r = 0; r < 2; ++r)
      for (auto& step : outcome.ranks[r].steps)
        step = account(busy[r], {{Reason::pipeline_bubble, 10_ms - busy[r]}});
  };
  const auto said = [&] { return bubble_of(make_result(facts(), topology, program, memory(), outcome)); };
  idle(8_ms, 8_ms);
  EXPECT_EQ(said().path, "critical_path");
  outcome.critical_path[1].reason = Reason::host;
  EXPECT_EQ(said().path, "workload.compute.cuda_graph");
  EXPECT_THAT(said().message, HasSubstr("the host's launches are 40.0 % of the critical path"));
  outcome.critical_path[1].reason = Reason::data_parallel;
  program.classes[0].ops[2].phase = program::Phase::parameter_sync;
  EXPECT_EQ(said().path, "workload.plan.overlap_param_gather");
  program.classes[0].ops[2].phase = program::Phase::gradient_sync;
  idle(9_ms, 7_ms);  // 9 of 8 ms: 12.5 % above the mean
  EXPECT_EQ(said().path, "workload.plan.stage_layers");
  EXPECT_THAT(said().message, HasSubstr("stage 0 computes 12.5 % longer than the mean"));
}

// Tokens of a request pass the stages one after the other, and schedules of one stage a rank have no virtual
// ones: both would be refused.
TEST(PipelineFindings, OnlyWhatTheScheduleTakesIsProposed) {
  const topology::Topology topology = two_nodes();
  executor::Outcome outcome = two_steps(topology);
  for (auto& step : outcome.ranks[1].steps) step = account(6_ms, {{Reason::pipeline_bubble, 4_ms}});
  ScenarioFacts of = facts();
  const auto remedy = [&] {
    return bubble_of(make_result(of, topology, two_ranks(), memory(), outcome)).remedy;
  };
  of.equal_bubble_known = false;
  EXPECT_EQ(remedy(), "more micro-batches a step, or fewer stages");
  of.takes_virtual_stages = true;
  EXPECT_EQ(remedy(), "more micro-batches a step, virtual_stages, or fewer stages");
  of.inference = true;
  EXPECT_EQ(remedy(), "fewer stages, with tp in their place");
}
}  // namespace topsim::report::pipeline_findings_test
