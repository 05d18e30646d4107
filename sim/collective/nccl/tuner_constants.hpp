// The measured constants in NCCL's cost model, and the fixed sizes of its channels. Source: NCCL 2.30
// src/graph/tuning.cc where nothing else is said.
// Times in microseconds, rates in GB/s. Rows of algorithms follow `Algorithm`, columns are LL, LL128, Simple.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "sim/collective/collective.hpp"

namespace topsim::collective::nccl {

using PerProtocol = std::array<double, 3>;
using PerAlgorithm =
    std::array<PerProtocol, 7>;  // tree, ring, collnet direct, collnet chain, NVLS, NVLS tree, PAT
[[nodiscard]] constexpr std::size_t row(Algorithm algorithm) {
  return static_cast<std::size_t>(algorithm);
}
[[nodiscard]] constexpr std::size_t row(Protocol protocol) {
  return static_cast<std::size_t>(protocol);
}
// REQUIRES: algorithm is NCCL's, of a collective.
[[nodiscard]] constexpr double of(const PerAlgorithm& table, Algorithm algorithm, Protocol protocol) {
  return table[row(algorithm)][row(protocol)];
}

inline constexpr PerAlgorithm kBaseLatency = {
    {{6.8, 14.0, 8.4}, {6.6, 14.0, 8.4}, {}, {}, {}, {}, {8.0, 8.0, 8.0}}};
inline constexpr PerAlgorithm kNvlinkLatency = {
    {{0.6, 1.25, 4.0}, {0.6, 1.9, 3.4}, {0, 0, 3.7}, {0, 0, 2.8}, {0, 0, 25}, {0, 0, 25}, {0, 0, 4.0}}};
inline constexpr PerAlgorithm kPcieLatency = {
    {{1.0, 1.9, 4.0}, {1.0, 2.5, 5.7}, {0, 0, 3.7}, {0, 0, 2.8}, {}, {}, {0, 0, 4.0}}};
inline constexpr PerAlgorithm kNetLatency = {
    {{5.0, 8.5, 14}, {2.7, 4.0, 14}, {0, 0, 31}, {0, 0, 30}, {0, 0, 18}, {0, 0, 20.9}, {0, 0, 14}}};

// Rows: Volta, Ampere, Hopper, Blackwell; what is not NVIDIA's (capability 0) is treated as Ampere.
constexpr std::size_t generation_of(int capability) {
  if (capability >= 100) return 3;
  if (capability >= 90) return 2;
  return capability >= 80 || capability == 0 ? 1 : 0;
}
// Columns: 1, 2, more nodes.
using PerGeneration = std::array<std::array<double, 3>, 4>;
// Of all channels together; with several nodes the row is the host's: 1 for AMD, 0 for others.
inline constexpr PerGeneration kLowLatencyMax = {
    {{39.0, 39.0, 20.4}, {87.7, 22.5, 19.0}, {141.0, 45.0, 35.0}, {282.0, 90.0, 70.0}}};
// Of one channel.
inline constexpr PerGeneration kRingLL128 = {{{20, 20, 20}, {20, 20, 20}, {36.7, 36.7, 36.7}, {40, 40, 40}}};
inline constexpr PerGeneration kTreeLL128 = {
    {{20, 20, 20}, {20, 20, 20}, {36.7, 36.7, 29}, {55.6, 31.67, 20}}};
inline constexpr PerGeneration kTreeSimple = {
    {{26.5, 18.5, 10.0}, {24.0, 23.6, 17.8}, {38.7, 41.4, 36.0}, {70.0, 42.8, 24.0}}};
inline constexpr PerGeneration kNvlsTree = {
    {{26.5, 18.5, 10.0}, {24.0, 23.6, 17.8}, {0, 57.7, 45.5}, {0, 96.0, 80.0}}};
// Share of the NVLinks that reduction in the switch reaches.
inline constexpr std::array<double, 4> kNvlsEfficiency = {0, 0, 0.85, 0.74};

// Shares of a graph's bandwidth that algorithms keep (ncclTopoTuneModel, busBw): rings over LL128, which
// carries 120 of 128 bytes; trees; trees whose graph is a tree in the box too; PAT; CollNet direct from
// Hopper on. Trees over LL keep one part of so many.
inline constexpr double kRingLL128Share = 0.92, kTreeShare = 0.92, kTreePatternShare = 0.85, kPatShare = 0.75,
                        kCollnetDirectShare = 0.85, kTreeLLPart = 3.8;
// Latencies (ncclTopoTuneModel): of CollNet direct for each other GPU of the box; of PAT for each rank,
// beside a part of the network's latency for each doubling of the nodes.
inline constexpr double kCollnetArity = 0.4, kPatPerRank = 2.8, kPatOverlap = 3.5;

// Trees deviate from the model at middle sizes: factor on their bandwidth by log2(bytes / 64).
inline constexpr std::array<std::array<double, 24>, 3> kTreeCorrection = {
    {{1, 1, 1, 1, .9, .8, .7, .7, .7, .7, .6, .5, .4, .4, .5, .6, .7, .8, .9, 1, 1, 1, 1, 1},
     {1, 1, 1, 1, 1, .9, .8, .8, .8, .7, .6, .6, .6, .6, .6, .6, .8, .9, .9, .9, .9, 1, 1, 1},
     {.9, .9, .9, .9, .9, .9, .9, .8, .7, .6, .6, .5, .5, .5, .5, .6, .7, .8, .7, .7, .8, .9, .9, .9}}};

// Posting one network operation, by host; three times for Simple.
[[nodiscard]] constexpr double net_overhead(bool amd_host) {
  return amd_host ? 2.0 : 1.0;
}

// Bytes a thread should have before another channel pays off, and threads of a channel (enqueue.cc,
// device.h).
inline constexpr std::array<int, 3> kThreadBytes = {8, 8, 64};
inline constexpr std::array<int, 3> kThreads = {512, 640, 512};
inline constexpr int kSlowRingThreads = 256;
// A tree has all threads (NCCL_MAX_NTHREADS) in every protocol. Some reduce upwards while the others
// broadcast downwards (all_reduce.h, runTreeSplit: with LL and LL128 448 and 192), half of them in the mean.
inline constexpr int kTreeThreads = 640;
// NCCL_MAX_NVLS_ARITY: NVLS gathers and scatters in boxes of so many at most (enqueue.cc).
inline constexpr int kNvlsGatherRanks = 32;

// NCCL_STEPS (device.h): the slots of a channel's buffer, and so the most chunks in flight on a connection.
inline constexpr int kSlots = 8;
// P2P_LL_THRESHOLD (enqueue.cc): sends and receives use LL up to so many bytes on each channel of a pair.
inline constexpr std::int64_t kPointToPointLL = 16 << 10;
}  // namespace topsim::collective::nccl
