#include "sim/collective/serving.hpp"

#include <algorithm>
#include <array>
#include <span>

#include "sim/collective/nccl/rccl.hpp"
#include "topology/generation.hpp"

namespace topsim::collective {
namespace {
using nccl::CommunicatorFacts;

// vLLM's all-reduce (csrc/custom_all_reduce.cuh; distributed/device_communicators/custom_all_reduce.py): 2,
// 4, 6 or 8 GPUs of one box that all reach each other over NVLink, below 8 MiB; one shot for two GPUs, for up
// to four below 512 KiB, for up to eight below 256 KiB. SGLang uses the same kernel or TensorRT-LLM's, which
// changes at 1 and 0.5 MB (plugins/ncclPlugin/allreducePlugin.cpp; recalled). 36 blocks. On AMD's chips from
// MI300X on (platforms/rocm.py, use_custom_all_reduce; recalled), over Infinity Fabric, eight GPUs take one
// shot up to 64 KiB; 16 blocks, which vLLM has there up to 256 KiB, stand for all sizes (vllm-project/vllm
// pull request 39080, what it replaces).
constexpr std::int64_t kServingMost = 8 << 20, kOneShotOfFour = 512 << 10, kOneShotOfEight = 256 << 10,
                       kOneShotOfEightAmd = (64 << 10) + 1;
constexpr std::uint16_t kServingBlocks = 36, kServingBlocksAmd = 16;

// Behind an NVSwitch that multicasts, PyTorch's kernels of symmetric memory follow from the sizes on at which
// vLLM found them faster, and give way to NCCL (all_reduce_utils.py, CUSTOM_ALL_REDUCE_MAX_SIZES and
// SYMM_MEM_ALL_REDUCE_MAX_SIZES; symm_mem.py, _WORLD_SIZES_MULTIMEM). 24 blocks (CUDASymmetricMemoryOps.cu;
// recalled).
constexpr std::int64_t kKiB = 1 << 10, kMiB = 1 << 20;
constexpr std::uint16_t kSymmetricBlocks = 24;
struct SymmetricMemory {
  int ranks;
  std::int64_t from, below;  // bytes
  bool multimem;             // else two shots
};
constexpr std::array kOnHopper{
    SymmetricMemory{2, kServingMost, 64 * kMiB, false}, SymmetricMemory{4, kServingMost, 32 * kMiB, true},
    SymmetricMemory{6, 512 * kKiB, 64 * kMiB, true}, SymmetricMemory{8, 256 * kKiB, 64 * kMiB, true}};
constexpr std::array kOnBlackwell{
    SymmetricMemory{2, 2 * kMiB, 8 * kMiB, false}, SymmetricMemory{4, 2 * kMiB, 32 * kMiB, false},
    SymmetricMemory{6, kMiB, 128 * kMiB, true}, SymmetricMemory{8, kMiB, 128 * kMiB, true}};
// The same project's pull request 37756.
constexpr std::array kOnBlackwellUltra{
    SymmetricMemory{2, 4 * kMiB, 4 * kMiB, false}, SymmetricMemory{4, 4 * kMiB, 32 * kMiB, false},
    SymmetricMemory{6, kServingMost, 32 * kMiB, true}, SymmetricMemory{8, 4 * kMiB, 64 * kMiB, true}};

std::optional<SymmetricMemory> symmetric_memory(const CommunicatorFacts& facts) {
  const int chip = facts.min_capability;
  if (!facts.nvswitch || !facts.nvls || facts.max_capability != chip) return std::nullopt;
  const auto of_ranks = [&](std::span<const SymmetricMemory> table) -> std::optional<SymmetricMemory> {
    const auto found = std::ranges::find(table, facts.ranks, &SymmetricMemory::ranks);
    return found == table.end() ? std::nullopt : std::optional(*found);
  };
  return chip == topology::kHopper           ? of_ranks(kOnHopper)
         : chip == topology::kBlackwell      ? of_ranks(kOnBlackwell)
         : chip == topology::kBlackwellUltra ? of_ranks(kOnBlackwellUltra)
                                             : std::nullopt;
}

// What a kernel's start and a second shot take, and what a shot reaches of the links.
struct Kernels {
  Microseconds start, second;
  double one_shot = 0, two_shots = 0;
};
// NVIDIA: starts as an LL step, since these kernels use flags and polling too. The share of the tuner's
// NVLink rate is from sgl-project/sglang pull request 2904, H100, fp32, 1 to 4 MiB on 2, 4 and 8 GPUs: vLLM's
// kernel 230, 241, 263 GB/s and TensorRT-LLM's 262, 274, 322, of 370.8. What a second shot costs, from where
// the lines through these times begin: TensorRT-LLM's 3.4 us (8.2 beside 4.8) and 5.1 (11.0 beside 5.9) on 4
// and 8 GPUs, vLLM's 7.0 (11.9 beside 4.9) on 6 H100 (vLLM pull request 24111): their mean. Not fitted: 2 KiB
// on 2, 4 and 8 GPUs, measured 3.7, 4.8 and 5.9 us, take 5.4 here. Blackwells run the same kernels and are
// taken to start them as Hopper does: NCCL's start there, 9.0 us with a step, holds what only NCCL does.
constexpr double kSecondShot = 5.2, kServingShare = 0.7;
// AMD: vLLM's kernel on 8 MI355X (the same pull request 39080, before its change). 24 and 48 KiB in 6.3
// and 6.7 us begin at 5.9 and would need more than the links' 399 GB/s: 0.8 is assumed, with which they read
// +2 and +4 %. 192 KiB and 1.5 MiB in two shots, 10.0 and 24.2 us, give the rest. Not fitted: 96, 384 and 768
// KiB in 7.6, 13.1 and 16.0 us. MI300X and MI325X are taken to have the same shares of their links.
constexpr Kernels kOnAmd{Microseconds(5.9), Microseconds(2.1), 0.8, 0.43};
// Kernels of symmetric memory have no figures of their own: two barriers around what they move, as two shots,
// and the same share of the links, copies from and to the engine's tensors included. What vLLM measured (pull
// requests 24111, 42324, 24532; tests/collective/serving_test.cpp) was seen before this was chosen.
}  // namespace

std::optional<Choice> serving_choice(CollectiveKind kind, std::int64_t bytes,
                                     const CommunicatorFacts& facts) {
  const int n = facts.ranks;
  const bool amd = nccl::joins_cdna3_or_later(facts);
  const bool linked = facts.ring.type_intra <= nccl::PathType::nvl && (facts.min_capability > 0 || amd);
  const bool joined = linked && (n == 2 || facts.nvswitch || facts.mesh);
  if (kind != CollectiveKind::all_reduce || facts.nodes > 1 || !joined || n % 2 != 0 || n > 8)
    return std::nullopt;
  const auto symmetric = symmetric_memory(facts);
  if (bytes >= (symmetric ? symmetric->from : kServingMost)) {
    if (!symmetric || bytes >= symmetric->below) return std::nullopt;
    return Choice{symmetric->multimem ? Algorithm::multimem : Algorithm::two_shot, Protocol::simple,
                  kSymmetricBlocks};
  }
  const std::int64_t of_eight = amd ? kOneShotOfEightAmd : kOneShotOfEight;
  const bool one = n == 2 || bytes < (n <= 4 ? kOneShotOfFour : of_eight);
  Choice choice;
  choice.algorithm = one ? Algorithm::one_shot : Algorithm::two_shot;
  choice.channels = amd ? kServingBlocksAmd : kServingBlocks;
  return choice;
}

bool is_serving(Algorithm algorithm) {
  return algorithm == Algorithm::one_shot || algorithm == Algorithm::two_shot ||
         algorithm == Algorithm::multimem;
}

Timing time_serving(const Choice& choice, const nccl::Tuner& tuner) {
  const CommunicatorFacts& facts = tuner.facts();
  const bool one = choice.algorithm == Algorithm::one_shot;
  const double n = facts.ranks;
  double links = facts.nvlink_bandwidth;
  Kernels kernels = kOnAmd;
  if (nccl::joins_cdna3_or_later(facts)) {
    links = facts.ring.bandwidth_intra * facts.ring.channels;
  } else {
    kernels = {low_latency_step(std::min(facts.min_capability, topology::kHopper)), Microseconds(kSecondShot),
               kServingShare, kServingShare};
  }
  Timing t;
  t.latency = one ? kernels.start : kernels.start + kernels.second;
  if (choice.algorithm == Algorithm::multimem) {
    t.cap = kernels.two_shots * links * 1e9 / (1 + 1 / n);
    return t;
  }
  t.wire = one ? n / 2 : 1;  // relative to what an exchange of n-ths and of sums carries
  t.cap = (one ? kernels.one_shot : kernels.two_shots) * links * 1e9 / (t.wire * 2 * (n - 1) / n);
  return t;
}
}  // namespace topsim::collective
