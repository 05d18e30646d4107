// Where AMD's library does not choose as NCCL's tuner would, on boxes like the MI300X's. Its tuner ranks by
// constants of its own, then takes the protocol from the message's size; in one box of eight it exchanges
// directly up to some sizes (MSCCL's all-pairs, gathers by send and receive). The figures are those of gfx942
// (MI300X). Source: ROCm/rccl at 9e22c79, src/graph/tuning.cc (tuning_model_5), src/rccl_wrap.cc,
// tools/msccl-algorithms; pull request 1736 (20 MB).
#pragma once

#include <optional>

#include "sim/collective/collective.hpp"
#include "sim/collective/nccl/communicator.hpp"

namespace topsim::collective::nccl {

struct RcclChoice {
  Algorithm algorithm = Algorithm::ring;
  Protocol protocol = Protocol::simple;
};
// None: as NCCL. REQUIRES: facts.rccl; kind is one of the tuner's.
[[nodiscard]] std::optional<RcclChoice> rccl_choice(CollectiveKind kind, std::int64_t bytes,
                                                    const CommunicatorFacts& facts);
}  // namespace topsim::collective::nccl
