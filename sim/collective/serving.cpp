#include "sim/collective/serving.hpp"

namespace topsim::collective {
namespace {
using nccl::CommunicatorFacts;

// vLLM's all-reduce (csrc/custom_all_reduce.cuh; distributed/device_communicators/custom_all_reduce.py): 2,
// 4, 6 or 8 GPUs of one box that all reach each other over NVLink, below 8 MiB; one shot for two GPUs, for up
// to four below 512 KiB, for up to eight below 256 KiB. SGLang uses the same kernel or TensorRT-LLM's, which
// changes at 1 and 0.5 MB (plugins/ncclPlugin/allreducePlugin.cpp; recalled). 36 blocks.
constexpr std::int64_t kServingMost = 8 << 20, kOneShotOfFour = 512 << 10, kOneShotOfEight = 256 << 10;
constexpr std::uint16_t kServingBlocks = 36;
// Its share of the tuner's NVLink rate: sgl-project/sglang pull request 2904, H100, fp32, from 1 to 4 MiB on
// 2, 4 and 8 GPUs: vLLM's kernel 230, 241, 263 GB/s and TensorRT-LLM's 262, 274, 322, of 370.8. Start and
// step times are LL's, since these kernels use flags and polling too. Not fitted: 2 KiB on 2, 4 and 8 GPUs,
// measured 3.7, 4.8 and 5.9 us, take 5.4 here.
constexpr double kServingShare = 0.7;
}  // namespace

std::optional<Choice> serving_choice(CollectiveKind kind, std::int64_t bytes,
                                     const CommunicatorFacts& facts) {
  const int n = facts.ranks;
  const bool nvlink = facts.ring.type_intra <= nccl::PathType::nvl && facts.min_capability > 0;
  const bool joined = nvlink && (n == 2 || facts.nvswitch || facts.mesh);
  if (kind != CollectiveKind::all_reduce || facts.nodes > 1 || !joined || n % 2 != 0 || n > 8 ||
      bytes >= kServingMost)
    return std::nullopt;
  const bool one = n == 2 || bytes < (n <= 4 ? kOneShotOfFour : kOneShotOfEight);
  Choice choice;
  choice.algorithm = one ? Algorithm::one_shot : Algorithm::two_shot;
  choice.channels = kServingBlocks;
  return choice;
}

Timing time_serving(const Choice& choice, const nccl::Tuner& tuner) {
  const CommunicatorFacts& facts = tuner.facts();
  const bool one = choice.algorithm == Algorithm::one_shot;
  const double n = facts.ranks;
  Choice flags;
  flags.protocol = Protocol::ll;
  const StepTiming step = time_steps(CollectiveKind::broadcast, flags, tuner, {}, {}, {});
  Timing t;
  t.latency = step.start + (one ? 1 : 2) * step.inside;
  t.wire = one ? n / 2 : 1;  // relative to what an exchange of n-ths and of sums carries
  t.cap = kServingShare * facts.nvlink_bandwidth * 1e9 / (t.wire * 2 * (n - 1) / n);
  return t;
}
}  // namespace topsim::collective
