// What a ring reaches over one edge, and what of its own copies its links wait for.
#pragma once

#include <cstddef>

#include "sim/collective/collective.hpp"
#include "sim/collective/nccl/communicator.hpp"

namespace topsim::collective {

// What a NIC gets out of its cables is perftest's share of them: 196 of 198.5 Gbit/s (HDR, Azure), 96.6 of
// 99.4 (EDR). In no constant: ten H100 with an NDR NIC each 48.8 GB/s of 49.6, all-to-alls of two boxes of
// eight 48.9, 4090s on PCIe 4 25.3 of 25.5.
inline constexpr double kNicShare = 0.985;

// GB/s over an edge of a ring as far as threads and NVLink let it, and over its wires; 0: not known, no
// limit.
struct RingRates {
  double threads = 0, wire = 0, own_copy = 0;
};
// `gpu`: the generation (nccl::generation_of).
[[nodiscard]] RingRates ring_rates(const Choice& choice, const nccl::CommunicatorFacts& facts,
                                   std::size_t gpu);

// Of what a rank copies without sending it, the share that its links wait for; `loop`: bytes of one chunk of
// each rank on each channel.
[[nodiscard]] double exposed_share(double bytes, double loop);

// GB/s of a GPU whose hops go by host memory: NCCL's shared memory, where GPUs may not write to each other.
// 0: none does.
[[nodiscard]] double host_memory_rate(const nccl::CommunicatorFacts& facts);
}  // namespace topsim::collective
