// Reductions in the NVSwitch: rounds of chunks, and the delay before the first result.
#include "sim/collective/time_nvls.hpp"

#include <algorithm>
#include <array>
#include <bit>

#include "sim/collective/chunks.hpp"
#include "sim/collective/nccl/tuner_constants.hpp"

namespace topsim::collective {
namespace {

// "Sweeps" are the measurements listed in time_model.cpp; GPU generations: Volta, Ampere, Hopper, Blackwell.

// Reduction in the NVSwitch reaches this share of the NVLinks at its traffic of 1 + 1/heads: slope of
// all-reduce from 256 to 512 MiB on 8 GPUs, Hopper 263 GB/s of 370.8, Blackwell 433 of 721.8.
constexpr std::array<double, 4> kNvlsShare = {0, 0, 0.80, 0.675};
// It works in rounds: every channel moves one chunk of every head. A round of small chunks takes longer than
// its bytes: slopes between the sizes that use one chunk size, relative to 64 KiB. H100: 0.66 (16 KiB), 0.80
// (32 KiB); B200: 0.53, 0.56-0.70. Not fitted: p5 (H100) 0.67, 0.83; H200 0.69, 0.81. Larger chunks are used
// from 64 of their rounds on, beyond those sweeps: from 8 to 16 GiB p5 reaches a slope of 486 GB/s of bus
// bandwidth with chunks of 512 KiB, where the share above gives 460, and B200 (GKE) 851 where it gives 758.
// Chunks of 128 KiB reach the same; not fitted: H200 487, GB200 of two trays 849. The extra time does not
// depend on the bytes: in a domain of more heads than the sweeps' boxes a round carries more bytes for the
// same extra time.
double nvls_chunk_share(std::int64_t chunk, double heads, std::size_t generation) {
  // For chunks of 16, 32, 64 and 128 KiB or more; Hopper, Blackwell.
  constexpr std::array<std::array<double, 4>, 2> kShares = {{{0.66, 0.80, 1, 1.056}, {0.53, 0.63, 1, 1.123}}};
  const auto of_16_kib = static_cast<std::uint64_t>(std::clamp<std::int64_t>(chunk >> 14, 1, 8));
  const double share = kShares.at(generation == 3 ? 1 : 0).at(std::bit_width(of_16_kib) - 1);
  constexpr double kMostHeads = 8;  // of the boxes in the sweeps
  return heads <= kMostHeads ? share : 1 / (1 + (1 / share - 1) * kMostHeads / heads);
}
// NVLSTree also sends up and down between boxes, with threads of the same channels: from 8 to 16 GiB two
// boxes of H100 (OCI) have a slope of 252 GB/s and two of H200 (Nebius) 258, where one box in chunks of 64
// KiB has 264. Not fitted: GB200, two domains of 64, 429 of 472.
constexpr double kNvlsTreeShare = 0.96;
// The first result comes after the start of a Simple kernel and the rounds that fill the three stages
// (scatter, reduce and gather) at the full rate: the intercepts at zero bytes of the lines through the sizes
// that use one chunk size, less the start. H100: 10, 22 and 54 us for 16, 32 and 64 KiB, that is 1.3, 1.4 and
// 1.7 rounds; B200 2.9, 1.2 and 2.5. The tuner's 25 us stands for both.
constexpr std::array<double, 4> kNvlsFill = {1.5, 1.5, 1.5, 2};

// How many times a round of chunks passes a NIC while the pipeline fills, one level after another, up and
// down. With sums in the fabric's switches a whole round goes up and comes back. NVLSTree's two trees have
// every other channel each (NCCL 2.30 graph/connect.cc, connectNvls: treeUp[c % 2]), so each child of a box
// brings half a round. A root has one child (graph/trees.cc), other inner boxes have two, of three boxes one.
double rounds_through_nics(Algorithm algorithm, int nodes, double levels) {
  if (algorithm != Algorithm::nvls_tree) return levels;
  return nodes < 4 ? levels / 2 : levels - 1;
}

}  // namespace

void sum_in_switches(CollectiveKind kind, const Choice& choice, std::int64_t bytes, const nccl::Tuner& tuner,
                     Microseconds start, double levels, Timing& t) {
  const nccl::CommunicatorFacts& facts = tuner.facts();
  const std::size_t gpu = nccl::generation_of(facts.min_capability);
  const double s = static_cast<double>(bytes);
  const double heads = std::max(1, facts.nvls_graph.channels);
  if (kind == CollectiveKind::all_reduce)
    t.cap = facts.nvlink_bandwidth * 1e9 * kNvlsShare[gpu] / (1 + 1 / heads);
  // Unregistered buffers pass through a channel's threads, at the rate of one SM (NCCL issues 689 and 1649);
  // NCCL's own number of channels reaches the peak.
  t.cap *= std::min(
      1.0, choice.channels / static_cast<double>(tuner.channels(choice.algorithm, choice.protocol, bytes)));
  const std::int64_t chunk =
      chunk_bytes(kind, choice.algorithm, choice.protocol, choice.channels, bytes, facts);
  const double round = std::min(s, static_cast<double>(choice.channels) * heads * static_cast<double>(chunk));
  double fill = kNvlsFill[gpu] * round / t.cap;
  // Between boxes every level of the tree is one more stage, up and down, at the rate of the NICs.
  if (facts.nodes > 1) {
    const double nics = facts.nvls_graph.bandwidth_inter * 1e9 * heads;
    fill = kNvlsFill[gpu] * round / std::min(t.cap, nics) +
           rounds_through_nics(choice.algorithm, facts.nodes, levels) * round / nics;
  }
  t.latency += start + Microseconds(fill * 1e6);
  // NVLSTree gains nothing from chunks above 64 KiB.
  t.cap *= facts.nodes > 1 && choice.algorithm == Algorithm::nvls_tree
               ? kNvlsTreeShare * std::min(1.0, nvls_chunk_share(chunk, heads, gpu))
               : nvls_chunk_share(chunk, heads, gpu);
}
}  // namespace topsim::collective
