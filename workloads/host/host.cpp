#include "workloads/host/host.hpp"

#include "workloads/plan.hpp"

namespace topsim::workloads {
namespace {
using namespace topsim::literals;

double kernels_of(const PieceList& list) {
  double kernels = 0;
  for (const Piece& piece : list.pieces()) kernels += piece.collective ? 0 : piece.cost.kernels;
  return kernels;
}

void spread(PieceList& list, Duration total) {
  const double kernels = kernels_of(list);
  if (kernels > 0) list.set_host_time(seconds(total) / kernels);
}
}  // namespace

// Published on a DGX H100:
//   nn.Linear forward 13.5 us = a module and an operator            NVIDIA/TransformerEngine issue 2053
//   Megatron's ColumnParallelLinear forward 74 us
//     = a module, an operator, 3 views and 2 Functions              NVIDIA/TransformerEngine pull request
//     1191
// A call of nn.Module is 158 Python opcodes (dev-discuss.pytorch.org/t/110), some 20 ns each; a view has the
// dispatch of an operator without allocation and launch, 2 to 3 us (recalled). That leaves 26 us for a
// Function with Megatron's Python around it. A collective: the Python wrapper, two events and the launch, as
// two operators and a half (estimated).
const HostTimes& host_times() {
  static const HostTimes times{10_us, 2500_ns, 26_us, 3500_ns, 25_us};
  return times;
}

Duration host_time(const HostCalls& calls) {
  const HostTimes& t = host_times();
  return from_seconds(calls.operators * seconds(t.operation) + calls.views * seconds(t.view) +
                      calls.functions * seconds(t.function) + calls.modules * seconds(t.module));
}

void set_host_time(PiecePair& layer, const Plan& plan, RecomputeKind recompute) {
  if (!plan.counts_host_calls) return;
  const HostProfile& host = plan.host;
  const auto scaled = [&](const HostCalls& calls) {
    return from_seconds(seconds(host_time(calls)) * plan.host_factor);
  };
  spread(layer.forward, scaled(host.forward));
  spread(layer.backward,
         scaled(recompute == RecomputeKind::full ? host.backward + host.forward + host.checkpoint
                                                 : host.backward));
}
}  // namespace topsim::workloads
