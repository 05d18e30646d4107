// Whole parameters on every rank, gradients in buckets: Megatron, DistributedDataParallel, ZeRO 0-2.
#include <algorithm>
#include <numeric>

#include "workloads/step/data_parallel.hpp"
#include "workloads/step/offload.hpp"

namespace topsim::workloads {
namespace {

using program::CollectiveKind;
using program::Phase;

// The buckets of the weights that one group of ranks holds.
class GroupBuckets {
 public:
  GroupBuckets(Weights weights, const std::vector<ChunkParameters>& chunks, const Plan& plan,
               const ComputeModel& compute, const Slots& slots, StageEmitter& emitter)
      : plan_(plan),
        compute_(compute),
        emitter_(emitter),
        slot_(weights == Weights::dense ? slots.data : slots.expert_data),
        replicas_(weights == Weights::dense ? slots.replicas : Slots::kNoSlot),
        stream_(weights == Weights::dense ? "data" : "expert data"),
        optimizer_shards_(slot_ == Slots::kNoSlot     ? 1  // no other rank has these weights
                          : weights == Weights::dense ? plan.shards.optimizer
                                                      : plan.experts.optimizer_shards) {
    stage_ = static_cast<std::size_t>(chunks.front().stage % plan.pp);
    for (const ChunkParameters& given : chunks) {
      Chunk& chunk = chunks_.emplace_back();
      chunk.bucketed = !plan.aligns_exchanges || (stage_ == 0 && chunks_.size() == 1);
      chunk.parameters = given.total(weights);
      if (weights == Weights::dense) chunk.ends = given.ends;
      // Simulates the backward pass once to find the buckets: each closes as soon as it is full; DeepSpeed's
      // close before they exceed the limit.
      double open = 0;
      for (const auto& [parameters, whose] : given.gradients) {
        if (whose != weights) continue;
        if (spills(chunk, open, parameters, chunk.buckets.size())) chunk.buckets.push_back(open), open = 0;
        open += parameters;
        if (full(chunk, open, chunk.buckets.size())) chunk.buckets.push_back(open), open = 0;
      }
      if (open > 0) chunk.buckets.push_back(open);
      tensors_ +=
          std::max(1.0, plan.host.profile.parameter_tensors) * static_cast<double>(given.units.size());
      in_order_.push_back(chunks_.size() - 1);
    }
    std::sort(in_order_.begin(), in_order_.end(),
              [&](std::size_t a, std::size_t b) { return chunks[a].stage < chunks[b].stage; });
  }

  // With several chunks on a rank, the first micro-batch of a chunk launches all gathers of the next one
  // (Megatron-Core, schedules.py: param_sync_func), so that they have ended when that chunk begins.
  void enters(int index, int micro_batch) {
    if (!gathers_ahead() || chunks_.size() < 2) return;
    const std::size_t pass = forward_passes_++;
    if (plan_.aligns_exchanges && pass > 0) {
      // When the first stage would, which is ahead by as many passes as this stage's number.
      const std::size_t there = pass + stage_, stages = static_cast<std::size_t>(plan_.pp);
      if (there % stages == 0 && there / stages + 1 < chunks_.size()) gather_all(chunks_[there / stages + 1]);
      return;
    }
    if (micro_batch > 0) return;
    for (int next = index; next <= index + 1 && next < static_cast<int>(chunks_.size()); ++next)
      gather_all(at(next));
  }

  // The gather of a bucket must have ended before its weights are first used; the next gather is launched
  // then.
  void reads(int index, double parameters, int micro_batch) {
    if (plan_.cast_weights) cast(parameters);
    if (!gathers_ahead() || micro_batch > 0) return;
    Chunk& chunk = at(index);
    chunk.used += parameters;
    while (chunk.gathered < chunk.buckets.size() && chunk.covered < chunk.used - 0.5) {
      if (chunk.gather.size() <= chunk.gathered) gather(chunk);
      gather(chunk);
      chunk.covered += chunk.buckets[chunk.buckets.size() - 1 - chunk.gathered];
      emitter_.wait_for(chunk.gather[chunk.gathered++]);
    }
  }

  void completes(int index, double parameters, bool last) {
    if (!reduces(last)) return;
    Chunk& chunk = at(index);
    if (!waits_for_stages() && spills(chunk, chunk.ready, parameters, chunk.reduced))
      reduce(chunk, chunk.ready);
    chunk.ready += parameters;
    if (!waits_for_stages() && full(chunk, chunk.ready, chunk.reduced)) reduce(chunk, chunk.ready);
  }

  void end_of_backward(int index, bool last) {
    if (waits_for_stages()) {
      // A chunk is reduced when the first stage has finished the same chunk, that many passes later; what is
      // left then is reduced at the end.
      if (slot_ == Slots::kNoSlot) return;
      backward_passes_.emplace_back(index, last);
      if (backward_passes_.size() <= stage_) return;
      const auto [chunk, over] = backward_passes_[backward_passes_.size() - 1 - stage_];
      if (over && plan_.virtual_stages > 1) reduce_all(at(chunk));
      return;
    }
    // Without buckets all gradients go at the end of the step, or of each pass if each reduces.
    if (!reduces(last) || (plan_.bucket_elements <= 0 && !plan_.reduce_every_micro_batch)) return;
    Chunk& chunk = at(index);
    reduce(chunk, chunk.ready);
    chunk.reduced = 0;
    ++passes_;
    if (!plan_.drains_reductions) return;
    for (const std::uint32_t reduction : reductions_) emitter_.wait_for(reduction);
    reductions_.clear();
    if (!last && plan_.bucket_copies > 1) copy((plan_.bucket_copies - 1) * total());
  }

  void finish_gradients() {
    if (!exchanges()) return;
    for (const std::size_t index : in_order_) reduce_all(chunks_[index]);
    for (const std::uint32_t reduction : reductions_) emitter_.wait_for(reduction);
    // What was copied into buckets is copied back.
    if (plan_.bucket_copies > 1) copy((plan_.bucket_copies - 1) * total());
  }

  // Sends updated parameters to all ranks if this is not overlapped; returns the op, or kNoOp.
  std::uint32_t gather_after_optimizer() {
    if (optimizer_shards_ <= 1 || plan_.overlap_param_gather) return StageEmitter::kNoOp;
    if (plan_.whole_tensor_shards) {
      const double owners = std::min(optimizer_shards_, tensors_);
      std::uint32_t last = StageEmitter::kNoOp;
      for (double owner = 0; owner < owners; ++owner)
        last = emitter_.collective({.stream = stream_,
                                    .slot = slot_,
                                    .phase = Phase::parameter_sync,
                                    .label = "parameters",
                                    .kind = CollectiveKind::broadcast,
                                    .bytes = total_gathered() / owners});
      return last;
    }
    return emitter_.collective({.stream = stream_,
                                .slot = slot_,
                                .phase = Phase::parameter_sync,
                                .label = "parameters",
                                .kind = CollectiveKind::all_gather,
                                .bytes = total_gathered()});
  }

  [[nodiscard]] const std::vector<std::uint32_t>& host_copies() const { return copies_; }

 private:
  struct Chunk {
    double parameters = 0, ends = 0;  // in all; of embedding and head
    // Megatron uses one bucket for everything but the first chunk of the first stage
    // (distributed_data_parallel.py, bucket_size; training.py, disable_bucketing).
    bool bucketed = true;
    std::vector<double> buckets;        // gradients in elements, in the order in which they become ready
    std::vector<std::uint32_t> gather;  // ops that gather the buckets' parameters, in forward order
    std::size_t gathered = 0;           // buckets for which the forward pass has waited
    double used = 0, covered = 0;       // parameters that forward pieces have read; those in gathered buckets
    double ready = 0;                   // gradients ready since the last reduction
    std::size_t reduced = 0;            // buckets reduced in this backward pass
  };
  Chunk& at(int index) { return chunks_[static_cast<std::size_t>(index)]; }
  double total() const {
    return std::accumulate(chunks_.begin(), chunks_.end(), 0.0,
                           [](double sum, const Chunk& chunk) { return sum + chunk.parameters; });
  }
  // Of a parameter, mean over a chunk: embedding and head are gathered as wide as they are used.
  double gathered_bytes(const Chunk& chunk) const {
    const double narrow = plan_.gathered_parameter_bytes;
    const double wider = std::max(0.0, bytes_of(plan_.activations) - narrow);
    return narrow + (chunk.parameters > 0 ? wider * chunk.ends / chunk.parameters : 0);
  }
  double total_gathered() const {
    return std::accumulate(chunks_.begin(), chunks_.end(), 0.0, [this](double sum, const Chunk& chunk) {
      return sum + chunk.parameters * gathered_bytes(chunk);
    });
  }
  // Only the first stage of a pipeline without virtual stages reduces during its last backward pass.
  bool waits_for_stages() const {
    return plan_.aligns_exchanges && plan_.overlap_grad_reduce && (plan_.virtual_stages > 1 || stage_ > 0);
  }
  bool gathers_ahead() const { return plan_.overlap_param_gather && optimizer_shards_ > 1; }
  bool reduces(bool last) {
    last_pass_ = last;
    return exchanges() && (last || plan_.reduce_every_micro_batch);
  }
  // With other ranks, or with the host alone.
  bool exchanges() const {
    return slot_ != Slots::kNoSlot || plan_.offload.sums == GradientSums::between ||
           plan_.offload.sums == GradientSums::in_each;
  }
  bool full(const Chunk& chunk, double elements, std::size_t bucket) const {
    const double limit = limit_of(chunk, bucket);
    return limit > 0 && elements >= limit;
  }
  // Whether the next gradients would exceed the limit: then they open a new bucket.
  bool spills(const Chunk& chunk, double elements, double next, std::size_t bucket) const {
    const double limit = limit_of(chunk, bucket);
    return plan_.buckets_never_exceed && limit > 0 && elements > 0 && elements + next > limit;
  }
  double limit_of(const Chunk& chunk, std::size_t bucket) const {
    if (!chunk.bucketed) return 0;
    return bucket == 0 && plan_.first_bucket_elements > 0 ? plan_.first_bucket_elements
                                                          : plan_.bucket_elements;
  }

  // Whether buckets are wider than what is sent of them.
  bool narrows() const { return plan_.bucket_gradient_bytes() > plan_.gradient_bytes; }
  void cast(double parameters) {  // fp32 weights read, 16-bit copies written
    emitter_.compute(Part::norm, Phase::forward,
                     compute_.memory_bound(parameters * (plan_.parameter_bytes + bytes_of(plan_.activations)),
                                           MemoryKernel::elementwise));
  }
  void copy(double parameters) {
    emitter_.compute(
        Part::optimizer, Phase::gradient_sync,
        compute_.memory_bound(parameters * 2 * plan_.kept_gradient_bytes, MemoryKernel::elementwise));
  }

  void gather(Chunk& chunk) {
    const std::size_t next = chunk.gather.size();
    if (next >= chunk.buckets.size()) return;
    const double elements = chunk.buckets[chunk.buckets.size() - 1 - next];
    chunk.gather.push_back(emitter_.collective({.stream = stream_,
                                                .slot = slot_,
                                                .phase = Phase::parameter_sync,
                                                .label = "parameters",
                                                .kind = CollectiveKind::all_gather,
                                                .bytes = elements * gathered_bytes(chunk)}));
  }

  void gather_all(Chunk& chunk) {
    while (chunk.gather.size() < chunk.buckets.size()) gather(chunk);
  }

  // Reduces the buckets that are ready, and what has been filled of the last one.
  void reduce_all(Chunk& chunk) {
    if (waits_for_stages())
      while (chunk.reduced + 1 < chunk.buckets.size() && chunk.ready > 0) {
        reduce(chunk, std::min(chunk.ready, chunk.buckets[chunk.reduced]));
      }
    reduce(chunk, chunk.ready);
  }

  void reduce(Chunk& chunk, double elements) {
    if (elements <= 0) return;
    if (plan_.bucket_copies > 0) copy(elements);
    if (narrows()) {
      // DDP's hook casts a bucket to 16 bits, divides that, and casts the sum back in the bucket's place.
      const double cast = plan_.kept_gradient_bytes + plan_.gradient_bytes;
      emitter_.compute(Part::optimizer, Phase::gradient_sync,
                       compute_.memory_bound(elements * (2 * cast + 2 * plan_.gradient_bytes),
                                             MemoryKernel::elementwise, 3));
    }
    if (plan_.gradient_passes > 0)
      emitter_.compute(Part::optimizer, Phase::gradient_sync,
                       compute_.memory_bound(elements * plan_.gradient_passes * plan_.gradient_bytes,
                                             MemoryKernel::optimizer));
    const bool scatter = optimizer_shards_ > 1 && plan_.scatter_gradients;
    const bool owners = optimizer_shards_ > 1 && plan_.zero == 2 && plan_.reduces_to_owners;
    const bool alone = slot_ == Slots::kNoSlot;
    const std::uint32_t op = alone ? StageEmitter::kNoOp
                                   : emitter_.collective({.stream = stream_,
                                                          .slot = slot_,
                                                          .phase = Phase::gradient_sync,
                                                          .label = "gradients",
                                                          .kind = scatter  ? CollectiveKind::reduce_scatter
                                                                  : owners ? CollectiveKind::reduce
                                                                           : CollectiveKind::all_reduce,
                                                          .bytes = elements * plan_.gradient_bytes});
    std::uint32_t summed = op;
    // Shard groups: the ranks that hold the same shard add it up.
    if (replicas_ != Slots::kNoSlot && (last_pass_ || !plan_.replicas_at_end))
      summed = emitter_.collective({.stream = "replicas",
                                    .slot = replicas_,
                                    .phase = Phase::gradient_sync,
                                    .label = "shards of gradients",
                                    .kind = CollectiveKind::all_reduce,
                                    .bytes = elements * plan_.gradient_bytes / optimizer_shards_,
                                    .after = std::span<const std::uint32_t>(&op, 1),
                                    .follows_compute = false});
    if (plan_.offload.to != Offload::none) {
      copies_.push_back(exchange_gradients(emitter_, plan_, elements / optimizer_shards_,
                                           std::span(&summed, alone ? 0 : 1), alone,
                                           {passes_ == 0, last_pass_}));
      if (plan_.accumulates_on_host) summed = copies_.back();  // on the same stream
    }
    chunk.ready -= elements;
    ++chunk.reduced;
    if (plan_.overlap_grad_reduce) {
      reductions_.push_back(summed);
    } else {
      emitter_.wait_for(summed);  // on the compute stream itself
    }
  }

  const Plan& plan_;
  const ComputeModel& compute_;
  StageEmitter& emitter_;
  std::uint8_t slot_, replicas_;
  std::string_view stream_;
  double optimizer_shards_,
      tensors_ = 0;  // tensors: about as many in the embedding and the head as in a layer
  std::vector<Chunk> chunks_;
  std::size_t stage_ = 0;  // of the pipeline
  std::size_t forward_passes_ = 0;
  int passes_ = 0;                                     // backward passes that have reduced
  bool last_pass_ = false;                             // the backward pass is the step's last
  std::vector<std::pair<int, bool>> backward_passes_;  // chunk; whether it was the chunk's last
  std::vector<std::size_t> in_order_;                  // chunks in the order of the model
  std::vector<std::uint32_t> reductions_, copies_;
};

class Buckets final : public DataParallel {
 public:
  Buckets(const std::vector<ChunkParameters>& chunks, const Plan& plan, const ComputeModel& compute,
          const Slots& slots, StageEmitter& emitter)
      : emitter_(emitter),
        dense_(Weights::dense, chunks, plan, compute, slots, emitter),
        routed_(Weights::routed, chunks, plan, compute, slots, emitter) {}

  void before_forward(int chunk, int unit, int micro_batch) override {
    if (unit > 0) return;
    dense_.enters(chunk, micro_batch);
    routed_.enters(chunk, micro_batch);
  }
  void after_forward(int, int) override {}
  void before_backward(int, int) override {}
  void after_backward(int, int, bool) override {}
  void reads(int chunk, Weights weights, double parameters, int micro_batch) override {
    of(weights).reads(chunk, parameters, micro_batch);
  }
  void completes(int chunk, Weights weights, double parameters, bool last) override {
    of(weights).completes(chunk, parameters, last);
  }
  void end_of_backward(int chunk, bool last) override {
    dense_.end_of_backward(chunk, last);
    routed_.end_of_backward(chunk, last);
  }
  void finish_gradients() override {
    dense_.finish_gradients();
    routed_.finish_gradients();
  }
  void after_optimizer() override {
    const std::uint32_t gathers[] = {dense_.gather_after_optimizer(), routed_.gather_after_optimizer()};
    for (const std::uint32_t op : gathers)
      if (op != StageEmitter::kNoOp) emitter_.wait_for(op);
    emitter_.join();
  }

  std::span<const std::uint32_t> host_copies() const override {
    copies_ = dense_.host_copies();
    copies_.insert(copies_.end(), routed_.host_copies().begin(), routed_.host_copies().end());
    return copies_;
  }

 private:
  GroupBuckets& of(Weights weights) { return weights == Weights::dense ? dense_ : routed_; }

  StageEmitter& emitter_;
  GroupBuckets dense_, routed_;
  mutable std::vector<std::uint32_t> copies_;
};
}  // namespace

double ChunkParameters::total(Weights weights) const {
  double sum = 0;
  for (const Gradient& gradient : gradients)
    if (gradient.weights == weights) sum += gradient.parameters;
  return sum;
}

std::unique_ptr<DataParallel> make_data_parallel(std::vector<ChunkParameters> chunks, const Plan& plan,
                                                 const ComputeModel& compute, const Slots& slots,
                                                 StageEmitter& emitter) {
  if (plan.loops_over_layers && slots.data != Slots::kNoSlot)
    return make_loop(std::move(chunks), plan, slots, emitter);
  if (plan.wrap_least > 0 && slots.data != Slots::kNoSlot)
    return make_nested_units(std::move(chunks), plan, compute, slots, emitter);
  if (plan.shards.by_unit && slots.data != Slots::kNoSlot)
    return make_units(std::move(chunks), plan, compute, slots, emitter);
  return std::make_unique<Buckets>(chunks, plan, compute, slots, emitter);
}
}  // namespace topsim::workloads
