// The attention model against published kernel times.
#include <gtest/gtest.h>

#include "tests/workloads/timed_kernels.hpp"
#include "workloads/compute/compute_model.hpp"
#include "workloads/model.hpp"

namespace topsim::workloads::attention_test {
using namespace testing;

struct Measured {
  const char* gpu;
  Precision precision;
  double tokens, heads, kv_heads, head_dim, value_dim, window, batch;
  double forward_ms, backward_ms;
};

// cuDNN 9.19, causal (NVIDIA/cudnn-frontend, benchmark/sdpa_benchmark_training/results of February 2026,
// directories gb200_919_only_cudnn and gb300_919_only_cudnn). The rows without a window set the model's
// constants; those with a window, from gpt-oss, set what a window's edges and the start of narrow heads cost
// (4 k); at 32 k they are a blind check.
const std::vector<Measured>& rows() {
  using enum Precision;
  static const std::vector<Measured> table{
      {"gb200", bf16, 2048, 64, 8, 128, 128, 0, 1, 0.066, 0.206},
      {"gb200", bf16, 4096, 64, 8, 128, 128, 0, 1, 0.206, 0.607},
      {"gb200", bf16, 8192, 64, 8, 128, 128, 0, 1, 0.688, 2.097},
      {"gb200", bf16, 32768, 64, 8, 128, 128, 0, 1, 10.226, 29.863},
      {"gb200", bf16, 4096, 128, 128, 192, 128, 0, 1, 0.509, 1.613},
      {"gb200", fp8, 4096, 64, 8, 128, 128, 0, 1, 0.161, 0.559},
      {"gb200", fp8, 32768, 64, 8, 128, 128, 0, 1, 7.960, 25.803},
      {"gb300", bf16, 2048, 64, 8, 128, 128, 0, 1, 0.054, 0.190},
      {"gb300", bf16, 4096, 64, 8, 128, 128, 0, 1, 0.164, 0.575},
      {"gb300", bf16, 8192, 64, 8, 128, 128, 0, 1, 0.583, 1.985},
      {"gb300", bf16, 32768, 64, 8, 128, 128, 0, 1, 8.734, 28.390},
      {"gb300", bf16, 4096, 128, 128, 192, 128, 0, 1, 0.454, 1.544},
      {"gb300", fp8, 4096, 128, 128, 192, 128, 0, 1, 0.285, 1.197},
      {"gb300", fp8, 32768, 64, 8, 128, 128, 0, 1, 5.623, 23.752},
      {"gb200", bf16, 4096, 64, 8, 64, 64, 1024, 2, 0.209, 0.487},
      {"gb200", bf16, 32768, 64, 8, 64, 64, 1024, 2, 1.711, 4.099},
      {"gb300", bf16, 4096, 64, 8, 64, 64, 1024, 2, 0.178, 0.472},
      {"gb300", bf16, 32768, 64, 8, 64, 64, 1024, 2, 1.448, 3.930},
      // cuDNN 9.23, results/gpt_oss/gb200 of May 2026. The 16-bit row is in the cost of a window's edges; the
      // 8-bit rows set the rate of narrow heads backward. Forward in 8 bits a window of 128 keys reads -33 %.
      {"gb200", bf16, 4096, 128, 128, 64, 64, 128, 2, 0.210, 0.455},
      {"gb200", fp8, 4096, 128, 128, 64, 64, 128, 2, 0.189, 1.777},
      {"gb200", mxfp8, 4096, 128, 128, 64, 64, 128, 2, 0.217, 2.069},
      {"gb200", fp8, 32768, 128, 128, 64, 64, 128, 2, 1.474, 91.544},
  };
  return table;
}

TEST(Attention, BlackwellsKernelsTakeTheTimesThatCudnnPublishes) {
  for (const Measured& row : rows()) {
    SCOPED_TRACE(std::string(row.gpu) + " " + std::to_string(static_cast<int>(row.tokens)) + " window " +
                 std::to_string(static_cast<int>(row.window)));
    const topology::Accelerator accelerator = cool(row.gpu);
    const ComputeModel model(accelerator, {});
    AttentionShape shape{row.batch,    row.heads,     row.kv_heads, row.tokens, row.tokens,
                         row.head_dim, row.value_dim, true,         false,      row.window};
    const auto error = [](double seconds, double ms) { return std::abs(seconds * 1e3 / ms - 1); };
    const double bound = row.window == 0 ? 0.16 : row.window < 1024 ? 0.34 : 0.18;
    EXPECT_LT(
        error(model.attention_forward(shape, AttentionKernel::flash, row.precision).seconds, row.forward_ms),
        bound);
    EXPECT_LT(error(model.attention_backward(shape, AttentionKernel::flash, row.precision).seconds,
                    row.backward_ms),
              bound);
  }
}

// cuDNN on a GB200, 32 k tokens in all, 32 heads of 64, TFLOP/s forward without a mask and with it
// (Dao-AILab/flash-attention pull request 2605). Their rate is another library's; that a start is worth as
// many keys as for heads of 128 was seen here.
TEST(Attention, HeadsOf64OnABlackwellAreAsFastAsPublished) {
  const topology::Accelerator accelerator = cool("gb200");
  const ComputeModel model(accelerator, {});
  for (const auto& [tokens, whole, masked] : {std::tuple(1024.0, 979.0, 627.0),
                                              {2048, 1069, 827},
                                              {4096, 1113, 977},
                                              {8192, 1147, 1072},
                                              {16384, 1157, 1120}}) {
    for (const bool causal : {false, true}) {
      const AttentionShape shape{32768 / tokens, 32, 32, tokens, tokens, 64, 64, causal};
      const KernelCost cost = model.attention_forward(shape, AttentionKernel::flash, Precision::bf16);
      const double published = causal ? masked : whole;
      EXPECT_NEAR(cost.flops / cost.seconds * 1e-12, published, 0.09 * published) << tokens << causal;
    }
  }
}

// Without a mask and with it, 16 heads of 128: cuDNN on a GB200 at 1 k; FlashAttention-4 on a B200 at 8 k,
// whose backward pass has 1,360 and 1,209 TFLOP/s (pull requests 2605 and 2280). FlashAttention-4 on the
// GB200 reaches 1,540, 1,706, 1,796, 1,837 and 1,882 at 1 to 16 k.
TEST(Attention, BlackwellsKernelsWithoutAMaskAreThoseOfOtherBenchmarks) {
  const auto check = [&](const char* gpu, double tokens, bool causal, double forward, double backward,
                         double bound) {
    const topology::Accelerator accelerator = cool(gpu);
    const ComputeModel model(accelerator, {});
    const AttentionShape shape{32768 / tokens, 16, 16, tokens, tokens, 128, 128, causal};
    const KernelCost ahead = model.attention_forward(shape, AttentionKernel::flash, Precision::bf16);
    EXPECT_NEAR(ahead.flops / ahead.seconds * 1e-12, forward, bound * forward) << gpu << tokens;
    if (backward <= 0) return;
    const KernelCost back = model.attention_backward(shape, AttentionKernel::flash, Precision::bf16);
    EXPECT_NEAR(1.25 * back.flops / back.seconds * 1e-12, backward, bound * backward) << gpu << tokens;
  };
  check("gb200", 1024, false, 1428, 0, 0.02);
  check("b200", 8192, false, 1534.8, 1359.8, 0.05);
  check("b200", 8192, true, 1418.1, 1208.6, 0.05);
  for (const auto& [tokens, forward] :
       {std::pair(1024.0, 1540.0), {2048, 1706}, {4096, 1796}, {8192, 1837}, {16384, 1882}})
    check("gb200", tokens, false, forward, 0, 0.09);
}

// cuDNN 9.13 of September 2025, at lengths where the overhead of PyTorch's calls does not matter: 128 query
// heads, 8 key heads.
TEST(Attention, TheLibraryOf2025IsSlower) {
  const std::vector<Measured> rows{{"b200", Precision::bf16, 8192, 128, 8, 128, 128, 0, 1, 1.877, 5.833},
                                   {"b200", Precision::bf16, 32768, 128, 8, 128, 128, 0, 1, 24.795, 79.338},
                                   {"gb300", Precision::bf16, 8192, 128, 8, 128, 128, 0, 1, 1.470, 4.865},
                                   {"gb300", Precision::bf16, 32768, 128, 8, 128, 128, 0, 1, 19.592, 66.679}};
  for (const Measured& row : rows) {
    const topology::Accelerator accelerator = cool(row.gpu);
    const ComputeModel model(accelerator, {});
    const AttentionShape shape{1, 128, 8, row.tokens, row.tokens, 128, 128, true, false, 0};
    const double forward = model.attention_forward(shape, AttentionKernel::flash2025, row.precision).seconds;
    const double backward =
        model.attention_backward(shape, AttentionKernel::flash2025, row.precision).seconds;
    EXPECT_NEAR(forward * 1e3, row.forward_ms, 0.05 * row.forward_ms) << row.gpu;
    EXPECT_NEAR(backward * 1e3, row.backward_ms, 0.05 * row.backward_ms) << row.gpu;
    EXPECT_GT(forward, model.attention_forward(shape, AttentionKernel::flash, row.precision).seconds);
  }
}

// FlashAttention-2 on a B200: 315, 352, 354 and 362 TFLOP/s forward, 8 x 16 heads of 128
// (meta-pytorch/tritonbench pull request 171); backward 281, 302, 315 and 329, 32 heads of 64
// (Dao-AILab/flash-attention issue 1589). PyTorch left alone takes cuDNN there.
TEST(Attention, FlashAttention2IsNoFasterOnABlackwellThanOnAHopper) {
  const topology::Accelerator accelerator = cool("b200");
  const ComputeModel model(accelerator, {});
  for (const auto& [tokens, forward, backward] : {std::tuple(1024.0, 315.1, 280.6),
                                                  {2048.0, 352.1, 301.6},
                                                  {4096.0, 353.9, 314.7},
                                                  {8192.0, 361.6, 329.1}}) {
    const AttentionShape wide{8, 16, 16, tokens, tokens, 128, 128, false, false, 0};
    const AttentionShape narrow{16384 / tokens, 32, 32, tokens, tokens, 64, 64, false, false, 0};
    const double flops = 4 * tokens * tokens * 8 * 16 * 128;
    EXPECT_NEAR(
        flops * 1e-12 / model.attention_forward(wide, AttentionKernel::flash2, Precision::bf16).seconds,
        forward, 0.12 * forward);
    EXPECT_NEAR(2.5 * flops / 8 * (16384 / tokens) * 1e-12 /
                    model.attention_backward(narrow, AttentionKernel::flash2, Precision::bf16).seconds,
                backward, (tokens < 4096 ? 0.27 : 0.18) * backward);
    EXPECT_EQ(model.attention_forward(wide, AttentionKernel::sdpa, Precision::bf16).seconds,
              model.attention_forward(wide, AttentionKernel::flash2025, Precision::bf16).seconds);
    EXPECT_GE(model.attention_forward(wide, AttentionKernel::flash2, Precision::fp32).seconds,
              model.attention_forward(wide, AttentionKernel::flash, Precision::fp32).seconds);
  }
}

// FlashAttention-4 on a B200, four sequences of 8 k tokens, 16 heads of 128: 1,450 TFLOP/s at first and 1,237
// once its clock has fallen (flashinfer pull request 2899), a ratio of 0.853. The catalogue derates attention
// by the ratio of matrix products in 16 bits: 1,342 / 1,549 = 0.866.
TEST(Attention, ABlackwellAtItsPowerLimitSlowsAttentionAsMuchAsProducts) {
  const topology::Accelerator free = cool("b200");
  const AttentionShape shape{4, 16, 16, 8192, 8192, 128, 128, true, false, 0};
  const auto seconds = [&](const topology::Accelerator& accelerator) {
    return ComputeModel(accelerator, {})
        .attention_forward(shape, AttentionKernel::flash, Precision::bf16)
        .seconds;
  };
  EXPECT_NEAR(seconds(free) / seconds(shipped().accelerator("b200")), 1237.0 / 1450, 0.02);
}

// Causal, without a window: 4096 / 2 = 2048 keys per query on average. With a window of 128 every query sees
// 128 keys, except the first 128, which see 64 on average: 128 - 128 x 128 / (2 x 4096) = 126.
TEST(Attention, AWindowIsSeenByEveryQueryButTheFirst) {
  AttentionShape shape{1, 1, 1, 4096, 4096, 64, 64, true, false, 0};
  EXPECT_EQ(shape.mean_keys(), 2048);
  shape.window = 128;
  EXPECT_EQ(shape.mean_keys(), 126);
  shape.window = 4096;
  EXPECT_EQ(shape.mean_keys(), 2048);
}

// With a window in every other layer, the mean of both kinds: (4096 x 4096 / 2 + 4096 x 126) / 2 pairs per
// head.
TEST(Attention, PairsAreTheMeanOfLayersWithAndWithoutAWindow) {
  ModelSpec model;
  model.layers = 2;
  model.attention.window = 128;
  model.attention.full_every = 2;
  EXPECT_EQ(attended_pairs(model, 4096, true), (4096 * 2048 + 4096 * 126) / 2.0);
  model.attention.full_every = 0;
  EXPECT_EQ(attended_pairs(model, 4096, true), 4096 * 126.0);
  EXPECT_EQ(attended_pairs(model, 64, true), 64 * 32.0);  // the window is longer than the sequence
  model.attention.window = 0;
  EXPECT_EQ(attended_pairs(model, 4096, true), 4096 * 2048.0);
}

// Gemma 3 4B: of 34 layers the 6th, 12th, 18th, 24th and 30th see all keys, 5 / 34 and not 1 / 6. A stage
// of the last 17 layers has three of them, the first two.
TEST(Attention, TheLastOfEverySoManyLayersSeesAllKeys) {
  ModelSpec model;
  model.layers = 34;
  model.attention.window = 1024, model.attention.full_every = 6;
  EXPECT_DOUBLE_EQ(full_attention_share(model), 5.0 / 34);
  EXPECT_EQ(full_attention_layers(model, 0, 17), 2);
  EXPECT_EQ(full_attention_layers(model, 17, 17), 3);
  EXPECT_EQ(full_attention_layers(model, 30, 4), 0);
  model.attention.full_every = 0;
  EXPECT_EQ(full_attention_share(model), 0);
  model.attention.window = 0;
  EXPECT_EQ(full_attention_share(model), 1);
}

// Without a causal mask a token sees half of the window on each side: 2 x 64 keys, less what is missing at
// both ends, 2 x 64 x 64 / (2 x 4096) = 1 on average. A window of the sequence's length leaves out a quarter,
// one of twice its length nothing.
TEST(Attention, AWindowWithoutACausalMaskIsHalfOnEachSide) {
  AttentionShape shape{1, 1, 1, 4096, 4096, 64, 64, false, false, 128};
  ModelSpec model;
  model.attention.causal = false;
  for (const auto& [window, keys] : {std::pair(128, 127.0), {4096, 3072}, {8192, 4096}, {0, 4096}}) {
    shape.window = window;
    EXPECT_EQ(shape.mean_keys(), keys) << window;
    model.attention.window = window;
    for (const bool causal_half : {false, true})
      EXPECT_EQ(attended_pairs(model, 4096, causal_half), 4096 * keys) << window;
  }
}

// On 32 k tokens a tile of 128 queries passes over 128 + 128 keys, with a causal mask as without it. Without
// the window 32,768 keys: at least 32 times as long, though a start is worth some hundred keys.
TEST(Attention, AWindowSavesTimeWithoutACausalMaskToo) {
  const topology::Accelerator accelerator = shipped().accelerator("h100-sxm5");
  const ComputeModel compute(accelerator, {});
  const auto seconds = [&](bool causal, double window, bool backward) {
    const AttentionShape shape{1, 32, 8, 32768, 32768, 128, 128, causal, false, window};
    return (backward ? compute.attention_backward(shape, AttentionKernel::flash, Precision::bf16)
                     : compute.attention_forward(shape, AttentionKernel::flash, Precision::bf16))
        .seconds;
  };
  for (const bool backward : {false, true}) {
    EXPECT_NEAR(seconds(false, 128, backward), seconds(true, 128, backward),
                0.05 * seconds(true, 128, backward));
    EXPECT_GT(seconds(false, 0, backward), 32 * seconds(false, 128, backward));
  }
}

// cuDNN of mid-2024 on an H100 (figures 5 to 7 of FlashAttention-3's paper), which `flash2025` is there:
// heads of 128, 16 k tokens in all, TFLOP/s. In 8 bits no release is told apart.
TEST(Attention, KernelsOf2024OnAHopperAreThoseOfItsAuthors) {
  const topology::Accelerator accelerator = cool("h100-sxm5");
  const ComputeModel compute(accelerator, {});
  const auto rate = [&](double tokens, bool causal, bool backward, AttentionKernel kernel,
                        Precision precision) {
    AttentionShape shape;
    shape.batch = 16384 / tokens, shape.heads = shape.kv_heads = 16, shape.queries = shape.keys = tokens;
    shape.head_dim = shape.value_dim = 128, shape.causal = causal;
    const KernelCost cost = backward ? compute.attention_backward(shape, kernel, precision)
                                     : compute.attention_forward(shape, kernel, precision);
    return (backward ? 1.25 : 1) * cost.flops / cost.seconds * 1e-12;  // five products, of which 4 count
  };
  const AttentionKernel of2024 = AttentionKernel::flash2025, latest = AttentionKernel::flash;
  for (const auto& [tokens, forward, backward] :
       {std::tuple(2048.0, 617.0, 465.0), {4096, 609, 499}, {8192, 600, 518}, {16384, 595, 516}}) {
    EXPECT_NEAR(rate(tokens, false, false, of2024, Precision::bf16), forward, 0.07 * forward) << tokens;
    EXPECT_NEAR(rate(tokens, false, true, of2024, Precision::bf16), backward, 0.05 * backward) << tokens;
  }
  EXPECT_NEAR(rate(16384, true, false, of2024, Precision::bf16), 539, 0.06 * 539);
  EXPECT_LT(rate(16384, true, false, of2024, Precision::bf16),
            rate(16384, true, false, latest, Precision::bf16));
  for (const auto& [tokens, forward] : {std::pair(2048.0, 886.0), {4096, 864}, {8192, 971}, {16384, 1005}})
    EXPECT_NEAR(rate(tokens, false, false, latest, Precision::fp8), forward, 0.12 * forward) << tokens;
}
}  // namespace topsim::workloads::attention_test
