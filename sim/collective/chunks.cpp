#include "sim/collective/chunks.hpp"

#include <algorithm>

#include "sim/collective/nccl/tuner_constants.hpp"

namespace topsim::collective {

std::int64_t chunk_bytes(CollectiveKind kind, Algorithm algorithm, Protocol protocol, int channels,
                         std::int64_t bytes, const nccl::CommunicatorFacts& facts) {
  const std::int64_t slot = (protocol == Protocol::ll      ? 512 << 10
                             : protocol == Protocol::ll128 ? 4800 << 10
                                                           : facts.buffers.buffer) /
                            nccl::kSlots;
  if (algorithm == Algorithm::nvls || algorithm == Algorithm::nvls_tree) {
    const std::int64_t round = static_cast<std::int64_t>(channels) * std::max(1, facts.nvls_graph.channels);
    // The largest chunk; smaller where the bytes are fewer than so many rounds of it.
    std::int64_t chunk = std::min(facts.buffers.nvls_chunk, slot);
    const auto shrink = [&](std::int64_t rounds, std::int64_t least) {
      if (bytes < rounds * round * chunk) chunk = std::min(chunk, least);
    };
    if (algorithm == Algorithm::nvls) {
      shrink(64, 64 << 10);
      shrink(8, 32 << 10);
      shrink(2, 16 << 10);
    } else {
      chunk = std::min(facts.buffers.nvls_chunk, facts.buffers.nvls_tree_most);
      shrink(32, 256 << 10);
      shrink(16, 128 << 10);
      shrink(4, 64 << 10);
      shrink(1, 32 << 10);
    }
    return chunk;
  }
  if (protocol == Protocol::ll) return slot / 2;  // half are flags
  if (protocol == Protocol::ll128) {
    std::int64_t chunk = slot / 16 * 15;  // 8 of 128 bytes are flags
    if (algorithm == Algorithm::tree) {
      const double local = static_cast<double>(facts.ranks) / facts.nodes;
      const double depth = 1 + nccl::log2_floor(facts.nodes) + 0.1 * local;
      const auto loops = [&] { return static_cast<double>(bytes / (channels * chunk)); };
      while (loops() < depth * 64 / local && chunk > 128 << 10) chunk /= 2;
      while (loops() < depth * 16 / local && chunk > 32 << 10) chunk /= 2;
    }
    return chunk;
  }
  const bool ring = algorithm == Algorithm::ring;
  const bool half_buffer = ring && !rooted(kind);  // a chunk takes four slots, in two slices
  return half_buffer ? 4 * slot : slot;
}

double piece_bytes(const Choice& choice, double share, double chunk) {
  constexpr double kMostPieces = 512;
  if (choice.protocol == Protocol::simple) return chunk;
  const double threads = choice.algorithm == Algorithm::tree ? nccl::kTreeThreads / 2.0
                                                             : nccl::kThreads[nccl::row(choice.protocol)];
  const double pass = threads * (choice.protocol == Protocol::ll ? 8 : 60);
  return std::min(chunk, std::max(pass, share / kMostPieces));
}
}  // namespace topsim::collective
