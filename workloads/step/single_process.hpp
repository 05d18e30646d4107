// torch.nn.DataParallel: one Python process drives every accelerator; device 0 holds the model
// (torch/nn/parallel/{data_parallel,replicate,scatter_gather,comm}.py).
//
//   device 0   sends each replica its inputs, broadcasts all parameters (buckets of 10 MiB)     every forward
//   replica i  computes its share of the batch forward, sends its whole output to device 0
//   device 0   loss over all outputs; sends each replica the gradient of its output, one after the other
//   replica i  computes backward; then all gradients are reduced to device 0, bucket by bucket, after it
//   device 0   optimiser; the others wait
//
// Broadcasts and reductions run on the devices' compute streams: nothing overlaps them. The interpreter's
// lock lets one thread launch at a time: forward passes, broadcasts and reductions issue their kernels in
// turn (Plan::interpreter_threads); the backward pass is issued by autograd's own threads, one per device.
#pragma once

#include "workloads/step/stage_program.hpp"

namespace topsim::workloads {

// One class a device, all communicators and peers. `loss`: the head's lists for the whole batch, of which
// only the loss is taken. REQUIRES: plan.single_process; tp, pp and cp are 1.
void add_single_process(program::Program& program, const Plan& plan, const ComputeModel& compute,
                        const StepPieces& pieces, const PiecePair& loss, const ModelSpec& model);
}  // namespace topsim::workloads
