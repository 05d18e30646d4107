// Optimiser states in host memory or on NVMe (DeepSpeed ZeRO-Offload and ZeRO-Infinity, FSDP's
// CPUOffloadPolicy, Megatron's optimizer_cpu_offload). N ranks share Psi parameters:
//   after each reduction   4 Psi / N bytes of its gradients to the host, beside the backward pass
//   update                 the host's Adam: 28 bytes a parameter through host memory (reads gradient,
//                          parameter and both moments, writes the last three), at the node's memory
//                          bandwidth x 0.43, shared by the node's ranks; NVMe: 12 bytes a parameter read
//                          before and written after it
//   then                   2 Psi / N bytes of parameters back, and the usual gather
// DeepSpeed sums the gradients of micro-batches on the host, in 16 bits (accumulates_on_host). Stage 2
// (stage_1_and_2.py, async_accumulate_grad_in_cpu_via_gpu; without accumulation it is not called): what is
// there comes up, but in the first micro-batch, and is added; the sum goes down, but in the last, which sends
// fp32. 2 Psi / N each. Stage 3 (stage3.py, partition_grads): 2 Psi / N down and 2 up in every micro-batch,
// and fp32 down in the last. Copies are on the stream that reduces: the compute stream itself without
// overlap_comm. Host memory is taken to be pinned (offload_optimizer.pin_memory; off by default).
// FSDP2 sums them there: the thread that launches kernels waits for the copies of all but the first
// micro-batch and adds them, 12 Psi / N bytes through host memory at the same rate, while the accelerator has
// nothing to do.
// FSDP keeps the parameters there too: a unit's shard goes up before every gather. Where its weights are kept
// in 16 bits (precision.optimizer), so are gradients and moments: 2 bytes down, 14 through host memory, 6 of
// states.
// 0.43: Adam on 10 billion parameters in 2.57 s on two Xeon 8168, 256 GB/s (Ren et al. 2021, table 4;
// recalled).
#pragma once

#include "workloads/step/stage_emitter.hpp"

namespace topsim::workloads {

inline constexpr std::uint8_t kToHost = 0, kFromHost = 1;

// Of a step's micro-batches.
struct MicroBatch {
  bool first = true, last = true;
};
// Gradients of `elements` parameters of this rank's shard, after the op that reduced them. Returns the last
// copy.
std::uint32_t exchange_gradients(StageEmitter& emitter, const Plan& plan, double elements,
                                 std::span<const std::uint32_t> after, bool follows_compute,
                                 MicroBatch which);
// All of them at once, as the host keeps them. Returns the copy.
std::uint32_t offload_gradients(StageEmitter& emitter, double elements, const Plan& plan,
                                std::span<const std::uint32_t> after, bool follows_compute);
// The update of `parameters` on the host; `copies`: gradients in transfer to the host. The compute stream
// waits for the parameters' return.
void host_optimizer(StageEmitter& emitter, double parameters, const Plan& plan,
                    std::span<const std::uint32_t> copies);
}  // namespace topsim::workloads
