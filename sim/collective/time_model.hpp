// What a collective takes, as against what NCCL's tuner thinks when it ranks (nccl/tuner.hpp):
//   time = latency + S / min(cap, what the links leave)
// The tuner's figures are the start; each refinement below is one that public measurements ask for, stands
// alone, and can be switched off. None knows a system: they speak of protocols, algorithms and GPU
// generations.
#pragma once

#include "sim/base/microseconds.hpp"
#include "sim/collective/collective.hpp"
#include "sim/collective/nccl/tuner.hpp"

namespace topsim::collective {

// One network hop as NCCL's latency constants contain it: two HDR or NDR NICs under one InfiniBand switch
// (2.8 us: DeepSeek, ISCA 2025, table 5) and the PCIe of both ends.
inline constexpr Microseconds kReferenceHop{3.3};

struct Timing {
  Microseconds latency{};  // before the last byte counts as arrived
  Microseconds queued{};   // of it, what a queue of the same hides
  Microseconds start{};    // of it, the kernel's start (all-to-all, send/recv)
  Microseconds network{};  // of it, one message's way between boxes (all-to-all, send/recv)
  double cap = 0;  // bytes of S per second that the algorithm reaches on links of its own; 0: no limit
  CapParts cap_parts;
  double wire = 1;      // bytes on the wire per byte of payload (flags of LL and LL128)
  Microseconds post{};  // by which each further message between boxes leaves later (all-to-all)
};

// `network`: how much longer one network hop takes here than on the InfiniBand that NCCL's constants were
// measured on.
[[nodiscard]] Timing time_collective(CollectiveKind kind, const Choice& choice, std::int64_t bytes,
                                     const nccl::Tuner& tuner, Microseconds network,
                                     const TimeOptions& options);

// What Simple reaches of NVLink where copies are apart (below): rings on 8 A100 gain 235 of 240 GB/s from 512
// MiB to 1 GiB, on four H100 361-369 of 370.8, and on B200 those of 128 to 512 MiB ask for 0.97-0.99. Over
// PCIe and between boxes the wires decide, as behind NVSwitch, not the speeds of which NCCL's search tries a
// dozen. In no constant: 8 H200, 16 GiB, 367; broadcasts on 8 H800 165.0 of 164.8; GB200, 670 of 721.8.
inline constexpr double kSimpleShare = 0.98;

// What a hop over the real fabric takes beyond the tuner's: as routed, or as the library's own figures say.
[[nodiscard]] Microseconds extra_hop(const nccl::CommunicatorFacts& facts, Microseconds network);

// One step of a chain of messages (ring, tree), consistent with the above.
struct StepTiming {
  Microseconds start{};    // once, on the first message
  Microseconds inside{};   // a hop inside the box
  Microseconds between{};  // a hop between boxes
};
// `latency`: the whole collective's.
[[nodiscard]] StepTiming time_steps(CollectiveKind kind, const Choice& choice, const nccl::Tuner& tuner,
                                    Microseconds network, Microseconds latency, const TimeOptions& options);

// How a tree's channel moves its share: in pieces, each handed on when it has arrived.
struct TreePipeline {
  double piece = 0;     // bytes
  double rate = 0;      // bytes per second of a channel, all channels at work; 0: no limit is known
  double hop_rate = 0;  // of the first piece, which has the hop to itself; 0 with the other
};
[[nodiscard]] TreePipeline tree_pipeline(const Choice& choice, std::int64_t bytes, const nccl::Tuner& tuner);

// All-to-all and send/recv: `bytes` in and out of each rank; whether LL carries them, or Simple.
[[nodiscard]] bool direct_in_ll(CollectiveKind kind, std::int64_t bytes,
                                const nccl::CommunicatorFacts& facts);
[[nodiscard]] Timing time_direct(CollectiveKind kind, std::int64_t bytes, const nccl::Tuner& tuner,
                                 Microseconds network, const TimeOptions& options);
}  // namespace topsim::collective
