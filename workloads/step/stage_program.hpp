// The ops of one training step on one pipeline stage, in the host's launch order.
#pragma once

#include <array>
#include <vector>

#include "sim/program/program.hpp"
#include "workloads/layer/pieces.hpp"
#include "workloads/schedule/schedule.hpp"
#include "workloads/step/layout.hpp"

namespace topsim::workloads {

// The lists that every stage draws on.
struct StepPieces {
  PiecePair embedding, head;
  PiecePair first_prediction, prediction;  // modules of it
  [[nodiscard]] const PiecePair& prediction_at(int module) const {
    return module == 0 ? first_prediction : prediction;
  }
  // By LayerKind: as the plan's recompute asks; full recompute, where only some layers of a stage do it.
  std::array<PiecePair, 2> layer, layer_recomputed;
  [[nodiscard]] const PiecePair& layer_at(LayerKind kind, bool recomputed) const {
    return (recomputed ? layer_recomputed : layer)[static_cast<std::size_t>(kind)];
  }
  double tokens = 0;                // of the micro-batch, Plan::tokens
  std::vector<StepPieces> smaller;  // one list more, if there are smaller micro-batches (Plan::smaller)
};

// Appends one class to the program.
void add_stage(program::Program& program, const ModelSpec& model, const Plan& plan,
               const ComputeModel& compute, const StepPieces& pieces, const Slots& slots, int stage);
}  // namespace topsim::workloads
