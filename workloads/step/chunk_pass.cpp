#include "workloads/step/chunk_pass.hpp"

#include <utility>

#include "workloads/memory/memory.hpp"
#include "workloads/model.hpp"
#include "workloads/step/offload.hpp"

namespace topsim::workloads {

using program::Phase;

ChunkPass::ChunkPass(const ModelSpec& model, const Plan& plan, const StepPieces& pieces, Chunk& chunk,
                     const StageTask& task, StageEmitter& emitter, DataParallel& data)
    : plan_(plan),
      chunk_(chunk),
      task_(task),
      emitter_(emitter),
      data_(data),
      forward_(task.action == Action::forward),
      completes_(task.action == Action::backward || task.action == Action::backward_weight),
      weights_(task.action == Action::backward_input    ? WeightGradients::without
               : task.action == Action::backward_weight ? WeightGradients::only
                                                        : WeightGradients::with) {
  if (completes_) ++chunk.backward_done;
  last_ = chunk.backward_done == chunk.micro_batches;
  const auto layer = [&](int i) {
    const LayerKind kind = kind_of(model, chunk.first_layer + i);
    const RecomputeKind again = plan.recompute_of(i < chunk.recomputed);
    const double kept = plan.offload.activations ? layer_activation_bytes(model, plan, again, kind) : 0;
    add(pieces.layer_at(kind, i < chunk.recomputed), chunk.first_layer + i, kept);
  };
  const bool trains = !plan.inference();
  const auto predictions = [&] {
    for (int i = 0; trains && i < predictions_of(model); ++i) add(pieces.prediction_at(i), model.layers - 1);
  };
  if (forward_) {
    if (chunk.first) add(pieces.embedding, 0);
    for (int i = 0; i < chunk.layers; ++i) layer(i);
    if (chunk.last) predictions();
    if (chunk.last) add(pieces.head, model.layers - 1);
  } else {
    if (chunk.last) add(pieces.head, model.layers - 1);
    if (chunk.last) predictions();
    for (int i = chunk.layers - 1; i >= 0; --i) layer(i);
    if (chunk.first) add(pieces.embedding, 0);
    const int units = static_cast<int>(segments_.size());
    for (Segment& segment : segments_) segment.unit = units - 1 - segment.unit;
  }
}

void ChunkPass::add(const PiecePair& pair, int layer, double kept) {
  segments_.push_back(
      {forward_ ? &pair.forward : &pair.backward, layer, static_cast<int>(segments_.size()), kept});
}

// Starts after the compute so far, as libraries issue it: while the previous segment is computed.
void ChunkPass::fetch(Segment& segment) {
  if (segment.kept <= 0 || segment.returned != StageEmitter::kNoOp) return;
  const std::uint32_t left = chunk_.on_host.at({task_.micro_batch, segment.layer});
  segment.returned =
      emitter_.host_copy(kFromHost, "activations from host", segment.kept, std::span(&left, 1), true);
}

bool ChunkPass::awaits_exchange() const {
  return !done() && walk_.awaits(Group::expert);
}

void ChunkPass::begin(Segment& segment) {
  if (plan_.tp == 1 || plan_.offload.activations)
    emitter_.flush();  // nothing else would end an op before the stage does
  emitter_.at({task_.micro_batch, segment.layer});
  // A delayed weight gradient finds here what its input gradient has fetched.
  if (!forward_ && weights_ != WeightGradients::only) {
    fetch(segment);
    if (next_ + 1 < segments_.size()) fetch(segments_[next_ + 1]);
    if (segment.returned != StageEmitter::kNoOp) emitter_.wait_for(segment.returned);
  }
  if (forward_) {
    data_.before_forward(chunk_.index, segment.unit, task_.micro_batch - chunk_.first_micro_batch);
  } else {
    data_.before_backward(chunk_.index, segment.unit);
  }
  walk_ = {segment.pieces, forward_ ? Phase::forward : Phase::backward, weights_, 0, {}};
}

void ChunkPass::end(const Segment& segment) {
  if (forward_ && segment.kept > 0) {
    emitter_.flush();
    chunk_.on_host[{task_.micro_batch, segment.layer}] =
        emitter_.host_copy(kToHost, "activations to host", segment.kept, {}, true);
  }
  if (forward_) {
    data_.after_forward(chunk_.index, segment.unit);
  } else if (completes_) {
    data_.after_backward(chunk_.index, segment.unit, last_);
  }
}

void ChunkPass::advance() {
  Segment& segment = segments_[next_];
  if (walk_.pieces != segment.pieces || walk_.next == 0) begin(segment);
  emitter_.at({task_.micro_batch, segment.layer});
  const auto on_parameters = [&](double count, Weights whose, bool again) {
    if (again) {
      data_.reads_again(chunk_.index, whose, count);
    } else if (forward_) {
      data_.reads(chunk_.index, whose, count, task_.micro_batch - chunk_.first_micro_batch);
    } else if (completes_) {
      data_.completes(chunk_.index, whose, count, last_);
    }
  };
  if (!walk_.done()) emitter_.emit_next(walk_, on_parameters);  // frozen embeddings have no backward pass
  if (!walk_.done()) return;
  end(segment);
  walk_ = {};
  if (++next_ < segments_.size()) return;
  emitter_.flush();
  if (completes_) data_.end_of_backward(chunk_.index, last_);
}

void take_turns(ChunkPass& first, ChunkPass& second) {
  ChunkPass* turn = &first;
  ChunkPass* other = &second;
  while (!turn->done() || !other->done()) {
    if (!turn->done()) do {
        turn->advance();
      } while (!turn->done() && !turn->awaits_exchange());
    std::swap(turn, other);
  }
}
}  // namespace topsim::workloads
