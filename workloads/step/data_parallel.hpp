// What data-parallel ranks exchange during a step, as hooks that a stage's program calls at the same places
// as a framework calls its own.
//
//   Buckets  whole parameters on every rank; gradients are reduced in buckets as they become ready (Megatron,
//            DistributedDataParallel, DeepSpeed ZeRO 0-2), updated parameters gathered where the optimiser is
//            sharded. Routed experts have buckets and a group of their own.
//   Units    parameters in shards; each unit (a layer, the embedding, the head) is gathered before it is used
//            and its gradients are reduce-scattered (FSDP2, DeepSpeed ZeRO-3). Experts on ranks of their own
//            are units inside their layers.
//   Nested   the same with parts of layers as units (Plan::wrap_least), as PyTorch's first FSDP runs them.
//   Loop     parameters in shards, layers as passes of one compiled loop (JAX): what a pass gathers and
//            reduces begins and ends within it, matrix by matrix.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "workloads/compute/compute_model.hpp"
#include "workloads/step/stage_emitter.hpp"

namespace topsim::workloads {

// A unit within a layer, and where its weights are among the layer's parameters as a forward pass reads them.
struct NestedUnit {
  double parameters = 0, begin = 0, end = 0;
};

// Parameters of a rank's chunks of the model. Units are in forward order; `gradients` are the parameters
// completed by each piece of the backward pass, in its order.
struct ChunkParameters {
  struct Gradient {
    double parameters;
    Weights weights;
  };
  int stage = 0;                                  // of the model: all holders exchange chunks in this order
  std::vector<double> units;                      // all of a unit, frozen ones too
  std::vector<double> unit_gradients;             // those that are trained
  std::vector<std::vector<double>> unit_gathers;  // all of a unit, gather by gather
  std::vector<std::vector<NestedUnit>> wrapped;   // Plan::wrap_least: units within a layer; none at the ends
  // Of a unit, experts whose shards other ranks hold (Plan::shards_experts); the above are without them.
  std::vector<double> routed_units, routed_unit_gradients;
  std::vector<Gradient> gradients;
  double ends = 0;  // parameters of embedding and head that are trained
  [[nodiscard]] double total(Weights weights) const;
};

class DataParallel {
 public:
  virtual ~DataParallel() = default;
  // Before a unit's kernels; where a piece reads weights; the same backward, where a piece completes
  // gradients. `last`: the step's last backward of this chunk. `reads_again`: in a recompute.
  virtual void before_forward(int chunk, int unit, int micro_batch) = 0;
  virtual void reads(int chunk, Weights weights, double parameters, int micro_batch) = 0;
  virtual void after_forward(int chunk, int unit) = 0;
  virtual void before_backward(int chunk, int unit) = 0;
  virtual void reads_again(int /*chunk*/, Weights, double /*parameters*/) {}
  virtual void completes(int chunk, Weights weights, double parameters, bool last) = 0;
  virtual void after_backward(int chunk, int unit, bool last) = 0;
  virtual void end_of_backward(int chunk, bool last) = 0;
  // After the last backward of the stage: the compute stream waits for every reduction. After the optimiser.
  virtual void finish_gradients() = 0;
  virtual void after_optimizer() = 0;
  // Copies of gradients to the host, with offload; empty where the gradients are still here.
  [[nodiscard]] virtual std::span<const std::uint32_t> host_copies() const = 0;
};

// REQUIRES: everything outlives the result.
[[nodiscard]] std::unique_ptr<DataParallel> make_data_parallel(std::vector<ChunkParameters> chunks,
                                                               const Plan& plan, const ComputeModel& compute,
                                                               const Slots& slots, StageEmitter& emitter);
[[nodiscard]] std::unique_ptr<DataParallel> make_loop(std::vector<ChunkParameters> chunks, const Plan& plan,
                                                      const Slots& slots, StageEmitter& emitter);
[[nodiscard]] std::unique_ptr<DataParallel> make_nested_units(std::vector<ChunkParameters> chunks,
                                                              const Plan& plan, const ComputeModel& compute,
                                                              const Slots& slots, StageEmitter& emitter);
[[nodiscard]] std::unique_ptr<DataParallel> make_units(std::vector<ChunkParameters> chunks, const Plan& plan,
                                                       const ComputeModel& compute, const Slots& slots,
                                                       StageEmitter& emitter);
}  // namespace topsim::workloads
