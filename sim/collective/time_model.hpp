// How long a collective takes, in contrast to the estimates by which NCCL's tuner ranks (nccl/tuner.hpp):
//   time = latency + S / min(cap, what the links leave)
// It starts from the tuner's figures. Each refinement below is required by public measurements, independent
// of the others, and can be switched off. None is for one system: they depend on protocol, algorithm and GPU
// generation.
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
  Microseconds queued{};   // part of it that a queue of such calls hides
  Microseconds start{};    // part of it: the kernel's start (all-to-all, send/recv)
  Microseconds network{};  // part of it: one message between boxes (all-to-all, send/recv)
  double cap = 0;  // bytes of S per second that the algorithm reaches on links of its own; 0: no limit
  CapParts cap_parts;
  double wire = 1;      // bytes on the wire per byte of payload (flags of LL and LL128)
  Microseconds post{};  // delay of each further message between boxes (all-to-all)
};

// `network`: how much longer one network hop takes here than on the InfiniBand that NCCL's constants were
// measured on.
[[nodiscard]] Timing time_collective(CollectiveKind kind, const Choice& choice, std::int64_t bytes,
                                     const nccl::Tuner& tuner, Microseconds network,
                                     const TimeOptions& options);

// The share of NVLink's rate that Simple reaches once copies of channels do not coincide (ring_rates.cpp):
// 8 A100 gain 235 of 240 GB/s from 512 MiB to 1 GiB, four H100 361-369 of 370.8, and B200 at 128 to 512 MiB
// needs 0.97-0.99. Over PCIe, between boxes, behind NVSwitch the wires decide, not NCCL's search. In no
// constant: 8 H200, 16 GiB, 367; broadcasts on 8 H800 165.0 of 164.8; GB200, 670 of 721.8.
inline constexpr double kSimpleShare = 0.98;

// How much longer a hop over the real fabric takes than the tuner's: as routed, or as the library says.
[[nodiscard]] Microseconds extra_hop(const nccl::CommunicatorFacts& facts, Microseconds network);

// The start of an LL kernel and a step of it inside a box, by compute capability.
[[nodiscard]] Microseconds low_latency_step(int capability);

// One step of a chain of messages (ring, tree), consistent with the above.
struct StepTiming {
  Microseconds start{};    // once, on the first message
  Microseconds inside{};   // a hop inside the box
  Microseconds between{};  // a hop between boxes
};
// `latency`: the whole collective's.
[[nodiscard]] StepTiming time_steps(CollectiveKind kind, const Choice& choice, const nccl::Tuner& tuner,
                                    Microseconds network, Microseconds latency, const TimeOptions& options);

// How a channel of a tree moves its share: in pieces, each forwarded when it has arrived.
struct TreePipeline {
  double piece = 0;  // bytes
  double rate = 0;   // bytes per second of a channel, all channels at work; 0: no limit is known
  // Of a piece that has its hop to itself, inside a box and between boxes; 0 with the other.
  double inside_rate = 0, between_rate = 0;
};
// Bytes on the wire for one of data: LL writes a flag beside as many bytes, LL128 8 bytes to 120.
[[nodiscard]] double carried_per_byte(Protocol protocol);
[[nodiscard]] TreePipeline tree_pipeline(const Choice& choice, std::int64_t bytes, const nccl::Tuner& tuner);

// All-to-all and send/recv: `bytes` in and out of each rank; whether LL carries them, or Simple.
[[nodiscard]] bool direct_in_ll(CollectiveKind kind, std::int64_t bytes,
                                const nccl::CommunicatorFacts& facts);
[[nodiscard]] Timing time_direct(CollectiveKind kind, std::int64_t bytes, const nccl::Tuner& tuner,
                                 Microseconds network, const TimeOptions& options);
// All-to-all by kernels of its own, which take `kernels` where no link holds them up: NCCL's start, no
// channels, and no proxy that posts messages.
[[nodiscard]] Timing time_own_kernels(std::int64_t bytes, Duration kernels, const nccl::Tuner& tuner,
                                      Microseconds network, const TimeOptions& options);
}  // namespace topsim::collective
