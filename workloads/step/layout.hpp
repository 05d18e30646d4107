// The position of each rank in the plan: coordinates, communicators, neighbours in the pipeline.
#pragma once

#include <cstdint>

#include "sim/program/program.hpp"
#include "workloads/plan.hpp"

namespace topsim::workloads {

struct Coordinates {
  int tp = 0, cp = 0, dp = 0, pp = 0;
};

// The same rank among the experts: etp, ep and data-parallel ranks of experts divide the tp x cp x dp ranks
// of a stage anew (Megatron: parallel_state.py, two rank generators over the same ranks).
struct ExpertCoordinates {
  int etp = 0, ep = 0, dp = 0, pp = 0;
};

class Layout {
 public:
  explicit Layout(const Plan& plan);
  [[nodiscard]] std::uint32_t rank_of(const ExpertCoordinates& at) const {
    return static_cast<std::uint32_t>(at.etp * expert_tensor_stride_ + at.ep * expert_stride_ +
                                      at.dp * expert_data_stride_ + at.pp * expert_pp_stride_);
  }
  [[nodiscard]] std::uint32_t rank_of(const Coordinates& at) const {
    return static_cast<std::uint32_t>(at.tp * tp_stride_ + at.cp * cp_stride_ + at.dp * dp_stride_ +
                                      at.pp * pp_stride_);
  }

 private:
  int tp_stride_ = 1, cp_stride_ = 1, dp_stride_ = 1, pp_stride_ = 1;
  int expert_tensor_stride_ = 1, expert_stride_ = 1, expert_data_stride_ = 1, expert_pp_stride_ = 1;
};

// Slots of the program's tables; kNoSlot where the plan has no such communicator.
struct Slots {
  static constexpr std::uint8_t kNoSlot = 255;
  std::uint8_t tensor = kNoSlot, context = kNoSlot, data = kNoSlot, embedding = kNoSlot, norm = kNoSlot;
  // Routed experts: all-to-all, parts of one expert, ranks that hold the same experts.
  std::uint8_t expert = kNoSlot, expert_tensor = kNoSlot, expert_data = kNoSlot;
  std::uint8_t replicas = kNoSlot;  // hybrid sharding: ranks that hold the same shard
  std::uint8_t expert_replicas = kNoSlot;
  std::uint8_t amax = kNoSlot;  // ranks that share the maxima of delayed scaling
  // Peers: to the next stage and to the previous one; `turned` for the second chunk of V-shaped schedules,
  // where activations flow towards the first stage.
  std::uint8_t next = kNoSlot, previous = kNoSlot, turned_next = kNoSlot, turned_previous = kNoSlot;
};

// Fills ranks, class_of_rank (one class per stage), communicators, members and peers of the program.
// `shared_embedding`: the first and the last stage hold copies of one word embedding.
Slots lay_out(const Plan& plan, bool shared_embedding, program::Program& program);
}  // namespace topsim::workloads
