// What releases of frameworks do around the matmuls: micro-batches fetched, messages split, owners that
// broadcast, gathers ahead of their chunk.
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/workloads/fixtures.hpp"
#include "workloads/compute/compute_model.hpp"
#include "workloads/compute/spread.hpp"
#include "workloads/framework.hpp"
#include "workloads/layer/layer_kernels.hpp"
#include "workloads/model.hpp"
#include "workloads/training_step.hpp"

namespace topsim::workloads::release_test {
using namespace testing;
using program::CollectiveKind;
using program::Op;
using program::OpKind;
using program::Phase;

WorkloadSpec job(std::string framework) {
  WorkloadSpec workload;
  workload.model = gpt(8, 1024, 16);
  workload.framework = std::move(framework);
  return workload;
}

template <class Wanted>
std::vector<Op> ops_of(const program::Program& program, Wanted&& wanted, std::size_t stage = 0) {
  std::vector<Op> found;
  for (const Op& op : program.classes[stage].ops)
    if (wanted(op)) found.push_back(op);
  return found;
}

// Of 8 draws from a normal distribution the largest lies 1.424 deviations above the mean, of 100 it is 2.508
// (tables of order statistics); Blom's formula is good to 0.015.
TEST(Spread, TheLargestOfSeveralDrawsIsThatOfTheTables) {
  EXPECT_EQ(expected_largest(1), 0);
  EXPECT_NEAR(expected_largest(8), 1.424, 0.015);
  EXPECT_NEAR(expected_largest(100), 2.508, 0.015);
}

// Every matmul of a job on 8 accelerators takes 1 + 0.1 x 1.43 times as long; one accelerator waits for none.
TEST(Spread, MatmulsOfAJobTakeAsLongAsOnTheSlowestChip) {
  const auto compute_time = [](double spread, std::uint32_t ranks) {
    WorkloadSpec workload = job("megatron");
    workload.compute.chip_spread = spread;
    workload.compute.gemm_efficiency = 1e-3;  // nothing else matters
    double sum = 0;
    const auto program = training_step(workload, a100(), ranks);
    for (const Op& op : program.classes[0].ops) sum += seconds(op.duration);
    return sum;
  };
  EXPECT_NEAR(compute_time(0.1, 8) / compute_time(0, 8), 1.143, 0.003);
  EXPECT_EQ(compute_time(0.1, 1), compute_time(0, 1));
}

// NVIDIA/apex pull request 1037 times 16,384 rows of 1,024 numbers on an A100 of 1,555 GB/s: 75.1 us forward
// and 176.2 us backward with apex's own kernels, 53.5 and 86.6 with its fast ones. Beside what the kernels
// move stand 2 us each, one forward and two backward.
TEST(Release, NormsOfTheFirstMegatronTakeAsLongAsApexMeasured) {
  topology::Accelerator accelerator = a100();
  accelerator.memory_bandwidth = BytesPerSecond(1.555e12);
  ComputeSettings settings;
  settings.memory_fixed = from_microseconds(2);
  const ComputeModel compute(accelerator, settings);
  const auto times = [&](const char* framework) {
    WorkloadSpec workload = job(framework);
    workload.model = complete(workload.model);
    workload.precision.gemm = Precision::fp16;
    const Plan plan = resolve(workload, 8);
    const LayerKernels kernels(workload.model, plan, compute);
    return std::pair(kernels.norm_forward(16384, 1024).seconds - 2e-6,
                     kernels.norm_backward(16384, 1024).seconds - 4e-6);
  };
  const auto [forward, backward] = times("megatron@2021");
  EXPECT_NEAR(forward, 75.1e-6, 0.5e-6);
  EXPECT_NEAR(backward, 176.2e-6, 0.5e-6);
  const auto [fast_forward, fast_backward] = times("megatron@2022");
  EXPECT_NEAR(fast_forward, 53.5e-6, 2e-6);
  EXPECT_NEAR(fast_backward, 86.6e-6, 6e-6);
}

// A product of 1024 x 1024 x 1024 in fp8 casts two operands of 2^20 numbers. Transformer Engine reads 16 bits
// and writes two layouts, 4 bytes. torchao reads each for its maximum first, and writes one layout: 5 bytes,
// and a maximum that is set to 0, taken and made a scale, three launches more. Backward it casts a gradient
// in both layouts, 6 bytes for 4, and the weights again, 3.
TEST(Casts, ScalesOfTheTensorItselfReadItOnceMore) {
  const auto product = [](const std::string& framework) {
    WorkloadSpec workload = job(framework);
    workload.model = complete(workload.model);
    workload.precision.gemm = Precision::fp8;
    workload.plan.global_batch = 8;
    const Plan plan = resolve(workload, 8);
    static const topology::Accelerator accelerator = h100();
    const ComputeModel compute(accelerator, {});
    return LayerKernels(workload.model, plan, compute).linear(1024, 1024, 1024);
  };
  const Linear engine = product("megatron@2024"), torchao = product("fsdp@2024-compile");
  constexpr double kByteEach = 1048576 / (0.8 * 3.35e12);
  EXPECT_NEAR(torchao.forward.seconds - engine.forward.seconds, 2 * 1 * kByteEach, 1e-12);
  EXPECT_EQ(torchao.forward.kernels - engine.forward.kernels, 2 * 3);
  EXPECT_NEAR(torchao.input_gradient.seconds - engine.input_gradient.seconds, (2 + 3) * kByteEach, 1e-12);
}

// 16 sequences of 1024, 8 heads: 2^27 scores of 2 bytes. Forward a quotient, a product, a difference and a
// softmax, each read and written at 0.5 of 3.35 TB/s, in the place of one kernel at 0.8; backward the
// softmax reads two and writes one, product and quotient read and write, in the place of three.
TEST(Release, ScoresPassOneByOneWhereNoKernelFusesThem) {
  const AttentionShape shape{16, 8, 8, 1024, 1024, 64, 64};
  const auto seconds = [&](bool fused) {
    ComputeSettings settings;
    settings.fused = fused;
    static const topology::Accelerator accelerator = h100();
    const ComputeModel compute(accelerator, settings);
    return std::pair(compute.attention_forward(shape, AttentionKernel::unfused, Precision::fp16).seconds,
                     compute.attention_backward(shape, AttentionKernel::unfused, Precision::fp16).seconds);
  };
  const double pass = 16 * 8 * 1024.0 * 1024 * 2 / 3.35e12;
  const auto [forward, backward] = seconds(false);
  const auto [fused_forward, fused_backward] = seconds(true);
  EXPECT_NEAR(forward - fused_forward, pass * (8 / 0.5 - 2 / 0.8), 1e-9);
  EXPECT_NEAR(backward - fused_backward, pass * (7 / 0.5 - 3 / 0.8), 1e-9);
}

// Two heads of one sequence are no multiple of four, eight are; 4096 keys are more than the kernel of 2021
// takes. The operators in its place: cast 2 + 4 bytes a score, scale 8, mask 8, softmax 8, cast back 6, for
// 4; backward 6, 12, copied and masked 16, 8, 6, for 6. 2 x 1024 x 1024 scores at 0.8 of 3.35 TB/s.
TEST(Release, MegatronsFusedSoftmaxWantsFoursAndNotTooManyKeys) {
  const auto plan = [](const char* framework, int micro_batch, int sequence, Precision precision) {
    WorkloadSpec workload = job(framework);
    workload.model.heads = workload.model.kv_heads = 16;
    workload.model.head_dim = 0;
    workload.model = complete(workload.model);
    workload.plan.tp = 8;
    workload.plan.micro_batch = micro_batch;
    workload.plan.global_batch = micro_batch;
    workload.sequence = sequence;
    workload.precision.gemm = precision;
    return resolve(workload, 8);
  };
  EXPECT_TRUE(plan("megatron@2021", 1, 1024, Precision::fp16).plain_softmax);
  EXPECT_FALSE(plan("megatron@2021", 2, 1024, Precision::fp16).plain_softmax);
  EXPECT_TRUE(plan("megatron@2021", 2, 4096, Precision::fp16).plain_softmax);
  EXPECT_FALSE(plan("megatron@2022", 2, 4096, Precision::fp16).plain_softmax);
  EXPECT_TRUE(plan("megatron@2022", 2, 1022, Precision::bf16).plain_softmax);
  EXPECT_TRUE(plan("megatron@2022", 2, 1024, Precision::fp32).plain_softmax);
  EXPECT_FALSE(plan("megatron@2019", 1, 1024, Precision::fp16).plain_softmax);
  EXPECT_FALSE(plan("megatron@2024", 1, 1024, Precision::fp16).plain_softmax);

  const AttentionShape shape{1, 2, 2, 1024, 1024, 64, 64};
  const auto costs = [&](bool plain) {
    ComputeSettings settings;
    settings.plain_softmax = plain;
    static const topology::Accelerator accelerator = h100();
    const ComputeModel compute(accelerator, settings);
    return std::pair(compute.attention_forward(shape, AttentionKernel::unfused, Precision::fp16),
                     compute.attention_backward(shape, AttentionKernel::unfused, Precision::fp16));
  };
  const double byte_each = 2 * 1024.0 * 1024 / (0.8 * 3.35e12);
  const auto [forward, backward] = costs(true);
  const auto [fused_forward, fused_backward] = costs(false);
  EXPECT_NEAR(forward.seconds - fused_forward.seconds, (36 - 4) * byte_each, 1e-12);
  EXPECT_NEAR(backward.seconds - fused_backward.seconds, (48 - 6) * byte_each, 1e-12);
  EXPECT_EQ(forward.kernels - fused_forward.kernels, 5 - 1);
  EXPECT_EQ(backward.kernels - fused_backward.kernels, 6 - 1);
}

// Sequences of 2048 tokens, 1024 wide, in 16 bits. One rank finds words 2, positions 2 and adds them 3; two
// sequences are put behind the tokens 2, on two ranks others' words are set to zero 2. Backward the tables
// read the rows 1 + 1, zeros 4, back to sequences 2; the words' rows are read and written in the gradients, 2
// on one rank; tables of 51,200 and 2048 rows are filled with zeros, 25 and 1 for 2048 tokens; of two
// ranks each has half of the words and all positions. Rotary models
// have no table of positions.
TEST(Release, WordsPassAsOftenAsMegatronsEmbeddingWritesThem) {
  const auto passes = [](const char* framework, int tp, int micro_batch, Positions positions) {
    WorkloadSpec workload = job(framework);
    workload.model.positions = positions;
    workload.model = complete(workload.model);
    workload.plan.tp = tp, workload.plan.micro_batch = micro_batch;
    workload.plan.global_batch = 8 / tp * micro_batch;
    workload.plan.sequence_parallel = false;
    workload.dropout = false;
    const Plan plan = resolve(workload, 8);
    static const topology::Accelerator accelerator = h100();
    const ComputeModel compute(accelerator, {});
    const PiecePair pair = embedding(workload.model, plan, compute);
    const double bytes = plan.tokens() * 1024 * 2;
    const auto of = [&](const PieceList& list) {
      double seconds = 0;
      for (const Piece& piece : list.pieces()) seconds += piece.collective ? 0 : piece.cost.seconds;
      return seconds * 0.8 * 3.35e12 / bytes;
    };
    return std::pair(of(pair.forward), of(pair.backward));
  };
  const auto expect = [&](std::pair<double, double> found, double forward, double backward) {
    EXPECT_NEAR(found.first, forward, 1e-9);
    EXPECT_NEAR(found.second, backward, 1e-9);
  };
  expect(passes("megatron@2021", 1, 1, Positions::rotary), 2, 1 + 2 + 25);
  expect(passes("megatron@2021", 1, 1, Positions::learned), 2 + 5, 1 + 1 + 2 + 26);
  expect(passes("megatron@2021", 1, 2, Positions::learned), 2 + 5 + 2, 1 + 1 + 2 + 2 + 13);
  expect(passes("megatron@2021", 2, 2, Positions::learned), 2 + 5 + 2 + 2, 1 + 1 + 2 + 4 + 1 + 6.25 + 0.5);
}

// 8192 tokens meet 50,257 words and 50,304: tiles are the same to a row, and on an A100, not on an H100, the
// head's three products load and store odd rows number by number. Two ranks share 50,258 words, 25,129 each.
TEST(Release, AnOddVocabularyDoublesTheHeadsProductsOnAnA100) {
  const auto head_seconds = [](int vocab, int tp, const topology::Accelerator& accelerator) {
    WorkloadSpec workload = job("megatron@2021");
    workload.model = complete(gpt(8, 1024, 16, vocab));
    workload.plan.tp = tp;
    workload.precision.gemm = Precision::fp16;
    const Plan plan = resolve(workload, 8);
    const ComputeModel compute(accelerator, {});
    double seconds = 0;
    const PiecePair pair = head(workload.model, plan, compute);
    for (const PieceList* list : {&pair.forward, &pair.backward})
      for (const Piece& piece : list->pieces())
        if (piece.part == Part::head && !piece.collective) seconds += piece.cost.seconds;
    return seconds;
  };
  const topology::Accelerator old = a100(), hopper = h100();
  EXPECT_NEAR(head_seconds(50257, 1, old) / head_seconds(50304, 1, old), 2, 0.06);
  EXPECT_NEAR(head_seconds(50258, 2, old) / head_seconds(50304, 2, old), 2, 0.1);
  EXPECT_NEAR(head_seconds(50258, 1, old) / head_seconds(50304, 1, old), 1, 0.01);
  EXPECT_NEAR(head_seconds(50257, 1, hopper) / head_seconds(50304, 1, hopper), 1, 0.01);
}

// Three releases that users of older papers and of nanoGPT ask for: what is theirs and not their elder's.
TEST(Release, OlderScriptsKeepTheirScores) {
  const auto plan = [](const char* framework) {
    WorkloadSpec workload = job(framework);
    workload.model = complete(workload.model);
    return resolve(workload, 8);
  };
  for (const char* old : {"megatron@2019", "deepspeed@2022"}) {
    EXPECT_EQ(plan(old).attention, AttentionKernel::unfused) << old;
    EXPECT_EQ(plan(old).recompute.kind, RecomputeKind::full) << old;
    EXPECT_TRUE(plan(old).dropout) << old;
  }
  EXPECT_FALSE(plan("megatron@2019").fused_kernels);
  EXPECT_TRUE(plan("megatron@2020").fused_kernels);  // they came in 2020: the set of SC'21
  EXPECT_TRUE(plan("deepspeed@2022").fused_kernels);
  EXPECT_TRUE(plan("ddp@2024-compile").fused_cross_entropy && plan("ddp@2024-compile").fused_adam);
}

// Buckets that fill during the last backward pass hold it up, and with it all stages before: in a pipeline
// DeepSpeed reduces afterwards.
TEST(Release, DeepSpeedsPipelineReducesAfterItsLastBackwardPass) {
  const auto buckets = [](int pp) {
    WorkloadSpec workload = job("deepspeed");
    workload.model = complete(workload.model);
    workload.plan.pp = pp;
    return resolve(workload, 8).bucket_elements;
  };
  EXPECT_EQ(buckets(1), 5e8);
  EXPECT_EQ(buckets(2), 0);
}

// Two micro-batches: the host reads each one's size back before its forward pass, and the timers of the time
// wait at the end of all four passes. A year later they wait no more.
TEST(Release, MegatronOf2022WaitsForEveryMicroBatchAndPass) {
  const auto waits = [](std::string framework) {
    WorkloadSpec workload = job(std::move(framework));
    workload.plan.grad_accumulation = 2;
    const auto program = training_step(workload, a100(), 1);
    return ops_of(program, [](const Op& op) { return op.kind == OpKind::compute && op.host_sync; }).size();
  };
  EXPECT_EQ(waits("megatron@2022"), 2u + 4u);
  EXPECT_EQ(waits("megatron@2023"), 2u);
  EXPECT_EQ(waits("megatron"), 0u);
}

// tp 4 without sequence parallelism: each tensor rank sends a quarter of the 2048 x 1024 x 2 B activation,
// and the next stage gathers the whole of it.
TEST(Release, TensorRanksSendTheirPartOfAnActivation) {
  WorkloadSpec workload = job("megatron@2022");
  workload.plan.tp = 4, workload.plan.pp = 2;
  workload.plan.grad_accumulation = 2;
  const auto program = training_step(workload, a100(), 8);
  const double whole = 2048.0 * 1024 * 2;
  const auto sent = ops_of(program, [](const Op& op) { return op.kind == OpKind::send; });
  ASSERT_EQ(sent.size(), 2u);
  EXPECT_EQ(static_cast<double>(sent[0].bytes.value()), whole / 4);
  const auto gathered = ops_of(
      program,
      [](const Op& op) { return op.collective == CollectiveKind::all_gather && op.phase == Phase::transfer; },
      1);
  ASSERT_EQ(gathered.size(), 2u);
  EXPECT_EQ(static_cast<double>(gathered[0].bytes.value()), whole);
}

// InternEvo: as many broadcasts as there are owners, ranks or tensors, of all parameters in 16 bits together.
// 8 layers, embedding and head count as 10 x 9 tensors.
TEST(Release, OwnersOfWholeTensorsBroadcastThem) {
  WorkloadSpec workload = job("internevo");
  workload.model.tied_embeddings = false;
  const auto broadcasts = [&](std::uint32_t ranks) {
    const auto program = training_step(workload, a100(), ranks);
    return ops_of(program, [](const Op& op) { return op.collective == CollectiveKind::broadcast; });
  };
  EXPECT_EQ(broadcasts(8).size(), 8u);
  EXPECT_EQ(broadcasts(128).size(), 90u);
  double bytes = 0;
  for (const Op& op : broadcasts(8)) bytes += static_cast<double>(op.bytes.value());
  const ModelSpec model = complete(workload.model);
  const double parameters = model.layers * layer_parameters(model).total() + embedding_parameters(model) +
                            head_parameters(model) + final_norm_parameters(model);
  EXPECT_NEAR(bytes, 2 * parameters, 8);
}

// Two chunks on a rank: all gathers are launched before the first pass of the second chunk (layers 4 and 5 on
// stage 0), so that none of its weights is waited for late.
TEST(Release, TheNextChunksParametersAreGatheredAhead) {
  WorkloadSpec workload = job("megatron");
  workload.plan.pp = 2, workload.plan.virtual_stages = 2;
  workload.plan.grad_accumulation = 4;
  const auto program = training_step(workload, a100(), 8);
  const auto& ops = program.classes[0].ops;
  const auto second = std::find_if(ops.begin(), ops.end(), [](const Op& op) {
    return op.kind == OpKind::compute && op.phase == Phase::forward && op.layer >= 4;
  });
  ASSERT_NE(second, ops.end());
  const auto is_gather = [](const Op& op) {
    return op.collective == CollectiveKind::all_gather && op.phase == Phase::parameter_sync &&
           op.kind == OpKind::collective;
  };
  EXPECT_GT(std::count_if(ops.begin(), second, is_gather), 0);
  EXPECT_EQ(std::count_if(second, ops.end(), is_gather), 0);
}

// 16 heads of 2048 x 2048 scores: heads of 68 numbers do their 2 x 2 x 16 x 2048^2 x 68 = 18.3 GFLOP at the
// 19.5 TFLOP/s of plain fp32, 0.94 ms, heads of 72 on tensor cores.
TEST(Release, HeadsOffTheGridOfTensorCoresRunAtThePlainRate) {
  const auto accelerator = a100();
  const ComputeModel model(accelerator, {});
  const auto time = [&](double width) {
    AttentionShape shape;
    shape.heads = shape.kv_heads = 16;
    shape.queries = shape.keys = 2048;
    shape.head_dim = shape.value_dim = width;
    return model.attention_forward(shape, AttentionKernel::unfused, Precision::fp16).seconds;
  };
  const double plain = 4.0 * 16 * 2048 * 2048 * 68 / 19.5e12;
  EXPECT_GT(time(68), plain);
  EXPECT_LT(time(72), 0.75 * plain);
}

// 1 x 2048 tokens of width 1024, gated network: 8 layers have 16 norms forward. Eager modules move 36 bytes
// an element where a fused kernel moves 4; at 0.84 of 2.039 TB/s the forward norms alone take 0.7 ms more.
TEST(Release, NormsInSingleOperatorsCostTheirPasses) {
  const auto forward = [](std::string framework) {
    WorkloadSpec workload = job(std::move(framework));
    workload.model.gated_ffn = true;
    double sum = 0;
    const auto program = training_step(workload, a100(), 1);
    for (const Op& op : program.classes[0].ops)
      if (op.phase == Phase::forward) sum += seconds(op.duration);
    return sum;
  };
  EXPECT_GT(forward("fsdp"), forward("fsdp@2024-compile") + 0.7e-3);
}
}  // namespace topsim::workloads::release_test
