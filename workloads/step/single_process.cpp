#include "workloads/step/single_process.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "workloads/model.hpp"
#include "workloads/step/optimizer.hpp"
#include "workloads/step/stage_emitter.hpp"

namespace topsim::workloads {
namespace {

using program::CollectiveKind;
using program::Dimension;
using program::OpKind;
using program::Phase;

constexpr double kTokenBytes = 8;  // int64

// The kernels of a list that belong to the loss, or those that do not. With one tensor-parallel rank the list
// has no collectives.
PieceList filtered(const PieceList& list, bool loss) {
  PieceList result;
  for (const Piece& piece : list.pieces()) {
    if (piece.collective || (piece.part == Part::loss) != loss) continue;
    if (piece.weight_gradient) {
      result.weight_gradient(piece.part, piece.cost, Piece::kNone, piece.parameters);
    } else {
      result.compute(piece.part, piece.cost, Piece::kNone, piece.parameters);
    }
  }
  return result;
}

struct Bucket {
  double elements = 0;
  int matrices = 0;
};

class SingleProcess {
 public:
  SingleProcess(program::Program& program, const Plan& plan, const ComputeModel& compute,
                const StepPieces& pieces, const PiecePair& loss, const ModelSpec& model)
      : program_(program),
        plan_(plan),
        compute_(compute),
        pieces_(pieces),
        model_(model),
        loss_{filtered(loss.forward, true), filtered(loss.backward, true)},
        head_{filtered(pieces.head.forward, false), filtered(pieces.head.backward, false)},
        layers_(model.layers),
        recomputed_(plan.layers_recomputed(model.layers)),
        output_bytes_(plan.predicted() * model.vocab * bytes_of(plan.activations)) {
    fill_buckets();
  }

  void build() {
    lay_out_star();
    for (int device = 0; device < plan_.dp; ++device) {
      program::RankProgramBuilder builder(program_, fmt::format("device {}", device));
      StageEmitter emitter(builder, plan_, slots_);
      for (int m = 0; m < plan_.micro_batches; ++m) {
        forward(emitter, device, m);
        backward(emitter, device, m);
      }
      if (device == 0) add_optimizer(emitter, parameters_, layers_, plan_, compute_, Slots::kNoSlot);
      emitter.join();
      builder.finish();
    }
  }

 private:
  const PiecePair& layer(int index) const {
    return pieces_.layer_at(kind_of(model_, index), index < recomputed_);
  }

  // Matrices in module order; a bucket is closed as soon as it is full (torch/csrc/cuda/comm.cpp,
  // take_tensors).
  void fill_buckets() {
    Bucket open;
    const auto walk = [&](const PieceList& list) {
      for (auto piece = list.pieces().rbegin(); piece != list.pieces().rend(); ++piece) {
        if (piece->parameters <= 0) continue;
        parameters_ += piece->parameters;
        open.elements += piece->parameters;
        ++open.matrices;
        if (open.elements < plan_.bucket_elements) continue;
        buckets_.push_back(open);
        open = {};
      }
    };
    walk(pieces_.embedding.backward);
    for (int i = 0; i < layers_; ++i) walk(layer(i).backward);
    walk(head_.backward);
    if (open.elements > 0) buckets_.push_back(open);
  }

  // One communicator of all devices, and a peer slot for each replica with device 0 at the other end.
  void lay_out_star() {
    const auto devices = static_cast<std::uint32_t>(plan_.dp);
    program_.ranks = devices;
    program_.class_of_rank.resize(devices);
    std::iota(program_.class_of_rank.begin(), program_.class_of_rank.end(), std::uint16_t{0});
    if (devices == 1) return;
    program_.communicators.push_back({Dimension::data, 0, devices});
    program_.communicator_slots.emplace_back(devices, CommunicatorId(std::size_t{0}));
    slots_.data = 0;
    for (std::uint32_t r = 0; r < devices; ++r) program_.members.emplace_back(std::size_t{r});
    for (std::uint32_t r = 1; r < devices; ++r) {
      auto& column = program_.peer_slots.emplace_back(devices);
      column[0] = RankId(std::size_t{r});
      column[r] = RankId(std::size_t{0});
      program_.peer_dimension.push_back(Dimension::data);
      program_.peer_counterpart.push_back(static_cast<std::uint16_t>(r - 1));
    }
  }
  static std::uint8_t slot_of(int replica) { return static_cast<std::uint8_t>(replica - 1); }

  // From device 0 to every replica, one copy after the other: they are issued on device 0's stream.
  void scatter(StageEmitter& emitter, int device, std::string_view what, double bytes) const {
    if (device == 0) {
      std::uint32_t last = StageEmitter::kNoOp;
      for (int replica = 1; replica < plan_.dp; ++replica)
        last = emitter.message(OpKind::send, slot_of(replica), what, Bytes(std::llround(bytes)), true, false);
      if (last != StageEmitter::kNoOp) emitter.wait_for(last);
    } else {
      emitter.wait_for(
          emitter.message(OpKind::recv, slot_of(device), what, Bytes(std::llround(bytes)), true, false));
    }
  }

  void forward(StageEmitter& emitter, int device, int m) {
    emitter.at({m, 0});
    scatter(emitter, device, "inputs", plan_.tokens() * kTokenBytes);
    exchange(emitter, device, CollectiveKind::broadcast);
    const auto run = [&](const PieceList& list, int index) {
      emitter.flush();
      emitter.at({m, index});
      emitter.emit(list, Phase::forward, WeightGradients::with, [&](double parameters, Weights, bool) {
        // Autocast: fp32 weights are read, 16-bit copies written.
        if (plan_.cast_weights)
          emitter.compute(
              Part::norm, Phase::forward,
              compute_.memory_bound(parameters * (plan_.parameter_bytes + bytes_of(plan_.activations)),
                                    MemoryKernel::elementwise));
      });
    };
    run(pieces_.embedding.forward, 0);
    for (int i = 0; i < layers_; ++i) run(layer(i).forward, i);
    run(head_.forward, layers_ - 1);
    emitter.flush();
    gather(emitter, device);
    if (device == 0) run(loss_.forward, layers_ - 1);
    emitter.flush();
  }

  // Whole outputs go to device 0, from all replicas at once.
  void gather(StageEmitter& emitter, int device) const {
    const Bytes bytes(std::llround(output_bytes_));
    if (device != 0) {
      emitter.wait_for(emitter.message(OpKind::send, slot_of(device), "outputs", bytes, true, false));
      return;
    }
    if (plan_.dp == 1) return;
    emitter.compute(Part::head, Phase::forward,
                    compute_.memory_bound(2 * output_bytes_, MemoryKernel::elementwise));
    std::vector<std::uint32_t> arrived;
    for (int replica = 1; replica < plan_.dp; ++replica)
      arrived.push_back(emitter.message(OpKind::recv, slot_of(replica), fmt::format("outputs {}", replica),
                                        bytes, true, false));
    for (const std::uint32_t op : arrived) emitter.wait_for(op);
  }

  void backward(StageEmitter& emitter, int device, int m) {
    const auto run = [&](const PieceList& list, int index) {
      emitter.flush();
      emitter.at({m, index});
      emitter.emit(list, Phase::backward, WeightGradients::with, [](double, Weights, bool) {});
    };
    if (device == 0) run(loss_.backward, layers_ - 1);
    emitter.flush();
    scatter(emitter, device, "output gradients", output_bytes_);
    run(head_.backward, layers_ - 1);
    for (int i = layers_ - 1; i >= 0; --i) run(layer(i).backward, i);
    run(pieces_.embedding.backward, 0);
    emitter.flush();
    emitter.at({m, 0});
    exchange(emitter, device, CollectiveKind::reduce);
    if (device == 0 && m > 0)  // added to the gradients of earlier micro-batches
      emitter.compute(Part::optimizer, Phase::gradient_sync,
                      compute_.memory_bound(3 * parameters_ * plan_.gradient_bytes, MemoryKernel::add));
  }

  void exchange(StageEmitter& emitter, int device, CollectiveKind kind) const {
    if (plan_.dp == 1) return;
    const bool parameters = kind == CollectiveKind::broadcast;
    const Phase phase = parameters ? Phase::parameter_sync : Phase::gradient_sync;
    const double width = parameters ? plan_.parameter_bytes : plan_.gradient_bytes;
    for (const Bucket& bucket : buckets_) {
      // With several matrices the sender copies them into one buffer, and the receiver copies them out of it.
      const bool sends = parameters == (device == 0);
      const KernelCost copy =
          bucket.matrices > 1 ? compute_.memory_bound(2 * bucket.elements * width, MemoryKernel::elementwise)
                              : KernelCost{};
      if (sends && bucket.matrices > 1) emitter.compute(Part::optimizer, phase, copy);
      emitter.wait_for(emitter.collective({.stream = "data",
                                           .slot = slots_.data,
                                           .phase = phase,
                                           .label = parameters ? "parameters" : "gradients",
                                           .kind = kind,
                                           .bytes = bucket.elements * width}));
      if (!sends && bucket.matrices > 1) emitter.compute(Part::optimizer, phase, copy);
    }
    emitter.flush();
  }

  program::Program& program_;
  const Plan& plan_;
  const ComputeModel& compute_;
  const StepPieces& pieces_;
  const ModelSpec& model_;
  PiecePair loss_, head_;
  int layers_, recomputed_;
  double output_bytes_, parameters_ = 0;
  std::vector<Bucket> buckets_;
  Slots slots_;
};
}  // namespace

void add_single_process(program::Program& program, const Plan& plan, const ComputeModel& compute,
                        const StepPieces& pieces, const PiecePair& loss, const ModelSpec& model) {
  SingleProcess(program, plan, compute, pieces, loss, model).build();
}
}  // namespace topsim::workloads
