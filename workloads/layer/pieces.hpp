// A layer as a list of pieces: runs of kernels and the collectives between them, in launch order. Lists are
// made once for each kind of layer and then emitted for every layer and micro-batch (step/stage_emitter.hpp).
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "sim/program/program.hpp"
#include "workloads/compute/compute_model.hpp"
#include "workloads/model.hpp"
#include "workloads/plan.hpp"

namespace topsim::workloads {

// The kind of communicator on which a collective of a list runs.
enum class Group : std::uint8_t { tensor, context, expert, expert_tensor };

// Which ranks hold the same weights: the data-parallel ones, or the fewer that hold the same routed experts.
enum class Weights : std::uint8_t { dense, routed };

enum class Part : std::uint8_t {
  batch,
  attention,
  mlp,
  router,
  dispatch,
  experts,
  combine,
  norm,
  embedding,
  head,
  loss,
  layers,
  optimizer
};
[[nodiscard]] std::string_view name_of(Part part);

struct Piece {
  static constexpr int kNone = -1;
  bool collective = false;
  Part part = Part::layers;
  // Compute.
  KernelCost cost;
  bool weight_gradient = false;  // may be put off until W in zero-bubble schedules
  Weights weights = Weights::dense;
  double parameters = 0;         // whose gradients this piece completes, or which a forward piece reads
  double frozen_parameters = 0;  // that a forward piece reads and that are not trained
  double read_again = 0;         // by work that is done again for the backward pass
  // Collective.
  Group group = Group::tensor;
  program::CollectiveKind kind = program::CollectiveKind::all_reduce;
  double bytes = 0;
  std::int16_t units = program::Op::kByChannels;  // of the accelerator that it holds
  double own_kernels = 0;                         // seconds (program::Op::duration)
  bool host_sync = false;                         // the host waits for this piece before it launches the next
  // An earlier collective of the same list that must have ended before this piece starts. Beyond that,
  // compute follows compute, collectives follow the compute before them and those before them of their group.
  int wait = kNone;
};

class PieceList {
 public:
  // `wait`: index of a collective, or Piece::kNone.
  int compute(Part part, const KernelCost& cost, int wait = Piece::kNone, double parameters = 0,
              Weights weights = Weights::dense);
  int weight_gradient(Part part, const KernelCost& cost, int wait, double parameters,
                      Weights weights = Weights::dense);
  // Nothing to send (one rank): returns kNone.
  int collective(Part part, program::CollectiveKind kind, double bytes, int ranks,
                 Group group = Group::tensor, int wait = Piece::kNone);
  // The collective, if there is one, holds that many units, independent of its channels.
  void hold_units(int collective, std::int16_t units);
  // The collective, if there is one, is moved by kernels of its own, which take so many seconds alone.
  void use_own_kernels(int collective, double seconds);
  // The host reads the result of the last piece before it continues.
  void host_reads() { pieces_.back().host_sync = true; }
  [[nodiscard]] const std::vector<Piece>& pieces() const { return pieces_; }
  int add(const Piece& piece);
  void append(const PieceList& other);
  // Host time of every kernel.
  void set_host_time(double seconds_per_kernel);
  void set_host_time(Part part, double seconds_per_kernel);
  // The same work on weights that another list accounts for.
  [[nodiscard]] PieceList without_parameters() const;
  // The same work, done again for the backward pass: no model FLOPs, no parameters.
  [[nodiscard]] PieceList recomputed() const;

 private:
  std::vector<Piece> pieces_;
};

struct PiecePair {
  PieceList forward, backward;
};

// One transformer layer on one tensor-parallel rank, one micro-batch: operations, order and overlap of
// Megatron (core/tensor_parallel/layers.py). Recompute of `kind` is part of the backward list.
[[nodiscard]] PiecePair transformer_layer(const ModelSpec& model, LayerKind kind, const Plan& plan,
                                          const ComputeModel& compute, RecomputeKind recompute);
// Word embedding on the first stage; final norm, LM head and vocabulary-parallel cross entropy on the last.
[[nodiscard]] PiecePair embedding(const ModelSpec& model, const Plan& plan, const ComputeModel& compute);
[[nodiscard]] PiecePair head(const ModelSpec& model, const Plan& plan, const ComputeModel& compute);
// A module of multi-token prediction (DeepSeek-V3 report, 2.2; Megatron: multi_token_prediction.py): the next
// token's embedding and the last layer's output, both normed, are projected from 2 h to h; then a layer and
// the LM head, whose weights, like the embedding's, are the model's own.
[[nodiscard]] PiecePair prediction(const ModelSpec& model, const Plan& plan, const ComputeModel& compute,
                                   const PiecePair& embedding, const PiecePair& layer, const PiecePair& head);
// Instead of the head where tokens are generated: no loss.
[[nodiscard]] PieceList sampling(const ModelSpec& model, const Plan& plan, const ComputeModel& compute);
}  // namespace topsim::workloads
