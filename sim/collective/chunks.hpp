// The pieces in which NCCL's channels move bytes; their times are elsewhere.
#pragma once

#include <cstdint>

#include "sim/collective/collective.hpp"
#include "sim/collective/nccl/communicator.hpp"

namespace topsim::collective {

// Bytes that one channel moves per step of its pipeline. Facts: NCCL 2.30 enqueue.cc, device.h.
[[nodiscard]] std::int64_t chunk_bytes(CollectiveKind kind, Algorithm algorithm, Protocol protocol,
                                       int channels, std::int64_t bytes,
                                       const nccl::CommunicatorFacts& facts);

// What a channel of a pipeline (tree, broadcast, reduction) forwards at a time. Simple: its chunk; LL and
// LL128: what the threads at work move in one pass (8 and 60 bytes of payload a thread; device code of NCCL
// 2.30), in a tree the mean of what its threads for either direction move. A very large share of a
// channel in larger pieces: nobody waits for them.
[[nodiscard]] double piece_bytes(const Choice& choice, double share, double chunk);
}  // namespace topsim::collective
