#include "workloads/compute/flash.hpp"

#include <algorithm>
#include <limits>
#include <optional>
#include <string_view>

#include "topology/generation.hpp"
#include "workloads/compute/compute_model.hpp"

namespace topsim::workloads {
namespace {

// The rates that kernels of a library's release reach. They are in code, beside the releases that launch them
// (framework/); an accelerator of the catalogue uses the row of its architecture. Read from sweeps over
// lengths, with a mask and without, by the schedule of tiles.
struct Row {
  struct Pass {
    double share;     // of the data sheet's rate, or of the best matrix product
    double start;     // keys
    double mask = 0;  // keys that a start costs more with a causal mask
  };
  Pass forward, backward;
  double head_step = 1;
  // Of the forward pass; every backward pass has tiles of 128 keys, the longest first.
  double rows = 128;
  int at_once = 1;
  bool longest_first = false;
  bool splits = false;
};
constexpr double kFlash2Heads = 32;  // HEADDIM_SWITCH (FlashAttention-2, static_switch.h)

// Hopper: cuDNN 9.19 on an H100, heads of 128, 1 k to 32 k tokens, 8 heads to 128, with the mask and without:
// one rate and one start fit all within 5 %, with tiles of 128 rows, the shortest first (forward) and the
// longest first (backward; tests/golden/accelerator). An H200 with 1 to 128 heads of 128, of which neither
// comes, agrees within 7 % but for forward kernels below 40 us (-4 to -11 %; backward ones below 280 us
// waited for the host), and so do 644 and 541 TFLOP/s with the mask at 8 k (NVIDIA/cudnn-frontend
// benchmark/sdpa_benchmark_training/results, h200_919, llama3.1). On the H200 heads of 80 and 96 took as long
// as heads of 128 forward, and 8 to 12 % less backward; heads of 192, whose values have as many, 18 to 40 %
// longer backward than predicted, heads of 256 11 % less forward and 6 to 19 % longer backward.
constexpr Row kHopper{
    .forward = {.share = 0.705, .start = 180}, .backward = {.share = 0.595, .start = 380}, .head_step = 64};
// cuDNN of mid-2024 (Shah et al. 2024, figures 5 and 6), heads of 128, 512 tokens to 16 k: without the mask
// 497, 574, 617, 609, 600 and 595 forward, 305, 408, 465, 499, 518 and 516 backward; 539 at 16 k with it,
// 5 % less than these constants give: kernels of 16 k tokens lose 4 % against those of 2 k without it too,
// which a clock that falls explains and no start. 582 without it at 8 k later that year
// (meta-pytorch/tritonbench pull request 141).
constexpr Row kFirstOnHopper{
    .forward = {.share = 0.63, .start = 100}, .backward = {.share = 0.572, .start = 380}, .head_step = 64};
// In 8 bits, of the 8-bit rate (the same paper, figure 7): 886, 864, 971 and 1,005 forward without the mask
// at 2 to 16 k. Backward as 16 bits are to that, with a start that takes as long.
constexpr Row kHopper8{
    .forward = {.share = 0.534, .start = 460}, .backward = {.share = 0.45, .start = 760}, .head_step = 64};
// A100: FlashAttention-2 at head size 128, 16 heads, 16 k tokens in all, causal: 0.52 of 312 TFLOP/s at 2 k
// tokens, 0.70 at 16 k; 0.41 and 0.60 backward; 0.73 and 0.63 at most without the mask (Dao 2023, abstract
// and figures 4-6; recalled). All six fit within 1.3 % with the longest tiles first, which stands for what
// two that share a unit gain from each other there; in order they are 4 % apart.
constexpr Row kA100{.forward = {.share = 0.747, .start = 310},
                    .backward = {.share = 0.658, .start = 480},
                    .head_step = kFlash2Heads,
                    .longest_first = true,
                    .splits = true};
// Chips whose kernels nobody timed, or of an unknown number of units: an A100's, with the wait for tiles in
// the start, since none is played.
constexpr Row kUnmeasured{.forward = {.share = 0.73, .start = 320},
                          .backward = {.share = 0.62, .start = 320}};
// Blackwell: cuDNN 9.19's training kernels, causal, 2 k to 32 k tokens, forward and backward
// (NVIDIA/cudnn-frontend benchmark/sdpa_benchmark_training/results, gb200_919 and gb300_919, llama3.1 and
// dsv3; compared in tests/workloads/attention_test.cpp). FlashAttention-4 on a GB200 agrees: 1,393 and 1,114
// TFLOP/s at 4 k with the mask (Dao-AILab/flash-attention pull request 2605); without it 1,540, 1,706, 1,796,
// 1,837 and 1,882 forward at 1 to 16 k, 7 to 9 % more than these constants give. TensorRT-LLM's prefill
// kernels differ, and no training library launches them. GB300 computes twice as many exponentials per clock.
constexpr double kTwoTiles = 256;  // of 128 queries pass over the keys of both (FlashAttention-4; recalled)
constexpr Row kBlackwellUltra{
    .forward = {.share = 0.873, .start = 175}, .backward = {.share = 0.651, .start = 525}, .rows = kTwoTiles};
constexpr Row kBlackwell{
    .forward = {.share = 0.736, .start = 225}, .backward = {.share = 0.63, .start = 625}, .rows = kTwoTiles};
// cuDNN 9.13, of NVIDIA's containers of September 2025, on a B200 and a GB300: 8 k to 32 k tokens, causal
// (benchmark/sdpa_benchmark_training/artifacts, bb37575d; below 8 k PyTorch's own calls are in the times).
// They are measurements of kernels, chosen with megatron-bridge's rows of 2025 in view, so these are no test.
constexpr Row kFirstOnBlackwellUltra{
    .forward = {.share = 0.768, .start = 825}, .backward = {.share = 0.556, .start = 800}, .rows = kTwoTiles};
constexpr Row kFirstOnBlackwell{
    .forward = {.share = 0.678, .start = 900}, .backward = {.share = 0.52, .start = 850}, .rows = kTwoTiles};
// The sweeps of 9.19 in fp8, relative to the fp8 rate.
constexpr Row kBlackwellUltra8{
    .forward = {.share = 0.653, .start = 200}, .backward = {.share = 0.381, .start = 425}, .rows = kTwoTiles};
constexpr Row kBlackwell8{
    .forward = {.share = 0.459, .start = 175}, .backward = {.share = 0.357, .start = 675}, .rows = kTwoTiles};
// On Blackwell heads of 64 numbers need as many exponentials as heads of 128 for half the products:
// FlashAttention-4, causal, 4 k: 902 of 1,393 TFLOP/s forward, 713 of 1,114 backward (same pull request).
constexpr double kNarrowHeads = 0.65;
// The same ratio for cuDNN's backward pass in 8 bits, which also computes the keys outside a window: 9.23 on
// a GB200, 256 heads of 64, 128 keys of 32 k seen, 91.5 ms in fp8 and 107 in MXFP8, the time that all keys
// before a token take at 962 and 822 TFLOP/s; 1.78 and 2.07 ms at 4 k
// (benchmark/sdpa_benchmark_training/results/gpt_oss/gb200, 20260529). Forward, and in 16 bits both ways,
// only the window is computed: 0.21 and 0.455 ms at 4 k.
constexpr double kNarrowHeads8Backward = 0.5;
// Forward their start is the same: cuDNN without a mask 979, 1,069, 1,113, 1,147 and 1,157 TFLOP/s at 1 to 16
// k, 32 heads (same pull request). With windows of 128 and 1,024 keys, which leave little else (gpt-oss at 4
// k in the sweeps of 9.19 and 9.23), a tile takes 551 to 601 keys more than its own, so that masking both
// edges costs 355. Backward they leave 332 to 438 keys for the start.
constexpr double kWindowStart = 355, kNarrowStartBackward = 370;

// FlashAttention-2 uses none of Hopper's instructions. PyTorch's build of it on an H100, 1 k to 32 k tokens,
// 8 to 128 heads of 128, with the mask and without, two tiles a unit forward (tests/golden/accelerator). Its
// authors' build on another H100 is 5 to 10 % faster (0.398 with 120 keys, 0.342 with 280; Shah et al. 2024,
// figures 5 and 6, 512 tokens to 16 k): forward with the mask 191, 260, 298, 319, 333 and 335 TFLOP/s,
// without it 309, 350, 362, 368, 370 and 370; backward without it 214, 260, 291, 310, 318 and 322.
constexpr Row kFlash2OnHopper{.forward = {.share = 0.38, .start = 120},
                              .backward = {.share = 0.327, .start = 400},
                              .head_step = kFlash2Heads,
                              .at_once = 2,
                              .splits = true};
// Heads of 64 in the same figures, at 16 k: 299 of 335 and 291 of 322. FlashAttention-3 has 473 of 616 and
// 474 of 561, cuDNN of 2024 388 of 539 and 433 of 516; cuDNN 9.19 0.71 and 0.81 (tests/golden/accelerator);
// the middle of both releases of cuDNN stands for Hopper.
constexpr double kFlash2NarrowForward = 0.89, kFlash2NarrowBackward = 0.90;
constexpr double kHopperNarrowForward = 0.715, kHopperNarrowBackward = 0.82;
// A B200 is no faster with it than an H100, 315, 352, 354 and 362 TFLOP/s forward at 1 to 8 k (heads of 128;
// meta-pytorch/tritonbench pull request 171), 281 to 334 backward at 1 to 16 k (heads of 64, no mask;
// Dao-AILab/flash-attention issue 1589): these are an H100's data sheet, of which the shares above are.
constexpr double kFlash2SheetOnBlackwell = 989.4e12;
// On chips with reduced product rates (H20) the products without wgmma are the limit, for heads of 64
// too, and one tile is enough to reach it: 83.7 TFLOP/s of 148 at 2 k tokens, 65.9 causal, 81.8 and 71.0 for
// heads of 64 (32 heads; Dao-AILab/flash-attention issue 1310).
constexpr Row kFlash2OnCutHopper{.forward = {.share = 0.673, .start = 240},
                                 .backward = {.share = 0.65, .start = 320},
                                 .head_step = kFlash2Heads};
// The first FlashAttention reached 30-50 % of an A100 forward and 25-35 % backward (Dao 2023, sections 1 and
// 3, recalled; its abstract says 25-40 % over all). On later parts it is scaled as version 2 is between them
// and an A100. Added after the predictions of MosaicML's rows were the faster the longer the sequence, so
// those rows are no test of it.
constexpr Row kFlash1{
    .forward = {.share = 0.40, .start = 310}, .backward = {.share = 0.30, .start = 310}, .head_step = 64};
constexpr Row kFlash1OnHopper{
    .forward = {.share = 0.19, .start = 310}, .backward = {.share = 0.15, .start = 310}, .head_step = 64};

// The rows below are shares of the best matrix product, for chips that a power limit or a boost clock moves
// away from the data sheet.
//
// FlashAttention-2 on an RTX 4090, 2 k tokens, heads of 128: 169.3 and 151.2 TFLOP/s forward (causal), 124.6
// and 99.2 backward (apache/tvm, tl_doc/flash_perf.md), of 163.1. An RTX 5090 agrees: 190.6, cuDNN 203.6, 4 k
// queries on 8 k keys at 400 W ("Writing Speed-of-Light Flash Attention for 5090", gau-nernst, as quoted by
// hckr.top). Its sm_120 has no tensor memory and takes Ada's path (pull requests 2329, 2592).
constexpr Row kAda{.forward = {.share = 1.0, .start = 0},
                   .backward = {.share = 0.876, .start = 300},
                   .head_step = kFlash2Heads,
                   .splits = true};
// RTX A5000, 111 TFLOP/s, heads of 64: 81.9 forward from 512 tokens to 8 k; 52.9 to 77.4 backward
// (gpu-mode/ring-attention issue 10). RTX 3090: 65.6 of 76.6 at 1 k (nshepperd/flash_attn_jax issue 5).
constexpr Row kGa102{.forward = {.share = 0.90, .start = 32},
                     .backward = {.share = 0.87, .start = 261},
                     .head_step = kFlash2Heads,
                     .splits = true};
// aiter's assembly kernels on MI300X and MI355X, causal, 1 k to 16 k tokens, 64 heads of queries
// (ROCm/aiter op_tests/cpp/mha/README.md@0403bcd: MI300X 440, 512, 545 TFLOP/s forward at 2, 4 and 8 k and
// 345, 400, 434 backward; MI355X 900, 1,175, 1,318 and 625, 715, 773), of 781.9 and 1,565. Backward with
// atomics in fp32, its libraries' default (recalled); in 16 bits 10 % and 40 % faster.
constexpr Row kCdna3{.forward = {.share = 0.762, .start = 225}, .backward = {.share = 0.602, .start = 275}};
constexpr Row kCdna4{.forward = {.share = 0.983, .start = 550}, .backward = {.share = 0.535, .start = 200}};
// CK's FlashAttention-2 on one die of an MI250X, heads of 64, without a mask, 512 tokens to 8 k: 73.7 to 87.6
// and 47.2 to 62.4 TFLOP/s (hiyouga/LlamaFactory issue 8793), of 147.
constexpr Row kCdna2{.forward = {.share = 0.61, .start = 110}, .backward = {.share = 0.43, .start = 177}};
// scaled_dot_product_attention launches AOTriton's kernels, compiled by Triton. Forward on an MI300X, causal,
// 16 sequences of 16 heads, 1 k to 16 k tokens: 164, 214, 257, 290 and 307 TFLOP/s
// (midiareshadi/attn-dsl-bench, results/raw/sweep_v1.csv@603819b, PyTorch 2.10, ROCm 7.2), where aiter has
// 225 to 494, 18 % less than kCdna3 at 8 k. On an MI355X 246, 422, 630 and 762 forward at 2 k to 16 k with
// the mask, 453, 579, 594, 822 and 873 at 1 k to 16 k without it; backward at 1 k to 16 k 110, 157, 143, 224
// and 259 with it, 220, 273, 301, 309 and 312 without (HipKittens' baselines: Vivicai1005/HipKittens
// analysis/attn/fwd/plot.py@e4102ff and bkwd/plot.py@d8ee979). Forward one rate and one start do not fit
// both: what the mask adds to a start was read from the difference, and the errors are -7 to +1 % without it
// but for +22 at 4 k, -8 to +6 % with it, -17 % for 64 heads (705 at 8 k). Backward the constants are those
// of the causal rows, of which the 143 stand alone (+41 %); without the mask they give 17 to 22 % less than
// measured. No sweep of an MI300X tells what the mask adds there, nor anything backward: it is given the
// MI355X's share of the best product. On an MI325X aiter's kernels take 47 % less time forward and 75 % less
// backward in Llama 3.1 70B (ROCm/rocm-blogs, primus-deep-dive, figure 1), where these rows give 47 and 73.
// From 2.9 on PyTorch's backward kernels are aiter's (AOTriton 0.11, pytorch pull request 161754), its
// forward ones not: `sdpa2026`.
constexpr Row kTritonOnCdna3{.forward = {.share = 0.408, .start = 300},
                             .backward = {.share = 0.17, .start = 500}};
constexpr Row kTritonOnCdna4{.forward = {.share = 0.61, .start = 1300, .mask = 1200},
                             .backward = {.share = 0.17, .start = 500}};
// CK's FlashAttention-2, flash-attn's default there. MI300X, no mask, 16 k tokens, 16 heads, 1 to 8
// sequences: 353, 356, 340 and 310 TFLOP/s forward, 194, 202, 205 and 207 backward (ROCm/flash-attention
// issue 142, ROCm 6.3). MI355X, 1 k to 16 k, 256 heads: 495, 611, 755, 844 and 903 forward with the mask,
// 761, 733, 810, 894 and 908 without it, 365, 428, 448, 470 and 470 backward without it (HipKittens' files
// above; its causal figures backward count the pairs that the mask hides). The starts are the MI355X's.
constexpr Row kCkOnCdna3{.forward = {.share = 0.47, .start = 350},
                         .backward = {.share = 0.272, .start = 300}};
constexpr Row kCkOnCdna4{.forward = {.share = 0.598, .start = 350},
                         .backward = {.share = 0.308, .start = 300}};

// Volta and Turing lack the instructions of FlashAttention-2 (it needs sm_80); frameworks launch CUTLASS'
// memory-efficient kernels. On a T4 kernels written for Turing reach 0.66 of the sheet, 2.19 times as much
// (Dao-AILab/flash-attention pull request 2379). Backward 0.63 to 0.75 of forward (issue 416).
constexpr Row kMemoryEfficient{.forward = {.share = 0.30, .start = 64},
                               .backward = {.share = 0.20, .start = 64}};

// What limits Hopper's kernels beside products, exponentials and other vector work, scales with the fp32 rate
// (44 against 67 TFLOP/s); on an H20 only products are reduced, to a seventh: 129.1 of its 148 TFLOP/s at 2 k
// tokens, 107.8 causal (issue 1310). The H100's figures: "attention" of accelerators.json.
struct Relative {       // to an H100
  double cut = 1;       // factor by which products are slower than the vector rate implies
  double per_unit = 1;  // rate of products per compute unit
};
Relative relative_to_reference(const topology::Accelerator& accelerator, double peak) {
  const auto& reference = accelerator.attention_reference;
  if (!reference) return {};
  Relative relative;
  const auto vector = accelerator.dense_flops.find("fp32"), product = accelerator.dense_flops.find("bf16");
  if (vector != accelerator.dense_flops.end() && product != accelerator.dense_flops.end())
    relative.cut =
        std::max(1.0, vector->second / reference->fp32.value() / (product->second / reference->bf16.value()));
  if (accelerator.compute_units > 0)
    relative.per_unit = peak / accelerator.compute_units * reference->compute_units / reference->bf16.value();
  return relative;
}

Row blackwell_row(bool ultra, AttentionKernel kernel, bool narrow) {
  if (narrow) return ultra ? kBlackwellUltra8 : kBlackwell8;
  if (kernel == AttentionKernel::flash2025) return ultra ? kFirstOnBlackwellUltra : kFirstOnBlackwell;
  return ultra ? kBlackwellUltra : kBlackwell;
}

FlashRates rates_of(const Row& row, double whole, double best) {
  // The highest share of a product's rate that the backward pass reaches.
  const double backward = row.backward.share / row.forward.share;
  return {.forward = {.rate = std::min(row.forward.share * whole, best),
                      .schedule = {.start = row.forward.start,
                                   .rows = row.rows,
                                   .at_once = row.at_once,
                                   .longest_first = row.longest_first,
                                   .splits = row.splits},
                      .mask_start = row.forward.mask,
                      .head_step = row.head_step},
          .backward = {.rate = std::min(row.backward.share * whole, best * std::min(1.0, backward)),
                       .schedule = {.start = row.backward.start, .longest_first = true},
                       .mask_start = row.backward.mask,
                       .head_step = row.head_step}};
}

FlashRates flash2_on_hopper(double whole, double best) {
  FlashRates rates = rates_of(kFlash2OnHopper, whole, best);
  rates.forward.at_64 = kFlash2NarrowForward, rates.backward.at_64 = kFlash2NarrowBackward;
  return rates;
}

FlashRates on_hopper(const topology::Accelerator& accelerator, AttentionKernel kernel, bool narrow,
                     const ProductRates& of) {
  const auto [cut, per_unit] = relative_to_reference(accelerator, of.peak);
  const double own_products = kFlash2OnCutHopper.forward.share * of.peak;
  if (kernel == AttentionKernel::flash1) return rates_of(kFlash1OnHopper, of.peak * cut, own_products);
  if (kernel == AttentionKernel::flash2) {
    if (kFlash2OnHopper.forward.share * of.peak * cut > own_products)
      return rates_of(kFlash2OnCutHopper, of.peak, own_products);
    return flash2_on_hopper(of.peak * cut, own_products);
  }
  // A start takes as long where products are slower, and so is worth fewer keys.
  Row row = narrow ? kHopper8 : kernel == AttentionKernel::flash2025 ? kFirstOnHopper : kHopper;
  for (Row::Pass* pass : {&row.forward, &row.backward}) pass->start *= std::min(1.0, per_unit);
  FlashRates rates = rates_of(row, of.peak * cut, of.best);
  rates.forward.at_64 = kHopperNarrowForward, rates.backward.at_64 = kHopperNarrowBackward;
  return rates;
}

// Shares of the best product; none: none of these stands for the chip.
std::optional<Row> row_of_best(const topology::Accelerator& accelerator, AttentionKernel kernel) {
  const int capability = accelerator.compute_capability;
  if (capability == topology::kAda || capability >= topology::kDesktopBlackwell) return kAda;
  if (capability == topology::kGa102) return kGa102;
  if (topology::is_nvidia(accelerator)) return {};
  const std::string_view name = accelerator.architecture;
  if (name == "CDNA2") return kCdna2;
  const bool older = name == "CDNA3";
  if (!older && name != "CDNA4") return {};
  const Row triton = older ? kTritonOnCdna3 : kTritonOnCdna4, aiter = older ? kCdna3 : kCdna4;
  if (kernel == AttentionKernel::sdpa) return triton;
  if (kernel == AttentionKernel::sdpa2026) return Row{.forward = triton.forward, .backward = aiter.backward};
  if (kernel == AttentionKernel::flash2 || kernel == AttentionKernel::flash1)
    return older ? kCkOnCdna3 : kCkOnCdna4;
  return aiter;
}
}  // namespace

Precision flash_units(const topology::Accelerator& accelerator, Precision precision) {
  if (bytes_of(precision) > 1) return precision;
  const bool has_kernels =
      topology::is_hopper(accelerator) || topology::is_data_center_blackwell(accelerator);
  return has_kernels ? Precision::fp8 : Precision::bf16;
}

FlashRates flash_rates(const topology::Accelerator& accelerator, AttentionKernel kernel, Precision units,
                       const ProductRates& of) {
  const bool blackwell = topology::is_data_center_blackwell(accelerator), narrow = bytes_of(units) == 1,
             halves = bytes_of(units) == 2;
  const std::optional<Row> of_best = row_of_best(accelerator, kernel);
  // PyTorch from 2.11 with a cuDNN past 9.15 (sdp_utils.cpp, check_prefer_cudnn_attention), and torchtitan
  // from late 2025 (ScaledDotProductAttentionWrapper puts it first), take cuDNN's on a Hopper too.
  if (kernel == AttentionKernel::sdpa2026) kernel = AttentionKernel::flash;
  if (kernel == AttentionKernel::sdpa)
    kernel = blackwell ? AttentionKernel::flash2025 : AttentionKernel::flash2;
  if (topology::is_hopper(accelerator)) return on_hopper(accelerator, kernel, narrow, of);
  if (topology::is_before_ampere(accelerator)) return rates_of(kMemoryEfficient, of.peak, of.best);
  if (kernel == AttentionKernel::flash1 && topology::is_from_ampere(accelerator) && !narrow)
    return blackwell ? rates_of(kFlash1OnHopper, halves ? kFlash2SheetOnBlackwell : of.peak, of.best)
                     : rates_of(kFlash1, of.peak, of.best);
  if (kernel == AttentionKernel::flash2 && blackwell && halves)
    return flash2_on_hopper(kFlash2SheetOnBlackwell, of.best);
  if (blackwell) {
    // Kernels were measured above the best product of the tile model.
    const bool ultra = accelerator.compute_capability >= topology::kBlackwellUltra;
    FlashRates rates = rates_of(blackwell_row(ultra, kernel, narrow), of.peak,
                                of.measured ? of.best : std::numeric_limits<double>::infinity());
    rates.forward.at_64 = kNarrowHeads;
    rates.backward.at_64 = narrow ? kNarrowHeads8Backward : kNarrowHeads;
    rates.forward.window_start = kWindowStart;
    if (!narrow) rates.backward.start_at_64 = kNarrowStartBackward;
    rates.sees_window_backward = !narrow;
    return rates;
  }
  if (of_best) return rates_of(*of_best, of.best, of.best);
  const bool like_a100 = topology::is_from_ampere(accelerator) && accelerator.compute_units > 0;
  return rates_of(like_a100 ? kA100 : kUnmeasured, of.peak, of.best);
}
}  // namespace topsim::workloads
