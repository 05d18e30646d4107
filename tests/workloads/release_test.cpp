// What a framework's release does around the matmuls: norms, casts, scores, embeddings, micro-batches
// fetched, messages split, owners that broadcast, gathers ahead of their chunk.
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/workloads/fixtures.hpp"
#include "workloads/compute/compute_model.hpp"
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

// Megatron-DeepSpeed trains with Megatron's data parallelism and pipeline, or with --deepspeed with
// DeepSpeed's, and a set stands for each. A user who knows the product alone is told which.
TEST(Release, SetsThatNameMegatronDeepSpeedSayForWhichEngine) {
  std::vector<std::string> sets;
  for (const Framework& set : frameworks()) {
    const std::string_view text = set.summary;
    if (text.find("Megatron-DeepSpeed") == std::string_view::npos) continue;
    const bool without = text.find("without --deepspeed") != std::string_view::npos;
    EXPECT_NE(text.find("--deepspeed"), std::string_view::npos) << text;
    sets.push_back(std::string(set.name) + (without ? " without" : " with"));
  }
  EXPECT_EQ(sets, (std::vector<std::string>{"megatron without", "deepspeed with"}));
}

// NVIDIA/apex pull request 1037: norms of 16,384 rows of 1,024 numbers on an A100 of 1,555 GB/s take 75.1 us
// forward and 176.2 us backward with apex's own kernels (megatron@2021), 53.5 and 86.6 us with its fast ones
// (megatron@2022). The fixed 2 us per kernel, one forward and two backward, are subtracted.
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

// A product of 1024 x 1024 x 1024 in fp8 casts two operands of 2^20 numbers. Transformer Engine with delayed
// scaling reads 2 bytes and writes two layouts, 4 bytes per number. torchao also reads each operand for its
// maximum and writes one layout, 5 bytes, and launches three kernels more: the maximum set to 0, taken, made
// a scale. Backward it casts the gradient in both layouts, which Inductor reads for each, 8 bytes instead of
// 4, and the weights again, 3.
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
  EXPECT_NEAR(torchao.input_gradient.seconds - engine.input_gradient.seconds, (4 + 3) * kByteEach, 1e-12);
}

// Llama's RMSNorm over 1,024 rows of 1,024 numbers. Of seven operators it passes 36 bytes a number at the
// share that sums of tensors reach, 0.84 of 3.35 TB/s; as one kernel, since PyTorch 2.9, it reads and writes
// 2 bytes at 0.35. The set of 2026 also has cuDNN's attention on a Hopper, and cuBLAS' products of its time.
TEST(Release, PyTorchOf2026HasOneKernelForRootMeanSquares) {
  const auto norm = [](const char* framework) {
    WorkloadSpec workload = job(framework);
    workload.model.gated_ffn = true;
    workload.model = complete(workload.model);
    const Plan plan = resolve(workload, 8);
    static const topology::Accelerator accelerator = h100();
    ComputeSettings settings;
    settings.fused = plan.fused_kernels;
    return LayerKernels(workload.model, plan, ComputeModel(accelerator, settings))
        .norm_forward(1024, 1024)
        .seconds;
  };
  constexpr double kNumbers = 1024 * 1024;
  EXPECT_NEAR(norm("fsdp@2025-eager"), 36 * kNumbers / (0.84 * 3.35e12), 1e-12);
  EXPECT_NEAR(norm("fsdp@2026-eager"), 4 * kNumbers / (0.35 * 3.35e12), 1e-12);
  for (const char* set : {"fsdp@2026-eager", "fsdp@2026-compile"}) {
    WorkloadSpec workload = job(set);
    workload.model = complete(workload.model);
    const Plan plan = resolve(workload, 8);
    EXPECT_EQ(plan.attention, AttentionKernel::sdpa2026) << set;
    EXPECT_FALSE(plan.fixed_tiles) << set;
  }
}

// Unfused attention over 2^27 scores (16 sequences of 1024, 8 heads) of 2 bytes. Forward four single
// operators (quotient, product, difference, softmax) read and write, 8 passes at 0.5 of 3.35 TB/s; one fused
// kernel needs 2 at 0.8. Backward the softmax reads two and writes one, product and quotient read and write:
// 7 passes instead of 3.
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

// Megatron's fused softmax needs a multiple of four heads x sequences: two heads of one sequence are none,
// eight are. The kernel of 2021 takes fewer than 4096 keys. Bytes per score of the operators in its place:
// forward cast 2 + 4, scale 8, mask 8, softmax 8, cast back 6, instead of 4; backward 6, 12, copied and
// masked 16, 8, 6, instead of 6. 2 x 1024 x 1024 scores at 0.8 of 3.35 TB/s.
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

// Passes over an activation of 2048 tokens x 1024 x 2 B per sequence.
//   Forward: words looked up 2; positions looked up 2 and added 3; with two sequences transposed to tokens
//     first 2; on two ranks words of the other rank set to zero 2.
//   Backward: gradients read for words 1 and for positions 1; their rows in the word table read and written,
//     2 over the number of ranks; with two sequences transposed 2; on two ranks copied and set to zero 4.
//     Tables filled with zeros: 51,200 rows are 25 passes of 2048 tokens, 2048 positions 1; each of two ranks
//     has half of the words and all positions.
// Rotary models have no table of positions.
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

// The head's three products for 8192 tokens and 50,257 words, compared with 50,304: about as many tiles, but
// odd rows are loaded and stored number by number on an A100, though not on an H100. Two ranks divide 50,258
// words into 25,129 each.
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

// Sets of older papers and of nanoGPT (ddp@2024-compile): where they differ from the set before or after
// them.
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
  EXPECT_TRUE(plan("megatron@2020").fused_kernels);  // fused kernels came in 2020, with the set of SC'21
  EXPECT_TRUE(plan("deepspeed@2022").fused_kernels);
  EXPECT_TRUE(plan("ddp@2024-compile").fused_cross_entropy && plan("ddp@2024-compile").fused_adam);
}

// Buckets reduced during the last backward pass would delay it and, with it, all earlier stages. In a
// pipeline DeepSpeed therefore reduces afterwards.
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

// Two micro-batches. In 2022 the host reads the size of each back before its forward pass, and Megatron's
// timers wait at the end of all four passes. In 2023 the timers no longer wait.
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

// tp 4 without sequence parallelism: each tensor rank sends a quarter of the activation, 2048 x 1024 x 2 B,
// and the next stage gathers the whole.
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

// InternEvo: every owner of whole tensors broadcasts them. There are as many owners as ranks, but at most as
// many as tensors: 8 layers, embedding and head count as 10 x 9. All broadcasts together carry all parameters
// in 16 bits.
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

// Two chunks per rank: stage 0 launches the gathers of its second chunk (layers 4 and 5) before that chunk's
// first pass.
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

// 16 heads of 2048 x 2048 scores. Heads of 68 numbers do not fit tensor cores: 2 x 2 x 16 x 2048^2 x 68 =
// 18.3 GFLOP at the A100's plain fp32 rate of 19.5 TFLOP/s take 0.94 ms. Heads of 72 use tensor cores.
TEST(Release, HeadsOffTheGridOfTensorCoresRunAtThePlainRate) {
  const auto accelerator = a100();
  const ComputeModel model(accelerator, {});
  const auto time = [&](double width) {
    return attention_seconds(model, 16, 2048, width, AttentionKernel::unfused);
  };
  const double plain = 4.0 * 16 * 2048 * 2048 * 68 / 19.5e12;
  EXPECT_GT(time(68), plain);
  EXPECT_LT(time(72), 0.75 * plain);
}

// 2048 tokens of width 1024, 8 layers with a gated network and 16 norms forward. Eager norms move 36 bytes
// per element at 0.84 of 2.039 TB/s, 0.71 ms in all; fused ones 4 bytes at 0.8, 0.08 ms. Other eager
// operators make up the rest.
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
