// Calls of the host in one pass through a layer, as counted in a framework's source.
#pragma once

namespace topsim::workloads {

struct HostCalls {
  double operators = 0;  // dispatched to a kernel: allocation, autograd node, launch
  double views = 0;      // dispatched, no kernel: view, transpose, split
  double functions = 0;  // torch.autograd.Function written in Python, TorchScript: either way
  double modules = 0;    // nn.Module.__call__
  double linears = 0;    // passes of a linear layer of Transformer Engine 2
  double products = 0;   // cuBLASLt calls for a list of matrices, one by one in C++
  double launches = 0;   // kernels launched one by one in C++
  double opcodes = 0;    // Python that is none of these
  friend HostCalls operator+(const HostCalls& a, const HostCalls& b) {
    return {a.operators + b.operators, a.views + b.views,     a.functions + b.functions,
            a.modules + b.modules,     a.linears + b.linears, a.products + b.products,
            a.launches + b.launches,   a.opcodes + b.opcodes};
  }
  friend HostCalls operator*(const HostCalls& a, double k) {
    return {a.operators * k, a.views * k,    a.functions * k, a.modules * k,
            a.linears * k,   a.products * k, a.launches * k,  a.opcodes * k};
  }
};

// Forward, backward.
struct HostPasses {
  HostCalls forward, backward;
  friend HostPasses operator+(const HostPasses& a, const HostPasses& b) {
    return {a.forward + b.forward, a.backward + b.backward};
  }
  friend HostPasses operator*(const HostPasses& a, double k) { return {a.forward * k, a.backward * k}; }
};

// A mixture's layer, by its parts.
struct ExpertCalls {
  bool counted = false;
  HostPasses attention, latent;  // latent attention: in addition to the former
  HostPasses router, shared;
  HostPasses exchange, fused_exchange;  // of Megatron's all-to-all dispatcher; of DeepEP
  HostPasses experts, each;             // what each local expert adds
  HostPasses narrow, each_narrow;       // in 8 bits and fewer, beside them
  HostPasses normed_heads;              // norms of queries and keys
  // Of the backward pass, that frozen weights save: in attention, in the shared experts, of each expert.
  HostCalls frozen_attention{}, frozen_shared{}, frozen_each{};
  HostPasses node;  // where exchanges overlap: extra cost of each part launched separately
};

// What hooks of an engine add to every layer.
struct HookCalls {
  HostPasses module;     // each call of a module
  HostPasses matrix;     // each matrix that is gathered and released
  HostCalls gradient{};  // each gradient of a tensor, in the backward pass
  double modules = 0;    // that are called, of a dense layer with gate and rotary positions
  double adapter = 0;    // modules that a low-rank adapter adds, its two matrices among them
};

struct HostProfile {
  HostCalls forward, backward;
  HostCalls checkpoint;  // what full recompute adds: states of the random generators, a nested backward
  double parameter_tensors = 0;    // of a layer
  double optimizer_operators = 0;  // for each of them
  HostCalls batch{};               // to fetch and prepare a micro-batch
  double batch_collectives = 0;    // broadcasts of it over the tensor group
  bool waits_for_batch = false;    // the host reads its size back from the accelerator
  bool batch_everywhere = false;   // stages between the first and the last fetch it too
  ExpertCalls experts{};
  double in_step = 1;  // how much longer a Python call takes in a step than in a timing loop
  HookCalls hooks{};
  HostPasses plain_softmax{};  // beside forward and backward, where Megatron's fused softmax does not fit
  HostCalls frozen{};          // of the backward pass, that frozen weights save
};
}  // namespace topsim::workloads
