// The rate of a ring over one edge, and how long its links wait for its own copies.
#pragma once

#include <cstddef>

#include "sim/collective/collective.hpp"
#include "sim/collective/nccl/communicator.hpp"

namespace topsim::collective {

// The share of its cables' rate that a NIC reaches, from perftest: 196 of 198.5 Gbit/s (HDR, Azure), 96.6 of
// 99.4 (EDR). Not fitted: ten H100 with an NDR NIC each 48.8 GB/s of 49.6, all-to-alls of two boxes of
// eight 48.9, 4090s on PCIe 4 25.3 of 25.5.
inline constexpr double kNicShare = 0.985;

// GB/s over an edge of a ring, as limited by threads and NVLink, and by its wires; 0: not known, no
// limit.
struct RingRates {
  double threads = 0, wire = 0, own_copy = 0;
};
// `gpu`: the generation (nccl::generation_of).
[[nodiscard]] RingRates ring_rates(const Choice& choice, const nccl::CommunicatorFacts& facts,
                                   std::size_t gpu);

// Of the bytes that a rank copies without sending them, the share that its links wait for; `loop`: bytes of
// one chunk of each rank on each channel.
[[nodiscard]] double exposed_share(double bytes, double loop);

// GB/s of a GPU whose hops go through host memory: NCCL's shared memory, where GPUs may not write to each
// other. 0: none do.
[[nodiscard]] double host_memory_rate(const nccl::CommunicatorFacts& facts);
}  // namespace topsim::collective
