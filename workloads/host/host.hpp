// What the host spends on a step. Eager PyTorch issues a rank's kernels from one thread, in order, ahead of
// the accelerator; where it needs longer than the kernels do, the accelerator waits.
//
//   t = factor (in_step (operators t_o + views t_v + functions t_f + modules t_m + linears t_l
//               + opcodes t_b) + products t_p + launches t_k)
//
// Calls are counted in a framework's source, pass by pass (framework/); the time of a call is published,
// on the host of a DGX H100 (Xeon 8480C); `factor` is how much slower the host at hand is (catalogue,
// "host_factor"); `in_step` how much longer a framework's calls take in a step than in the loops where they
// were timed alone (framework/).
#pragma once

#include "sim/base/units.hpp"
#include "workloads/layer/pieces.hpp"
#include "workloads/model.hpp"

namespace topsim::workloads {

struct HostTimes {
  Duration operation, view, function, module, collective, linear, product, kernel, opcode;
};
[[nodiscard]] const HostTimes& host_times();

[[nodiscard]] Duration host_time(const HostCalls& calls, double in_step = 1);

// Writes the host's share of a layer into its pieces, spread over their launches; of a mixture's layer part
// by part.
void set_host_time(PiecePair& layer, LayerKind kind, const ModelSpec& model, const Plan& plan,
                   RecomputeKind recompute);
}  // namespace topsim::workloads
