// Accelerator memory of one training step, in parts, per pipeline stage.
//
// Model states (18 bytes a parameter with fp32 gradients): working copy 2, gradients 4, master copy 4, both
// moments 8; what ZeRO shards is divided by the ranks that share it (1: the last three, 2: gradients too, 3:
// all). Beside them (Psi parameters of the rank, N ranks that share):
//   DDP + autocast   weights 4, their 16-bit copies 2, gradients 4, buckets 4, moments 8: 22 Psi
//   FSDP2            16 Psi / N; in 16 bits root and a unit, and the buffers of two gathers (none of one
//                    rank, which gathers nothing); gradients of one unit in 16 bits and in 32
//   Megatron-FSDP    18 Psi / N; in 16 bits embedding and head and two units; buffers for the gradients of
//                    two units (8-bit copies of weights that are kept between micro-batches are not counted)
//   ZeRO-0, 1        16 Psi, 4 Psi + 12 Psi / N, and one bucket of 5e8 elements
//   ZeRO-2           2 Psi + 14 Psi / N and one bucket
//   ZeRO-3           16 Psi / N, 1e9 live parameters and one bucket
// DeepSpeed updates from fp32 copies of its 16-bit gradients, which exist when activations and buckets are
// gone (Plan::update_copy). Where that needs more, it is the peak, and `update` is what the copies add. So it
// is with the roots of the second moments in PyTorch's foreach Adam, 4 each: 24 Psi in DDP, 20 Psi / N in
// FSDP. Megatron's fp32 gradients beside 16-bit ones stay (20 Psi; 4 Psi + 16 Psi / N).
//
// Activations of one layer and one micro-batch (Korthikanti et al. 2022, section 4; s sequence, b
// micro-batch, h hidden, a heads, t tensor-parallel size; 16-bit GPT shape with dropout), divided by the
// context-parallel size:
//   none, unfused attention   s b h (10 + 24/t + 5 a s/(h t))   sequence parallel: s b h/t (34 + 5 a s/h)
//   selective                 s b h (10 + 24/t)                 sequence parallel: 34 s b h/t
//   full                      2 s b h                           sequence parallel: 2 s b h/t
// Flash attention is `selective` and, unless it runs again, the logarithm of every row's sum, 4 s b a/t.
// With a parallel residual both norms read one tensor, and a shared one leaves one for both products:
//   s b h (8 + 24/t) of two norms, s b h (6 + 24/t) of one          sequence parallel: 32 and 30 s b h/t
// and of other shapes by the same list of tensors. A layer of experts keeps, for each of the etp x T x top_k
// rows that arrive (T rows of the rank), the input of FC1 and what follows it. How many micro-batches are
// held follows from the schedule's order. Where the loss is, layers are computed again and leave gradients
// after it, in the place of the logits (bytes of each: Framework::loss). So do gradients that pass through a
// layer, which no closed form above has (working_set.hpp).
//
// Totals are the bytes allocated at the peak. Of PyTorch's sets (ddp, fsdp) they are what its allocator
// reserves for these tensors in segments that expand, by stream and for the loss (Framework::loss), but for
// the holes that temporaries leave between kept tensors.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "topology/catalogue.hpp"
#include "workloads/model.hpp"
#include "workloads/plan.hpp"
#include "workloads/spec.hpp"

namespace topsim::workloads {

struct MemoryParts {
  double weights = 0, gradients = 0, optimizer = 0;  // bytes
  double activations = 0;                            // kept for the backward pass, at the peak
  double recompute = 0;                              // of the layer that is being computed again
  double working = 0;   // in the layer whose backward pass is running (working_set.hpp)
  double kv_cache = 0;  // inference: keys and values of all requests
  double update = 0;    // in addition to the states, where the optimiser's step is the peak
  double host = 0;      // offloaded to host memory, by one rank; not in the total
  [[nodiscard]] double total() const {
    return weights + gradients + optimizer + activations + recompute + working + kv_cache + update;
  }
};

struct MemoryUse {
  std::vector<MemoryParts> stages;
  std::size_t fullest = 0;       // index of the stage that needs most
  const char* holder = "stage";  // what `stages` are, for messages
  double capacity = 0;           // of one accelerator
  double share = 1;              // of it, that may be filled
  double host = 0;               // offloaded to the memory of the node whose ranks offload most
  double host_capacity = 0;      // of a node; 0: not known
  [[nodiscard]] const MemoryParts& peak() const { return stages[fullest]; }
  [[nodiscard]] double room() const { return share * capacity; }
  [[nodiscard]] bool fits_accelerator() const { return peak().total() <= room(); }
  [[nodiscard]] bool fits_host() const { return host_capacity <= 0 || host <= host_capacity; }
  [[nodiscard]] bool fits() const { return fits_accelerator() && fits_host(); }
};

// REQUIRES: model complete(), plan resolved for it.
[[nodiscard]] double layer_activation_bytes(const ModelSpec& model, const Plan& plan, RecomputeKind recompute,
                                            LayerKind kind = LayerKind::dense);
// Of one micro-batch on a part of the model: what its forward pass keeps, and what its weight gradients still
// need when its input gradients are there, where they are put off: input and gradient of output of every
// matrix (32 s b h of a GPT layer; Qi et al., arXiv:2401.10241, table 1). Of a tensor rank s b h (8 + 24/t),
// and with sequence parallelism s b h (4 + 28/t).
struct StageActivations {
  double forward = 0, until_weight = 0;  // bytes
};
// REQUIRES: stage in [0, plan.global_stages()).
[[nodiscard]] StageActivations stage_activations(const ModelSpec& model, const Plan& plan, int stage);
// The largest kind of layer that full recompute holds at a time: with experts where there are any.
[[nodiscard]] inline LayerKind largest_kind(const ModelSpec& model) {
  return model.experts.count > 0 ? LayerKind::experts : LayerKind::dense;
}
[[nodiscard]] MemoryUse memory_use(const ModelSpec& model, const Plan& plan, Bytes capacity);

// The same from what the user wrote. Throws ConfigError when the plan is wrong, not when it does not fit.
[[nodiscard]] MemoryUse memory_use(const WorkloadSpec& workload, const topology::Accelerator& accelerator,
                                   std::uint32_t accelerators);
// Where it does not fit: the cheapest of the changes tried with which it does, as "zero = 3 would fit (60.1
// GiB)"; of task lora, first one of what it alone can save, then of the others. Empty where none is enough.
[[nodiscard]] std::string fitting_change(const WorkloadSpec& workload,
                                         const topology::Accelerator& accelerator,
                                         std::uint32_t accelerators);
// Throws ConfigError when a stage does not fit, or what a node's ranks offload does not fit its host: by how
// much, which part is largest, and a change with which it fits.
void require_fit(const WorkloadSpec& workload, const topology::Accelerator& accelerator,
                 std::uint32_t accelerators);
}  // namespace topsim::workloads
