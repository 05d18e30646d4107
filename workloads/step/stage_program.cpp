#include "workloads/step/stage_program.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <utility>

#include "topology/generation.hpp"
#include "workloads/model.hpp"
#include "workloads/schedule/tasks.hpp"
#include "workloads/step/batch.hpp"
#include "workloads/step/chunk_pass.hpp"
#include "workloads/step/data_parallel.hpp"
#include "workloads/step/maxima.hpp"
#include "workloads/step/optimizer.hpp"
#include "workloads/step/pipeline_routes.hpp"
#include "workloads/step/stage_emitter.hpp"
#include "workloads/step/unit_gathers.hpp"

namespace topsim::workloads {
namespace {

using program::CollectiveKind;
using program::OpKind;
using program::Phase;

constexpr auto kNoOp = StageEmitter::kNoOp;

class StageProgram {
 public:
  StageProgram(program::Program& program, const ModelSpec& model, const Plan& plan,
               const ComputeModel& compute, const StepPieces& pieces, const Slots& slots, int stage)
      : model_(model),
        plan_(plan),
        compute_(compute),
        pieces_(pieces),
        slots_(slots),
        stage_(stage),
        routes_(plan, slots, stage),
        builder_(program, fmt::format("stage {}", stage)),
        emitter_(builder_, plan, slots) {
    if (in_launch_order()) builder_.start_in_launch_order();
    std::vector<ChunkParameters> held;
    for (int chunk = 0; chunk < plan.chunks(); ++chunk) {
      chunks_.push_back(make_chunk(chunk));
      held.push_back(parameters_of(chunks_.back()));
      dense_parameters_ += held.back().total(Weights::dense);
      routed_parameters_ += held.back().total(Weights::routed);
    }
    data_ = make_data_parallel(std::move(held), plan, compute, slots, emitter_);
  }

  void build() {
    if (plan_.task == Task::decode) {
      decode();
    } else {
      const bool trains = !plan_.replays() && !plan_.inference();
      if (trains) begin_step();
      run_schedule();
      if (trains) end_step();
    }
    emitter_.join();
    builder_.finish();
  }

 private:
  bool in_launch_order() const {
    const StartOrder order = plan_.host.start_order;
    return order == StartOrder::launches ||
           (order == StartOrder::launches_if_shared && (plan_.tp > 1 || plan_.cp > 1) &&
            !topology::is_from_blackwell(compute_.accelerator()));
  }
  Chunk make_chunk(int index) const {
    Chunk chunk;
    chunk.index = index;
    const int global = plan_.global_stage(stage_, index);
    chunk.first_layer = plan_.first_layer_of(global);
    chunk.layers = plan_.stage_layers[static_cast<std::size_t>(global)];
    chunk.first = global == 0;
    chunk.last = global == plan_.global_stages() - 1;
    // In DualPipe the latter half of the micro-batches enters at the last stage.
    const bool both_ends = plan_.mirrored();
    chunk.micro_batches = both_ends ? plan_.micro_batches / 2 : plan_.micro_batches;
    chunk.first_micro_batch = both_ends && index == 1 ? chunk.micro_batches : 0;
    chunk.recomputed = plan_.layers_recomputed(chunk.layers);
    return chunk;
  }

  ChunkParameters parameters_of(const Chunk& chunk) const {
    ChunkParameters result;
    result.stage = plan_.global_stage(stage_, chunk.index);
    const auto apart = [&](const Piece& piece) {
      return plan_.shards_experts() && piece.weights == Weights::routed;
    };
    const auto walk = [&](const PiecePair& pair, const std::vector<double>& matrices = {},
                          std::vector<NestedUnit> wrapped = {}) {
      double trained = 0, frozen = 0, routed = 0, frozen_routed = 0;
      for (const Piece& piece : pair.backward.pieces()) {
        if (piece.parameters <= 0) continue;
        result.gradients.push_back({piece.parameters, piece.weights});
        (apart(piece) ? routed : trained) += piece.parameters;
      }
      for (const Piece& piece : pair.forward.pieces())
        (apart(piece) ? frozen_routed : frozen) += piece.frozen_parameters;
      result.routed_units.push_back(routed + frozen_routed);
      result.routed_unit_gradients.push_back(routed);
      result.units.push_back(trained + frozen);
      result.unit_gradients.push_back(trained);
      // A compiled loop gathers its matrices one by one; norms and biases are whole on every rank.
      result.unit_gathers.push_back(plan_.loops_over_layers
                                        ? matrices
                                        : gathers_of(trained + frozen, matrices, plan_.prefetch_elements));
      result.wrapped.push_back(std::move(wrapped));
    };
    const auto alone = [&](double matrix) {
      return plan_.loops_over_layers && matrix > 0 ? std::vector<double>{matrix} : std::vector<double>{};
    };
    if (chunk.last) {
      walk(pieces_.head, alone(shares_table(model_, plan_) ? 0 : head_parameters(model_) / plan_.tp));
      result.ends += result.unit_gradients.back();
    }
    for (int i = 0; chunk.last && !plan_.inference() && i < predictions_of(model_); ++i)
      walk(pieces_.prediction_at(i));
    for (int i = chunk.layers - 1; i >= 0; --i) {
      const LayerKind kind = kind_of(model_, chunk.first_layer + i);
      walk(pieces_.layer_at(kind, i < chunk.recomputed), matrices_of(model_, kind, plan_),
           plan_.wrap_least > 0 ? wrapped_by_size(model_, kind, plan_) : std::vector<NestedUnit>{});
    }
    if (chunk.first) {
      walk(pieces_.embedding, alone(embedding_parameters(model_, plan_.tp)));
      result.ends += result.unit_gradients.back();
    }
    for (std::vector<double>* counts :
         {&result.units, &result.unit_gradients, &result.routed_units, &result.routed_unit_gradients})
      std::reverse(counts->begin(), counts->end());
    std::reverse(result.unit_gathers.begin(), result.unit_gathers.end());
    std::reverse(result.wrapped.begin(), result.wrapped.end());
    return result;
  }

  void begin_step() {
    // Gradient buffers are zeroed. Parameter gathers wait for this op, so that they come after the last
    // step's update.
    emitter_.compute(Part::optimizer, Phase::optimizer,
                     compute_.memory_bound((dense_parameters_ + routed_parameters_) * plan_.gradient_bytes,
                                           MemoryKernel::optimizer));
    emitter_.flush();
  }

  // --- forward and backward of one chunk

  // A measured time replaces everything that the stage does in a task.
  void replay(const StageTask& task) {
    // DualPipe's second direction runs another stage of the model on this rank.
    const bool both_ends = plan_.mirrored();
    const auto index = static_cast<std::size_t>(both_ends ? plan_.global_stage(stage_, task.chunk) : stage_);
    const StageTimes& times = plan_.stage_times;
    Duration time{};
    if (task.action == Action::forward) time = times.forward[index];
    if (task.action == Action::backward_input) time = times.backward_input[index];
    if (task.action == Action::backward_weight) time = times.backward_weight[index];
    if (task.action == Action::backward) time = times.backward_input[index] + times.backward_weight[index];
    const Phase phase = task.action == Action::forward           ? Phase::forward
                        : task.action == Action::backward_weight ? Phase::weight_gradient
                                                                 : Phase::backward;
    emitter_.at({task.micro_batch, chunks_[static_cast<std::size_t>(task.chunk)].first_layer});
    emitter_.fixed(phase, time / plan_.virtual_stages);
  }

  // --- pipeline

  const StepPieces& pieces_of(int batch) const {
    return plan_.is_smaller(batch) ? pieces_.smaller.front() : pieces_;
  }
  double activation_bytes(int batch) const {
    return pieces_of(batch).tokens * model_.hidden * bytes_of(plan_.activations);
  }
  Bytes message_bytes(int batch) const {
    if (!plan_.stage_times.transfer.empty()) return {};  // the time is given: nothing is left to carry
    const double share = plan_.sequence_parallel || plan_.splits_messages ? plan_.tp : 1;
    return Bytes(std::llround(activation_bytes(batch) / share));
  }

  void run_schedule() {
    const std::vector<StageTask> order = tasks_of(plan_, stage_);
    std::vector<std::uint32_t> receive(order.size(), kNoOp);
    std::size_t post_next[2] = {0, 0};  // by `wraps`: the first task whose receive was not yet posted
    // Posts receives of tasks up to `last`; around the wrap Megatron posts them when the far end produces the
    // data, p - 1 forwards earlier.
    const auto post_receives = [&](std::size_t first, std::size_t last) {
      for (const bool wraps : {true, false}) {
        const std::size_t until =
            wraps && !plan_.overlap_p2p ? first + 2 * static_cast<std::size_t>(plan_.pp) - 1 : last;
        std::size_t& next = post_next[wraps ? 1 : 0];
        for (; next < order.size() && next <= until; ++next) {
          const auto input = routes_.input_of(order[next]);
          if (!input || input->wraps != wraps) continue;
          emitter_.at({order[next].micro_batch, 0});
          const bool natural = !plan_.overlap_p2p && !wraps;
          receive[next] = emitter_.message(OpKind::recv, input->slot, input->stream,
                                           message_bytes(order[next].micro_batch), !plan_.overlap_p2p,
                                           natural && plan_.synchronises_p2p);
        }
      }
    };
    const auto send = [&](const StageTask& task, bool alone) {
      const auto output = routes_.output_of(task);
      if (!output) return kNoOp;
      emitter_.at({task.micro_batch, 0});
      if (!plan_.stage_times.transfer.empty())
        emitter_.transfer(plan_.stage_times.transfer[static_cast<std::size_t>(stage_)], output->stream);
      return emitter_.message(OpKind::send, output->slot, output->stream, message_bytes(task.micro_batch),
                              true, alone && plan_.synchronises_p2p);
    };

    const auto exchanged = routes_.exchanges(order);
    for (std::size_t e = 0; e < exchanged.size(); ++e) {
      const auto [first, last] = exchanged[e];
      if (e == 0 && !plan_.overlap_p2p) post_receives(first, last);
      for (std::size_t i = first; i <= last; ++i) {
        if (plan_.overlap_p2p) post_receives(i, i + 1);  // while the previous task is computed
        arrives(receive[i], order[i].micro_batch);
        if (!order[i].with_next) {
          run_task(order[i]);
          if (plan_.overlap_p2p) send(order[i], false);
          continue;
        }
        if (plan_.overlap_p2p) post_receives(i, i + 2);
        arrives(receive[i + 1], order[i + 1].micro_batch);
        run_together(order[i], order[i + 1]);
        if (plan_.overlap_p2p) send(order[i], false), send(order[i + 1], false);
        ++i;
      }
      if (plan_.overlap_p2p) continue;
      // Exposed: a task's output is sent together with the receives of the next task, and all of it is waited
      // for.
      const bool at_end = e + 1 == exchanged.size();
      const auto next = at_end ? std::pair(order.size(), order.size()) : exchanged[e + 1];
      bool alone = true;
      for (std::size_t i = next.first; !at_end && i <= next.second; ++i) alone &= !receives_next(order[i]);
      std::vector<std::uint32_t> sent;
      for (std::size_t i = first; i <= last; ++i) sent.push_back(send(order[i], alone));
      post_receives(next.first, next.second);
      for (const std::uint32_t op : sent)
        if (op != kNoOp) emitter_.wait_for(op);
    }
  }

  // Stages form a ring: the last stage's tokens are the first one's next input. Each stage begins with the
  // messages whose work it did at the end of the previous step. So all micro-batches circulate (one starts on
  // each stage, further ones wait at the last), and no stage waits for a whole step.
  void decode() {
    const int m = plan_.micro_batches, stages = plan_.pp;
    const bool last = stage_ == stages - 1;
    const int left_over = (stage_ < m ? 1 : 0) + (last ? std::max(0, m - stages) : 0);
    const Bytes tokens(std::int64_t{plan_.micro_batch} * 8);
    const auto send = [&](int index) {
      if (stages == 1) return;
      emitter_.at({index, 0});
      emitter_.message(OpKind::send, slots_.next, last ? "send tokens" : "send activations",
                       last ? tokens : message_bytes(index), true, false);
    };
    for (int i = 0; i < left_over; ++i) send(m - left_over + i);
    for (int i = 0; plan_.experts.overlap && i < m; i += 2)
      run_together({Action::forward, i, 0}, {Action::forward, i + 1, 0});
    for (int i = 0; !plan_.experts.overlap && i < m; ++i) {
      if (stages > 1) {
        emitter_.at({i, 0});
        emitter_.wait_for(emitter_.message(OpKind::recv, slots_.previous,
                                           stage_ == 0 ? "receive tokens" : "receive activations",
                                           stage_ == 0 ? tokens : message_bytes(i), false, false));
      }
      run_task({Action::forward, i, 0});
      if (i + left_over < m) send(i);
    }
  }

  // The parts of an activation are joined on arrival (scatter_gather_tensors_in_pipeline of Megatron-LM's
  // p2p_communication.py).
  void arrives(std::uint32_t message, int batch) {
    if (message == kNoOp) return;
    if (plan_.splits_messages) {
      message = emitter_.collective({.stream = "tensor",
                                     .slot = slots_.tensor,
                                     .phase = Phase::transfer,
                                     .label = "received",
                                     .kind = CollectiveKind::all_gather,
                                     .bytes = activation_bytes(batch),
                                     .after = std::span(&message, 1),
                                     .follows_compute = false});
    }
    emitter_.wait_for(message);
  }

  void run_task(const StageTask& task) {
    Chunk& chunk = chunks_[static_cast<std::size_t>(task.chunk)];
    if (plan_.replays()) return replay(task);
    add_batch(emitter_, chunk, task, plan_, compute_, slots_.tensor);
    ChunkPass pass(model_, plan_, pieces_of(task.micro_batch), chunk, task, emitter_, *data_);
    while (!pass.done()) pass.advance();
    share_maxima(task);
    if (plan_.timed_passes) emitter_.compute(Part::batch, Phase::other, {}, true);
  }
  // Runs two tasks whose all-to-alls are hidden behind each other's kernels.
  void run_together(const StageTask& first, const StageTask& second) {
    if (plan_.replays()) {
      replay(first);
      replay(second);
      return;
    }
    const auto pass = [&](const StageTask& task) {
      return ChunkPass(model_, plan_, pieces_of(task.micro_batch),
                       chunks_[static_cast<std::size_t>(task.chunk)], task, emitter_, *data_);
    };
    ChunkPass one = pass(first), other = pass(second);
    take_turns(one, other);
    share_maxima(first);
    share_maxima(second);
  }
  void share_maxima(const StageTask& task) {
    add_shared_maxima(emitter_, model_, chunks_[static_cast<std::size_t>(task.chunk)], task, plan_, compute_,
                      slots_.amax);
  }
  bool receives_next(const StageTask& task) const {
    const auto input = routes_.input_of(task);
    return input && !input->wraps;
  }

  // --- end of the step

  void end_step() {
    emitter_.at({plan_.micro_batches - 1, 0});
    data_->finish_gradients();

    double whole = 0, layers = 0;
    for (const Chunk& chunk : chunks_) {
      layers += chunk.layers;
      if (chunk.last) whole += final_norm_parameters(model_);
      for (int i = 0; i < chunk.layers; ++i) {
        const LayerParameters layer = layer_parameters(model_, kind_of(model_, chunk.first_layer + i));
        whole += layer.whole();
      }
    }
    if (plan_.sequence_parallel && whole > 0 && !plan_.frozen()) {
      // Every rank saw its part of the tokens, so gradients of norms, of the biases after reductions, of
      // routers and of latent projections are summed over the tensor group.
      emitter_.join();
      emitter_.wait_for(emitter_.collective({.stream = "tensor",
                                             .slot = slots_.tensor,
                                             .phase = Phase::gradient_sync,
                                             .label = "norm gradients",
                                             .kind = CollectiveKind::all_reduce,
                                             .bytes = whole * plan_.gradient_bytes}));
    }
    const bool tied =
        std::any_of(chunks_.begin(), chunks_.end(), [](const Chunk& c) { return c.first || c.last; });
    if (slots_.embedding != Slots::kNoSlot && tied) {
      emitter_.join();
      const double words = head_parameters(model_) / plan_.tp;
      emitter_.wait_for(emitter_.collective({.stream = "embedding",
                                             .slot = slots_.embedding,
                                             .phase = Phase::gradient_sync,
                                             .label = "embedding gradients",
                                             .kind = CollectiveKind::all_reduce,
                                             .bytes = words * plan_.gradient_bytes}));
    }
    double mine =
        dense_parameters_ / plan_.shards.optimizer + routed_parameters_ / plan_.experts.optimizer_shards;
    // The owner of the largest tensor finishes last.
    if (plan_.whole_tensor_shards && plan_.shards.optimizer > 1 && tied)
      mine = std::max(mine, head_parameters(model_) / plan_.tp);
    add_optimizer(emitter_, mine, layers, plan_, compute_, slots_.norm, data_->host_copies());
    data_->after_optimizer();
  }

  const ModelSpec& model_;
  const Plan& plan_;
  const ComputeModel& compute_;
  const StepPieces& pieces_;
  const Slots& slots_;
  int stage_;
  PipelineRoutes routes_;
  program::RankProgramBuilder builder_;
  StageEmitter emitter_;
  std::vector<Chunk> chunks_;
  double dense_parameters_ = 0, routed_parameters_ = 0;
  std::unique_ptr<DataParallel> data_;
};
}  // namespace

void add_stage(program::Program& program, const ModelSpec& model, const Plan& plan,
               const ComputeModel& compute, const StepPieces& pieces, const Slots& slots, int stage) {
  StageProgram(program, model, plan, compute, pieces, slots, stage).build();
}
}  // namespace topsim::workloads
