// Gathers and reductions of units whose parameters are in shards, and which units are whole. When each of
// them happens is the framework's (units.cpp, nested_units.cpp). Those of one group share a
// communicator, so NCCL runs them in the order of their launch.
#pragma once

#include <deque>
#include <span>
#include <string_view>
#include <vector>

#include "workloads/compute/compute_model.hpp"
#include "workloads/step/data_parallel.hpp"
#include "workloads/step/stage_emitter.hpp"

namespace topsim::workloads {

class UnitExchange {
 public:
  struct State {
    std::uint32_t gather = StageEmitter::kNoOp;
    bool whole = false;  // copied out of the buffer, ready to compute with
  };
  // Ranks that share one set of shards, and the state of the units for them.
  struct Group {
    Weights weights;
    std::uint8_t slot, replicas;
    double shards;
    std::string_view stream, replica_stream;
    std::vector<std::vector<State>> states{};
    double ready = 0;  // gradients that are complete and not yet reduced
    std::uint32_t replicated = StageEmitter::kNoOp;
  };

  // REQUIRES: everything but `chunks` outlives this.
  UnitExchange(std::vector<ChunkParameters> chunks, const Plan& plan, const ComputeModel& compute,
               const Slots& slots, StageEmitter& emitter);

  Group dense, routed;

  [[nodiscard]] const ChunkParameters& chunk(int index) const {
    return chunks_[static_cast<std::size_t>(index)];
  }
  [[nodiscard]] int last_of(int index) const { return static_cast<int>(chunk(index).units.size()) - 1; }
  [[nodiscard]] static State& at(Group& group, int index, int unit) {
    return group.states[static_cast<std::size_t>(index)][static_cast<std::size_t>(unit)];
  }
  [[nodiscard]] double parameters_of(const Group& group, int index, int unit) const;
  [[nodiscard]] double gradients_of(const Group& group, int index, int unit) const;

  // Launches a gather that neither runs nor has run. `after`: the op that frees its buffer; kNoOp: the
  // compute emitted so far. `wide`: not in the narrow numbers of the layers' products.
  void launch(Group& group, int index, int unit, std::uint32_t after, bool wide = false);
  // Compute waits for a gather that was launched; false where the unit is whole already or has no parameters.
  bool wait(Group& group, int index, int unit, program::Phase phase);
  // Sums what is ready. `last`: of the step. Waits until few enough reductions are on their way.
  void reduce(Group& group, bool last);
  void end_pass() { ++passes_; }  // a backward pass that has reduced
  void finish();
  [[nodiscard]] std::span<const std::uint32_t> host_copies() const { return copies_; }

 private:
  [[nodiscard]] std::vector<double> gathers(const Group& group, int index, int unit) const;

  std::vector<ChunkParameters> chunks_;
  const Plan& plan_;
  const ComputeModel& compute_;
  StageEmitter& emitter_;
  std::deque<std::uint32_t> outstanding_;
  std::vector<std::uint32_t> copies_;             // of gradients to the host
  std::uint32_t gathered_ = StageEmitter::kNoOp;  // the last gather launched
  int passes_ = 0;
};
}  // namespace topsim::workloads
