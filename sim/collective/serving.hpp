// All-reduces that serving engines do themselves, by kernels that read the other GPUs' buffers over NVLink:
//   one shot:   every GPU reads all n - 1 others and sums them
//   two shots:  every GPU sums an n-th of all, then reads the other sums: 2 (n - 1) / n of the bytes
//   multimem:   every GPU has its n-th summed on its way through the NVSwitch, which copies it to all
// each after a barrier of flags.
#pragma once

#include "sim/collective/time_model.hpp"

namespace topsim::collective {

// vLLM's choice; none: NCCL does the all-reduce.
[[nodiscard]] std::optional<Choice> serving_choice(CollectiveKind kind, std::int64_t bytes,
                                                   const nccl::CommunicatorFacts& facts);
[[nodiscard]] bool is_serving(Algorithm algorithm);
// REQUIRES: a serving_choice().
[[nodiscard]] Timing time_serving(const Choice& choice, const nccl::Tuner& tuner);
}  // namespace topsim::collective
