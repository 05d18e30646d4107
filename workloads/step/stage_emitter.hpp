// Writes the ops of one pipeline stage: runs of kernels between communications become one compute op each, so
// that the number of ops follows the number of communications and not of kernels.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/program/program.hpp"
#include "workloads/layer/pieces.hpp"
#include "workloads/step/layout.hpp"

namespace topsim::workloads {

// Which part of a backward list to emit; zero-bubble schedules emit it in two parts.
enum class WeightGradients : std::uint8_t { with, without, only };

class StageEmitter {
 public:
  static constexpr std::uint32_t kNoOp = ~std::uint32_t{0};
  struct Position {
    int micro_batch = 0, layer = 0;
  };

  StageEmitter(program::RankProgramBuilder& builder, const Plan& plan, const Slots& slots);

  // A list that is emitted piece by piece.
  struct Walk {
    const PieceList* pieces = nullptr;
    program::Phase phase = program::Phase::other;
    WeightGradients weights = WeightGradients::with;
    std::size_t next = 0;
    std::vector<std::uint32_t> ops;  // of each collective so far
    [[nodiscard]] bool done() const { return next == pieces->pieces().size(); }
    // The next piece waits for a collective of that group.
    [[nodiscard]] bool awaits(Group group) const;
  };
  // REQUIRES: !walk.done(). `on_parameters(count, weights, again)` is called before a piece that reads
  // weights (forward; backward where it does so again) or after a piece that completes gradients (backward).
  template <class OnParameters>
  void emit(const PieceList& list, program::Phase phase, WeightGradients weights,
            OnParameters&& on_parameters) {
    for (Walk walk{&list, phase, weights, 0, {}}; !walk.done();) emit_next(walk, on_parameters);
  }
  template <class OnParameters>
  void emit_next(Walk& walk, OnParameters&& on_parameters);
  void at(const Position& position) { position_ = position; }

  void compute(Part part, program::Phase phase, const KernelCost& cost, bool host_sync = false);
  struct Collective {
    std::string_view stream;  // its own
    std::uint8_t slot = 0;
    program::Phase phase = program::Phase::other;
    std::string_view label;
    program::CollectiveKind kind = program::CollectiveKind::all_reduce;
    double bytes = 0;
    std::span<const std::uint32_t> after{};
    bool follows_compute = true;  // waits for the compute before it, too
    bool host_sync = false;
    std::int16_t units = program::Op::kByChannels;
    double own_kernels = 0;  // seconds
  };
  // Returns the op.
  std::uint32_t collective(const Collective& call);
  [[nodiscard]] std::uint32_t last_compute() const { return last_compute_; }
  // A message of the pipeline; `posted_after_compute`: not before the compute emitted so far.
  std::uint32_t message(program::OpKind kind, std::uint8_t slot, std::string_view stream, Bytes bytes,
                        bool posted_after_compute, bool host_sync);
  // Between accelerator and host memory (direction: step/offload.hpp), after `after` and, if it follows, the
  // compute emitted so far. The host's own work. Both return the op.
  std::uint32_t host_copy(std::uint8_t direction, std::string_view label, double bytes,
                          std::span<const std::uint32_t> after, bool follows_compute);
  std::uint32_t host_work(std::string_view label, Duration time, std::span<const std::uint32_t> after);
  // A compute op of a given time, and a given time on the way of the next message of a stream.
  void fixed(program::Phase phase, Duration time);
  void transfer(Duration time, std::string_view stream);
  // The next compute op starts after this one.
  void wait_for(std::uint32_t op);
  // An op of no duration that keeps the compute stream until everything waited for has ended.
  void join();
  void flush();

 private:
  struct Pending {
    KernelCost cost;
    program::Phase phase = program::Phase::other;
    Part part = Part::layers;
    Position position;
    bool open = false, host_sync = false;
    double first_kernel = 0;  // seconds; the mean of those that were added first
  };
  struct Channel {
    std::string_view stream;
    std::uint8_t slot;
  };
  [[nodiscard]] Channel channel_of(Group group) const;
  // Host time until a run of kernels can start: those before it that are still to be launched, and its first.
  // The rest is launched while it runs and delays what follows.
  Duration launch_of(const KernelCost& cost, program::Phase phase);
  Duration launch_of_call(Duration call, program::Phase phase);
  [[nodiscard]] double turns(program::Phase phase) const;  // how many threads alternate in launching
  std::uint32_t label_of(program::Phase phase, Part part);

  program::RankProgramBuilder& builder_;
  const Plan& plan_;
  const Slots& slots_;
  Position position_;
  Pending pending_;
  std::vector<std::uint32_t> waits_;  // of the next compute op
  std::uint32_t last_compute_ = kNoOp;
  Duration unlaunched_{};
};

template <class OnParameters>
void StageEmitter::emit_next(Walk& walk, OnParameters&& on_parameters) {
  const Piece& piece = walk.pieces->pieces()[walk.next++];
  const bool forward = walk.phase == program::Phase::forward;
  walk.ops.push_back(kNoOp);
  if (walk.weights == WeightGradients::without && piece.weight_gradient) return;
  if (walk.weights == WeightGradients::only && !piece.weight_gradient) {
    // Worked out with the gradients of inputs (the embedding's table): complete since then, sent from here.
    if (piece.parameters > 0) on_parameters(piece.parameters, piece.weights, false);
    return;
  }
  const std::uint32_t awaited =
      piece.wait != Piece::kNone ? walk.ops[static_cast<std::size_t>(piece.wait)] : kNoOp;
  if (piece.collective) {
    const Channel channel = channel_of(piece.group);
    walk.ops.back() = collective({.stream = channel.stream,
                                  .slot = channel.slot,
                                  .phase = walk.phase,
                                  .label = name_of(piece.part),
                                  .kind = piece.kind,
                                  .bytes = piece.bytes,
                                  .after = std::span(&awaited, awaited == kNoOp ? 0 : 1),
                                  .host_sync = piece.host_sync,
                                  .units = piece.units,
                                  .own_kernels = piece.own_kernels});
    return;
  }
  if (awaited != kNoOp) wait_for(awaited);
  // Frozen experts may be shards that have to be there, too.
  const bool frozen_experts = piece.frozen_parameters > 0 && piece.weights == Weights::routed;
  if (forward && (piece.parameters > 0 || frozen_experts))
    on_parameters(piece.parameters, piece.weights, false);
  if (!forward && piece.read_again > 0) on_parameters(piece.read_again, piece.weights, true);
  compute(piece.part, walk.weights == WeightGradients::only ? program::Phase::weight_gradient : walk.phase,
          piece.cost, piece.host_sync);
  if (!forward && piece.parameters > 0) on_parameters(piece.parameters, piece.weights, false);
}
}  // namespace topsim::workloads
