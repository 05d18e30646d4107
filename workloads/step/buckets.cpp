// Whole parameters on every rank, gradients in buckets: Megatron, DistributedDataParallel, ZeRO 0-2.
#include <algorithm>
#include <numeric>

#include "workloads/step/data_parallel.hpp"

namespace topsim::workloads {
namespace {

using program::CollectiveKind;
using program::Phase;

class Buckets final : public DataParallel {
 public:
  Buckets(const std::vector<ChunkParameters>& chunks, const Plan& plan, const ComputeModel& compute,
          const Slots& slots, StageEmitter& emitter)
      : plan_(plan), compute_(compute), slots_(slots), emitter_(emitter) {
    for (const ChunkParameters& given : chunks) {
      Chunk& chunk = chunks_.emplace_back();
      chunk.parameters = given.total();
      // Walk the backward once to know the buckets: each closes as soon as it is full.
      double open = 0;
      for (const double parameters : given.gradients) {
        open += parameters;
        if (full(open, chunk.buckets.size())) chunk.buckets.push_back(open), open = 0;
      }
      if (open > 0) chunk.buckets.push_back(open);
    }
  }

  void before_forward(int, int, int) override {}
  void after_forward(int, int) override {}
  void before_backward(int, int) override {}
  void after_backward(int, int, bool) override {}

  // Before the first use of each bucket's weights its gather must have ended; the next one is launched then.
  void reads(int index, double parameters, int micro_batch) override {
    if (plan_.cast_weights) cast(parameters);
    if (!plan_.overlap_param_gather || micro_batch > 0) return;
    Chunk& chunk = at(index);
    chunk.used += parameters;
    while (chunk.gathered < chunk.buckets.size() && chunk.covered < chunk.used - 0.5) {
      if (chunk.gather.size() <= chunk.gathered) gather(chunk);
      gather(chunk);
      chunk.covered += chunk.buckets[chunk.buckets.size() - 1 - chunk.gathered];
      emitter_.wait_for(chunk.gather[chunk.gathered++]);
    }
  }

  void completes(int index, double parameters, bool last) override {
    if (!reduces(last)) return;
    Chunk& chunk = at(index);
    chunk.ready += parameters;
    if (full(chunk.ready, chunk.reduced)) reduce(chunk);
  }

  void end_of_backward(int index, bool last) override {
    if (!reduces(last) || plan_.bucket_elements <= 0) return;
    Chunk& chunk = at(index);
    reduce(chunk);
    chunk.reduced = 0;
  }

  void finish_gradients() override {
    if (slots_.data == Slots::kNoSlot) return;
    for (Chunk& chunk : chunks_) reduce(chunk);
    for (const std::uint32_t reduction : reductions_) emitter_.wait_for(reduction);
    // What was copied into a bucket is copied back.
    if (plan_.bucket_copies > 1) copy((plan_.bucket_copies - 1) * total());
  }

  void after_optimizer() override {
    if (plan_.optimizer_shards <= 1 || plan_.overlap_param_gather) return;
    emitter_.wait_for(emitter_.collective("data", slots_.data, Phase::parameter_sync, "parameters",
                                          CollectiveKind::all_gather,
                                          total() * plan_.gathered_parameter_bytes));
    emitter_.join();
  }

 private:
  struct Chunk {
    double parameters = 0;
    std::vector<double> buckets;        // gradients in elements, in the order in which they become ready
    std::vector<std::uint32_t> gather;  // ops that gather the buckets' parameters, in forward order
    std::size_t gathered = 0;           // buckets the forward has waited for
    double used = 0, covered = 0;  // parameters that forward pieces have read; that gathered buckets hold
    double ready = 0;              // gradients ready since the last reduction
    std::size_t reduced = 0;       // buckets of this backward
  };
  Chunk& at(int index) { return chunks_[static_cast<std::size_t>(index)]; }
  double total() const {
    return std::accumulate(chunks_.begin(), chunks_.end(), 0.0,
                           [](double sum, const Chunk& chunk) { return sum + chunk.parameters; });
  }
  bool reduces(bool last) const {
    return slots_.data != Slots::kNoSlot && (last || plan_.reduce_every_micro_batch);
  }
  bool full(double elements, std::size_t bucket) const {
    const double limit =
        bucket == 0 && plan_.first_bucket_elements > 0 ? plan_.first_bucket_elements : plan_.bucket_elements;
    return limit > 0 && elements >= limit;
  }

  void cast(double parameters) {  // fp32 weights read, 16-bit copies written
    emitter_.compute(Part::norm, Phase::forward,
                     compute_.memory_bound(parameters * (plan_.parameter_bytes + bytes_of(plan_.activations)),
                                           MemoryKernel::elementwise));
  }
  void copy(double parameters) {
    emitter_.compute(Part::optimizer, Phase::gradient_sync,
                     compute_.memory_bound(parameters * 2 * plan_.gradient_bytes, MemoryKernel::elementwise));
  }

  void gather(Chunk& chunk) {
    const std::size_t next = chunk.gather.size();
    if (next >= chunk.buckets.size()) return;
    const double elements = chunk.buckets[chunk.buckets.size() - 1 - next];
    chunk.gather.push_back(emitter_.collective("data", slots_.data, Phase::parameter_sync, "parameters",
                                               CollectiveKind::all_gather,
                                               elements * plan_.gathered_parameter_bytes));
  }

  void reduce(Chunk& chunk) {
    if (chunk.ready <= 0) return;
    if (plan_.bucket_copies > 0) copy(chunk.ready);
    const bool scatter = plan_.optimizer_shards > 1 && plan_.scatter_gradients;
    const std::uint32_t op =
        emitter_.collective("data", slots_.data, Phase::gradient_sync, "gradients",
                            scatter ? CollectiveKind::reduce_scatter : CollectiveKind::all_reduce,
                            chunk.ready * plan_.gradient_bytes);
    chunk.ready = 0;
    ++chunk.reduced;
    if (plan_.overlap_grad_reduce) {
      reductions_.push_back(op);
    } else {
      emitter_.wait_for(op);  // on the compute stream itself
    }
  }

  const Plan& plan_;
  const ComputeModel& compute_;
  const Slots& slots_;
  StageEmitter& emitter_;
  std::vector<Chunk> chunks_;
  std::vector<std::uint32_t> reductions_;
};
}  // namespace

double ChunkParameters::total() const {
  return std::accumulate(gradients.begin(), gradients.end(), 0.0);
}

std::unique_ptr<DataParallel> make_data_parallel(std::vector<ChunkParameters> chunks, const Plan& plan,
                                                 const ComputeModel& compute, const Slots& slots,
                                                 StageEmitter& emitter) {
  if (plan.unit_shards && slots.data != Slots::kNoSlot)
    return make_units(std::move(chunks), plan, compute, slots, emitter);
  return std::make_unique<Buckets>(chunks, plan, compute, slots, emitter);
}
}  // namespace topsim::workloads
