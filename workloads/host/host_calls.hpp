// Calls of the host in one pass through a layer, as counted in a framework's source.
#pragma once

namespace topsim::workloads {

struct HostCalls {
  double operators = 0;  // dispatched to a kernel: allocation, autograd node, launch
  double views = 0;      // dispatched, no kernel: view, transpose, split
  double functions = 0;  // torch.autograd.Function written in Python, TorchScript: either way
  double modules = 0;    // nn.Module.__call__
  friend HostCalls operator+(const HostCalls& a, const HostCalls& b) {
    return {a.operators + b.operators, a.views + b.views, a.functions + b.functions, a.modules + b.modules};
  }
};

struct HostProfile {
  HostCalls forward, backward;
  HostCalls checkpoint;  // what full recompute adds: states of the random generators, a nested backward
  double parameter_tensors = 0;    // of a layer
  double optimizer_operators = 0;  // for each of them
  HostCalls batch{};               // to fetch a micro-batch and make what goes with it
  double batch_collectives = 0;    // broadcasts of it over the tensor group
  bool waits_for_batch = false;    // the host reads its size back from the accelerator
  bool batch_everywhere = false;   // stages between the first and the last fetch it too
};
}  // namespace topsim::workloads
