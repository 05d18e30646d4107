// The sizes of the chunks in which NCCL's channels move bytes, and who sets them: the job, the network plugin
// or NCCL. Source: NCCL 2.30 enqueue.cc, calcCollChunking.
#include "sim/collective/chunks.hpp"

#include <gtest/gtest.h>

#include "sim/collective/placement.hpp"
#include "tests/collective/lowering_fixtures.hpp"

namespace topsim::collective::chunks_test {

using namespace fixtures;
using nccl::BufferSizes;
using nccl::CommunicatorFacts;

constexpr std::int64_t kKiB = 1 << 10, kMiB = 1 << 20, kGiB = 1 << 30;

CommunicatorFacts eight_heads(int nodes, const BufferSizes& asked) {
  CommunicatorFacts facts;
  facts.nodes = nodes;
  facts.ranks = 8 * nodes;
  facts.nvls_graph.channels = 8;
  facts.buffers = asked.otherwise(nccl::default_buffers(nodes));
  return facts;
}

std::int64_t of_nvls(std::int64_t bytes, const CommunicatorFacts& facts) {
  return chunk_bytes(CollectiveKind::all_reduce, Algorithm::nvls, Protocol::simple, 16, bytes, facts);
}

std::int64_t of_nvls_tree(std::int64_t bytes, const CommunicatorFacts& facts) {
  return chunk_bytes(CollectiveKind::all_reduce, Algorithm::nvls_tree, Protocol::simple, 24, bytes, facts);
}

// NVLS: in one round each of 16 channels moves one chunk for each of 8 heads, 128 chunks. A chunk size is
// used from a least number of its rounds on, else the next smaller one:
//   128 KiB from 64 rounds: 64 x 128 x 128 KiB = 1 GiB (512 KiB, by NCCL_NVLS_CHUNKSIZE: 4 GiB)
//   64 KiB from 8 rounds: 64 MiB; 32 KiB from 2 rounds: 8 MiB; below that 16 KiB
// There is no step between 64 KiB and the size that NCCL_NVLS_CHUNKSIZE sets.
TEST(Chunks, OfSumsInTheNvswitchGrowWithTheBytes) {
  const CommunicatorFacts own = eight_heads(1, {}), larger = eight_heads(1, {0, 512 * kKiB, 0});
  EXPECT_EQ(of_nvls(kGiB, own), 128 * kKiB);
  EXPECT_EQ(of_nvls(kGiB - 1, own), 64 * kKiB);
  EXPECT_EQ(of_nvls(64 * kMiB - 1, own), 32 * kKiB);
  EXPECT_EQ(of_nvls(8 * kMiB - 1, own), 16 * kKiB);
  EXPECT_EQ(of_nvls(4 * kGiB, larger), 512 * kKiB);
  EXPECT_EQ(of_nvls(4 * kGiB - 1, larger), 64 * kKiB);
  EXPECT_EQ(of_nvls(8 * kMiB - 1, larger), 16 * kKiB);
  EXPECT_EQ(of_nvls(kGiB, eight_heads(1, {0, 32 * kKiB, 0})), 32 * kKiB);
}

// NVLSTree: a round has 24 channels x 8 heads = 192 chunks. 512 KiB are used from 32 rounds on (3 GiB),
// 256 KiB from 16 (768 MiB), 128 KiB from 4 (96 MiB), 64 KiB from one (12 MiB), else 32 KiB.
TEST(Chunks, OfSumsOverBoxesGrowStepByStep) {
  const CommunicatorFacts two = eight_heads(2, {0, 512 * kKiB, 0});
  EXPECT_EQ(of_nvls_tree(3 * kGiB, two), 512 * kKiB);
  EXPECT_EQ(of_nvls_tree(3 * kGiB - 1, two), 256 * kKiB);
  EXPECT_EQ(of_nvls_tree(768 * kMiB - 1, two), 128 * kKiB);
  EXPECT_EQ(of_nvls_tree(96 * kMiB - 1, two), 64 * kKiB);
  EXPECT_EQ(of_nvls_tree(12 * kMiB - 1, two), 32 * kKiB);
  EXPECT_EQ(of_nvls_tree(3 * kGiB, eight_heads(2, {})), 128 * kKiB);
  // From four boxes on NCCL's largest chunk is 64 KiB, unless NCCL_NVLSTREE_MAX_CHUNKSIZE sets another.
  EXPECT_EQ(of_nvls_tree(3 * kGiB, eight_heads(4, {0, 512 * kKiB, 0})), 64 * kKiB);
  EXPECT_EQ(of_nvls_tree(3 * kGiB, eight_heads(4, {0, 512 * kKiB, 512 * kKiB})), 512 * kKiB);
}

// A channel's buffer (NCCL_BUFFSIZE) has eight slots. A ring's chunk takes four, a tree's one.
TEST(Chunks, OfRingsAreHalfABufferAndOfTreesASlot) {
  for (const std::int64_t buffer : {4 * kMiB, 8 * kMiB}) {
    const CommunicatorFacts facts = eight_heads(2, {buffer, 0, 0});
    const auto chunk = [&](Algorithm algorithm) {
      return chunk_bytes(CollectiveKind::all_reduce, algorithm, Protocol::simple, 16, kGiB, facts);
    };
    EXPECT_EQ(chunk(Algorithm::ring), buffer / 2);
    EXPECT_EQ(chunk(Algorithm::tree), buffer / 8);
  }
}

// LL128 has 120 numbers of 8 bytes for each of 640 threads in eight slots: 614,400 bytes a slot, of which 15
// of 16 are payload. A tree's chunk is halved while it makes too few loops: here (2 boxes of 8, 16 channels,
// depth 1 + 1 + 0.8) below 22.4 of them, and while it is above 128 KiB.
TEST(Chunks, OfLL128CarryFifteenSixteenthsOfASlot) {
  const CommunicatorFacts facts = eight_heads(2, {});
  const auto chunk = [&](Algorithm algorithm, std::int64_t bytes) {
    return chunk_bytes(CollectiveKind::all_reduce, algorithm, Protocol::ll128, 16, bytes, facts);
  };
  EXPECT_EQ(chunk(Algorithm::ring, kMiB), 576'000);
  EXPECT_EQ(chunk(Algorithm::tree, kGiB), 576'000);
  EXPECT_EQ(chunk(Algorithm::tree, 16 * 576'000 * 22), 288'000);
}

// All 640 threads of a channel work in a tree: with LL and LL128 448 reduce upwards and 192 broadcast
// downwards, so a pass moves 3,584 and 1,536 bytes with LL, 26,880 and 11,520 with LL128. A ring's 512 (LL)
// and 640 threads move all of a pass.
TEST(Chunks, APassOfATreeIsTheMeanOfBothDirections) {
  const auto pass = [](Algorithm algorithm, Protocol protocol) {
    Choice choice;
    choice.algorithm = algorithm, choice.protocol = protocol;
    return piece_bytes(choice, 0, 1e9);
  };
  EXPECT_EQ(pass(Algorithm::tree, Protocol::ll), (3'584 + 1'536) / 2);
  EXPECT_EQ(pass(Algorithm::tree, Protocol::ll128), (26'880 + 11'520) / 2);
  EXPECT_EQ(pass(Algorithm::ring, Protocol::ll), 512 * 8);
  EXPECT_EQ(pass(Algorithm::ring, Protocol::ll128), 640 * 60);
}

// AWS's network plugin sets buffer and chunk sizes on P5, unless the job does. The settings of one job must
// not appear in the next, though both share the cache of searches.
TEST(Chunks, AreWhatTheJobSetsElseThePluginElseNccls) {
  const Cluster p5(boxes("p5", 2, "efa-100g")), alone(boxes("p5", 1)), a4(boxes("gcp-a4-highgpu-8g", 1)),
      dgx(boxes("dgx-h100", 2));
  const auto searches = no_searches_yet();
  const auto buffers = [&](const Cluster& cluster, const Overrides& overrides) {
    const Placer placer(cluster.router, overrides, searches);
    return placer.place(cluster.topology.accelerators()).tuner->facts().buffers;
  };
  EXPECT_EQ(buffers(p5, {}), (BufferSizes{8 * kMiB, 512 * kKiB, 512 * kKiB}));
  EXPECT_EQ(buffers(alone, {}), buffers(p5, {}));  // loaded without cables, too
  EXPECT_EQ(buffers(a4, {}).nvls_chunk, 512 * kKiB);
  for (const char* node : {"g5-48xlarge", "g6-48xlarge", "g6e-48xlarge"}) {  // not in the plugin's table
    const Cluster g(boxes(node, 2, "efa-100g"));
    EXPECT_EQ(buffers(g, {}), nccl::default_buffers(2)) << node;
  }
  EXPECT_EQ(buffers(Cluster(boxes("gcp-a3-megagpu-8g", 2, "tcpxo-200g")), {}).buffer, 8 * kMiB);
  Overrides asked;
  asked.nvls_chunksize = Bytes(256 * kKiB);
  EXPECT_EQ(buffers(p5, asked), (BufferSizes{8 * kMiB, 256 * kKiB, 512 * kKiB}));
  EXPECT_EQ(buffers(dgx, asked).nvls_chunk, 256 * kKiB);
  EXPECT_EQ(buffers(dgx, {}), nccl::default_buffers(2));
}

}  // namespace topsim::collective::chunks_test
