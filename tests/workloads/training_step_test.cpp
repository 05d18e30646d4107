#include "workloads/training_step.hpp"

#include <gtest/gtest.h>

#include <tuple>

#include "tests/workloads/fixtures.hpp"
#include "tests/workloads/replay.hpp"
#include "workloads/model.hpp"

namespace topsim::workloads::training_step_test {
using namespace testing;

double flops_of_all_ranks(const program::Program& program) {
  std::vector<double> of_class;
  for (const auto& rank_program : program.classes) {
    double sum = 0;
    for (const auto& op : rank_program.ops) sum += op.flops.value();
    of_class.push_back(sum);
  }
  double total = 0;
  for (const auto rank_class : program.class_of_rank) total += of_class[rank_class];
  return total;
}

TEST(TrainingStep, FirstScenarioIsAValidProgram) {
  const auto program = training_step(llama3_70b_on_64(), h100(), 64);
  EXPECT_NO_THROW(program::validate(program));
  EXPECT_EQ(program.ranks, 64u);
  ASSERT_EQ(program.classes.size(), 2u);
  EXPECT_EQ(program.classes[0].name, "stage 0");
}

// Every model FLOP is done by exactly one rank, and recompute counts none.
TEST(TrainingStep, FlopsOfTheOpsAreThoseOfTheModel) {
  for (const auto kind : {RecomputeKind::none, RecomputeKind::selective, RecomputeKind::full}) {
    WorkloadSpec workload = llama3_70b_on_64();
    workload.plan.recompute = RecomputeSpec{kind, {}};
    const auto program = training_step(workload, h100(), 64);
    EXPECT_NEAR(flops_of_all_ranks(program) / program.facts.model_flops.value(), 1, 1e-12);
  }
}

// With given stage times and free transfers the step is m (F + I + W) plus the schedule's bubble, to the
// picosecond. f, i, w: how often F, I and W count in the bubble, (p - 1) (f F + i I + w W) / v.
TEST(TrainingStep, EveryScheduleIdlesForItsClosedForm) {
  using namespace topsim::literals;
  const int p = 8, m = 32;
  for (const bool overlap : {false, true})
    for (const auto& [schedule, v, f, i, w] : {std::tuple{Schedule::gpipe, 1, 1, 1, 1},
                                               {Schedule::one_f_one_b, 1, 1, 1, 1},
                                               {Schedule::interleaved, 4, 1, 1, 1},
                                               {Schedule::zb_h1, 1, 1, 1, -1}}) {
      WorkloadSpec workload = llama3_70b_on_64();
      workload.model.layers = 64;
      workload.plan.tp = 1, workload.plan.pp = p, workload.plan.dp = 1;
      workload.plan.global_batch = m;
      workload.plan.schedule = schedule, workload.plan.virtual_stages = v;
      workload.plan.overlap_p2p = overlap;
      // Uneven times that the number of chunks divides.
      workload.compute.stage_times = {{7'000'004_ps}, {9'000'044_ps}, {5'000'012_ps}, {Duration{}}};
      const auto program = training_step(workload, h100(), p);
      program::validate(program);
      const auto result = free_network().run(program);
      const Duration work = m * (7'000'004_ps + 9'000'044_ps + 5'000'012_ps);
      const Duration bubble = (p - 1) * (f * 7'000'004_ps + i * 9'000'044_ps + w * 5'000'012_ps) / v;
      for (const Duration busy : result.busy) EXPECT_EQ(busy, work);
      EXPECT_EQ(result.step, work + bubble)
          << "schedule " << static_cast<int>(schedule) << " overlap " << overlap;
    }
}

// ZB-2p keeps to the memory of 2 p micro-batches, whatever is recomputed, and given times are replayed as
// they are. With I = F and W < F no stage waits inside its work (Qi et al., table 2): the step is m (F + I +
// W), the way of the first micro-batch to the last stage (or of the last one back), and at most a weight
// gradient.
TEST(TrainingStep, ZeroBubble2PReplaysTheSameOrderWhateverIsComputedAgain) {
  using namespace topsim::literals;
  const int p = 8, m = 24;
  for (const auto kind : {RecomputeKind::none, RecomputeKind::selective, RecomputeKind::full}) {
    WorkloadSpec workload;
    workload.model = gpt(32, 4096, 32, 50304, 1024);
    workload.framework = "megatron@2023";
    workload.plan.pp = p, workload.plan.dp = 1, workload.plan.zero = 0;
    workload.plan.micro_batch = 3, workload.plan.grad_accumulation = m;
    workload.plan.schedule = Schedule::zb_2p;
    workload.plan.recompute = RecomputeSpec{kind, {}};
    workload.compute.stage_times = {{30_us}, {30_us}, {20_us}, {Duration{}}};
    const auto program = training_step(workload, h100(), p);
    program::validate(program);
    EXPECT_LE(free_network().run(program).step, m * 80_us + (p - 1) * 30_us + 20_us)
        << static_cast<int>(kind);
  }
}

TEST(TrainingStep, ZeroBubbleVIdlesForHalfAForwardAStage) {
  using namespace topsim::literals;
  WorkloadSpec workload = llama3_70b_on_64();
  workload.model.layers = 64;
  workload.plan.tp = 1, workload.plan.pp = 8, workload.plan.dp = 1, workload.plan.global_batch = 32;
  workload.plan.schedule = Schedule::zb_v;
  workload.compute.stage_times = {{6_us}, {6_us}, {6_us}, {Duration{}}};
  const auto program = training_step(workload, h100(), 8);
  program::validate(program);
  EXPECT_EQ(free_network().run(program).step, 32 * 18_us + 7 * 3_us);
}

// DualPipe's bubble: (p/2 - 1)(F&B + B - 3 W). Times of a stage F = I = W = 6 us, so F&B = F + B = 18 us, B =
// 12, W = 6. Every rank computes all m micro-batches, half of them in each of its two stages.
TEST(TrainingStep, DualPipeIdlesForItsClosedForm) {
  using namespace topsim::literals;
  for (const auto& [p, m] : {std::pair{4, 8}, {8, 16}, {8, 32}}) {
    WorkloadSpec workload = llama3_70b_on_64();
    workload.model.layers = 64;
    workload.plan.tp = 1, workload.plan.pp = p, workload.plan.dp = 1, workload.plan.global_batch = m;
    workload.plan.schedule = Schedule::dualpipe;
    workload.compute.stage_times = {{6_us}, {6_us}, {6_us}, {Duration{}}};
    const auto program = training_step(workload, h100(), static_cast<std::uint32_t>(p));
    program::validate(program);
    const auto result = free_network().run(program);
    for (const Duration busy : result.busy) EXPECT_EQ(busy, m * 18_us);
    EXPECT_EQ(result.step, m * 18_us + (p / 2 - 1) * (18_us + 12_us - 18_us)) << p << " " << m;
  }
}

// All gradients are sent, 4 bytes per parameter; the embedding table's too, which is ready with the input
// gradients already.
TEST(TrainingStep, EveryScheduleReducesTheGradientsOfAllParameters) {
  for (const Schedule schedule :
       {Schedule::one_f_one_b, Schedule::zb_h1, Schedule::zb_2p, Schedule::zb_v, Schedule::dualpipe}) {
    WorkloadSpec workload = llama3_70b_on_64();
    workload.model.layers = 16;
    workload.plan.tp = 1, workload.plan.pp = 4, workload.plan.dp = 2, workload.plan.global_batch = 16;
    workload.plan.schedule = schedule;
    const auto program = training_step(workload, h100(), 8);
    program::validate(program);
    double bytes = 0;
    for (const auto& rank : program.classes)
      for (const auto& op : rank.ops)
        if (op.kind == program::OpKind::collective && op.phase == program::Phase::gradient_sync &&
            op.bytes > Bytes(4))
          bytes += static_cast<double>(op.bytes.value());
    const ModelSpec model = complete(workload.model);
    const double all =
        16 * layer_parameters(model).total() + embedding_parameters(model) + head_parameters(model);
    // DualPipe holds every stage on two ranks and reduces both.
    EXPECT_NEAR(bytes / (4 * all), schedule == Schedule::dualpipe ? 2 : 1, 1e-3)
        << static_cast<int>(schedule);
  }
}

// One micro-batch crosses three boundaries down and three up; every transfer of 1 us is exposed.
TEST(TrainingStep, MeasuredTransfersDelayTheWayThroughThePipeline) {
  using namespace topsim::literals;
  WorkloadSpec workload = llama3_70b_on_64();
  workload.plan.tp = 1, workload.plan.pp = 4, workload.plan.dp = 1, workload.plan.global_batch = 1;
  workload.compute.stage_times = {{7_us}, {9_us}, {5_us}, {1_us}};
  const auto program = training_step(workload, h100(), 4);
  EXPECT_EQ(free_network().run(program).step, 4 * 21_us + 2 * 3 * 1_us);
}

// Of each layer, with b (s/c) 2 k_v d / t elements of keys and values per rank. Ring: c - 1 messages of them
// forward, twice that backward. All-gather: all c parts, three times. Ulysses: all-to-alls of queries,
// answers, keys and values; each of four ranks needs keys and values for its two heads, so the one key-value
// head is sent four times (DeepSpeed; Transformer Engine divides key-value heads).
TEST(TrainingStep, ContextParallelRanksExchangeKeysAndValues) {
  for (const auto kind : {ContextKind::ring, ContextKind::all_gather, ContextKind::ulysses}) {
    WorkloadSpec workload = llama3_70b_on_64();
    workload.plan.cp = 4, workload.plan.dp = 1, workload.plan.cp_kind = kind;
    if (kind == ContextKind::ulysses) workload.framework = "deepspeed";
    workload.plan.recompute = RecomputeSpec{};
    workload.plan.global_batch = 1;
    const auto program = training_step(workload, h100(), 64);
    program::validate(program);
    EXPECT_NEAR(flops_of_all_ranks(program) / program.facts.model_flops.value(), 1, 1e-12);
    double bytes = 0;
    for (const auto& op : program.classes[0].ops)
      if (op.kind == program::OpKind::collective &&
          program.communicators[program.communicator_slots[op.slot][0].index()].dimension ==
              program::Dimension::context)
        bytes += static_cast<double>(op.bytes.value());
    const double tokens = 8192.0 / 4, keys_values = tokens * 2 * 1 * 128 * 2, answer = tokens * 8 * 128 * 2;
    const double forward_and_backward = kind == ContextKind::ring ? 3 * keys_values + 3 * 2 * keys_values
                                        : kind == ContextKind::all_gather
                                            ? 3 * 4 * keys_values
                                            : 2 * (answer + answer + 4 * keys_values);
    EXPECT_DOUBLE_EQ(bytes, 40 * forward_and_backward);
    EXPECT_NO_THROW((void)free_network().run(program));
  }
}

// One micro-batch crosses three boundaries forward and three backward, one after the other, also through a
// stage without layers.
TEST(TrainingStep, AStageWithoutLayersPassesOnWhatItReceives) {
  WorkloadSpec workload;
  workload.model = gpt(4, 1024, 16);
  workload.framework = "megatron", workload.sequence = 1024;
  workload.plan.pp = 4, workload.plan.micro_batch = 1, workload.plan.grad_accumulation = 1;
  workload.plan.stage_layers = {1, 1, 0, 2};
  for (const bool overlap : {false, true}) {
    workload.plan.overlap_p2p = overlap;
    const auto step = [&](Duration transfer) {
      Replay replay = free_network();
      replay.launches = false;
      replay.message = [=](Bytes) { return transfer; };
      return replay.run(training_step(workload, h100(), 4)).step;
    };
    EXPECT_EQ(step(from_microseconds(1000)) - step(Duration{}), from_microseconds(6000));
  }
}

// The number of ops follows from the stages, not from the replicas: a job of 131,072 ranks has as many as one
// of 16,384.
TEST(TrainingStep, ALargeJobIsAFewThousandOpsAStage) {
  WorkloadSpec workload = llama3_70b_on_64();
  workload.model = llama3_405b();
  workload.plan.pp = 16;
  workload.plan.stage_layers = {7, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 7};
  for (const int dp : {128, 1024}) {
    workload.plan.dp = dp;
    workload.plan.global_batch = 16 * dp;
    const auto program = training_step(workload, h100(), static_cast<std::uint32_t>(dp * 128));
    program::validate(program);
    for (const auto& stage : program.classes) EXPECT_LT(stage.ops.size(), 4000u);
  }
}
// With ZB-1p and ZB-2p stages update without waiting for the norm over all stages, since waiting would cost
// the bubble that they save: the norm is over the 2 tensor ranks alone.
TEST(TrainingStep, OnlyZeroBubbleMadeForAPlanUpdatesWithoutANormOverStages) {
  for (const Schedule schedule : {Schedule::zb_1p, Schedule::zb_2p, Schedule::zb_h1}) {
    WorkloadSpec workload = llama3_70b_on_64();
    workload.plan.tp = 2, workload.plan.pp = 4, workload.plan.dp = 8, workload.plan.zero = 0;
    workload.plan.schedule = schedule;
    const program::Program program = training_step(workload, h100(), 64);
    const program::RankProgram& stage = program.classes[0];
    const auto norm = std::find_if(stage.ops.begin(), stage.ops.end(), [&](const program::Op& op) {
      return op.kind == program::OpKind::collective && op.bytes == Bytes(4);  // one number of 4 B: the norm
    });
    ASSERT_NE(norm, stage.ops.end());
    const CommunicatorId of_rank_0 = program.communicator_slots[norm->slot][0];
    EXPECT_EQ(program.members_of(of_rank_0).size(), traits(schedule).made_for_plan ? 2u : 8u);
  }
}

// passes_of() times the passes of a plan in a smaller job. That must keep the plan's facts: with one
// micro-batch nothing is added to earlier gradients, and with shards weights are cast before their gather.
TEST(Passes, CostWhatTheyCostInThePlanThatTheyAreOf) {
  WorkloadSpec workload = llama3_70b_on_64();
  workload.framework = "fsdp";
  workload.plan.global_batch.reset();
  workload.plan.grad_accumulation = 1;
  workload.model = complete_model(workload);
  const Plan plan = resolve(workload, 64);
  ASSERT_TRUE(plan.shards.by_unit && plan.pp == 2 && plan.micro_batches == 1 && plan.dp == 4);
  const auto backward = [](const program::RankProgram& stage, std::uint32_t micro_batch) {
    Duration sum{};
    for (const auto& op : stage.ops)
      if (op.kind == program::OpKind::compute && op.phase == program::Phase::backward &&
          op.micro_batch == micro_batch)
        sum += op.duration;
    return sum;
  };
  const auto whole = training_step(workload, h100(), 64);
  const auto few = passes_of(workload, plan, h100(), Schedule::one_f_one_b);
  EXPECT_EQ(few.ranks, 8U * 2 * 2);  // tp x pp x two replicas, over which shards lie
  for (std::size_t stage = 0; stage < 2; ++stage) {
    EXPECT_GT(backward(whole.classes[stage], 0), Duration{});
    EXPECT_EQ(backward(few.classes[stage], 1), backward(whole.classes[stage], 0));
  }
}
}  // namespace topsim::workloads::training_step_test
