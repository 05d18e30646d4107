// Where AMD's library chooses otherwise than NCCL's tuner, on boxes like the MI300X's. Its tuner ranks by its
// own constants, then takes the protocol from the message's size; in one box of eight it exchanges directly
// up to some sizes (MSCCL's all-pairs, gathers by send and receive). It has figures for gfx942 (MI300X) and
// for gfx950 (MI350X). Source: ROCm/rccl at 9e22c79, src/graph/tuning.cc (tuning_model_5), src/rccl_wrap.cc,
// tools/msccl-algorithms; pull request 1736 (20 MB); of gfx950 ROCm/rocm-systems at a4cd444,
// projects/rccl/src/graph/tuning.cc (tuning_model_6), and ROCm/rccl at 00c78b7, src/rccl_wrap.cc.
#pragma once

#include <optional>

#include "sim/collective/collective.hpp"
#include "sim/collective/nccl/communicator.hpp"

namespace topsim::collective::nccl {

// Microseconds of a hop between boxes, as it ranks with them: trees and rings, LL (LL128 the same) and
// Simple. The 320 of a Simple ring keep it from small sizes and are not a real latency.
inline constexpr double kRcclTreeNet = 10.5, kRcclRingNet = 9.5, kRcclTreeNetSimple = 25,
                        kRcclRingNetSimple = 320;
// Microseconds before the first hop (baseLat), and of a ring's hop over xGMI.
inline constexpr double kRcclBase = 12, kRcclBaseSimple = 17, kRcclRingInside = 0.8,
                        kRcclRingInsideSimple = 2.1;

// Whether Infinity Fabric joins chips of CDNA3 or later (gfx942, gfx950), by the rate of its links.
[[nodiscard]] bool joins_cdna3_or_later(const CommunicatorFacts& facts);

struct RcclChoice {
  Algorithm algorithm = Algorithm::ring;
  Protocol protocol = Protocol::simple;
};
// None: as NCCL. REQUIRES: facts.rccl; kind is one of the tuner's.
[[nodiscard]] std::optional<RcclChoice> rccl_choice(CollectiveKind kind, std::int64_t bytes,
                                                    const CommunicatorFacts& facts);
}  // namespace topsim::collective::nccl
