// Accelerators and models that the tests of this folder share; figures as in the catalogue, so that the tests
// need no files.
#pragma once

#include "topology/catalogue.hpp"
#include "workloads/compute/compute_model.hpp"
#include "workloads/model.hpp"
#include "workloads/spec.hpp"

namespace topsim::workloads::testing {

// Constants of compute_model.hpp, fitted on the GEMMs of Vidur (arXiv 2405.05465).
inline topology::Accelerator a100() {
  topology::Accelerator a;
  a.id = "a100-sxm4-80gb";
  a.dense_flops = {{"fp32", 19.5e12}, {"tf32", 156e12}, {"bf16", 312e12}, {"fp16", 312e12}};
  a.achievable_flops = {{"bf16", 271.2e12}};
  a.memory = Bytes(80LL << 30);
  a.memory_bandwidth = BytesPerSecond(2.039e12);
  a.norm_fraction_eager = 0.35, a.elementwise_fraction_eager = 0.5, a.add_fraction_eager = 0.84;
  a.fused_fraction = 0.8;
  a.compute_units = 108;
  a.compute_capability = 80;
  a.gemm["bf16"] = {0.818, 73, 0.733, from_microseconds(4.3), 4.5, "fitted"};
  return a;
}

inline topology::Accelerator h100() {
  topology::Accelerator a;
  a.id = "h100-sxm5";
  a.dense_flops = {
      {"fp32", 66.9e12}, {"tf32", 494.7e12}, {"bf16", 989.4e12}, {"fp16", 989.4e12}, {"fp8", 1978.9e12}};
  a.achievable_flops = {{"bf16", 794.5e12}, {"fp8", 1402.6e12}};
  a.memory = Bytes(80LL << 30);
  a.memory_bandwidth = BytesPerSecond(3.35e12);
  a.norm_fraction_eager = 0.35, a.elementwise_fraction_eager = 0.5, a.add_fraction_eager = 0.84;
  a.fused_fraction = 0.8;
  a.attention_reference = {90, FlopsPerSecond(67e12), FlopsPerSecond(989e12), 132};
  a.compute_units = 132;
  a.compute_capability = 90;
  a.gemm["bf16"] = {0.946, 0, 0.830, from_microseconds(6.3), 16.8, "fitted"};
  return a;
}

// Forward, fp16: `heads` heads of `width` over a sequence of `tokens`.
inline double attention_seconds(const ComputeModel& compute, int heads, int tokens, double width,
                                AttentionKernel kernel) {
  AttentionShape shape;
  shape.heads = shape.kv_heads = heads;
  shape.queries = shape.keys = tokens;
  shape.head_dim = shape.value_dim = width;
  return compute.attention_forward(shape, kernel, Precision::fp16).seconds;
}

inline ModelSpec gpt(int layers, int hidden, int heads, int vocab = 51200, int sequence = 2048) {
  ModelSpec model;
  model.layers = layers;
  model.hidden = hidden;
  model.heads = heads;
  model.vocab = vocab;
  model.sequence = sequence;
  model.tied_embeddings = true;
  return model;
}

inline ModelSpec llama3_70b() {
  ModelSpec model;
  model.layers = 80, model.hidden = 8192, model.heads = 64, model.kv_heads = 8, model.ffn = 28672;
  model.vocab = 128256, model.gated_ffn = true, model.sequence = 8192;
  return model;
}

// Llama-3 8B with selective recompute.
inline WorkloadSpec llama3_8b(const char* framework) {
  WorkloadSpec workload;
  workload.model = llama3_70b();
  workload.model.layers = 32, workload.model.hidden = 4096, workload.model.heads = 32;
  workload.model.ffn = 14336;
  workload.model = complete(workload.model);
  workload.framework = framework;
  workload.plan.recompute = RecomputeSpec{RecomputeKind::selective, {}};
  return workload;
}

inline ModelSpec llama3_405b() {
  ModelSpec model = llama3_70b();
  model.layers = 126, model.hidden = 16384, model.heads = 128, model.ffn = 53248;
  return model;
}

// The first scenario of the contract: tensor 8 x pipeline 2 x data 4.
inline WorkloadSpec llama3_70b_on_64() {
  WorkloadSpec workload;
  workload.model = llama3_70b();
  workload.plan.tp = 8, workload.plan.pp = 2, workload.plan.dp = 4;
  workload.plan.global_batch = 128;
  return workload;
}

// 4 layers of 12 h^2 + 13 h = 12,596,224 parameters, embedding (51200 + 2048) h, head 51200 h.
inline WorkloadSpec small(std::string framework, int accumulation = 1) {
  WorkloadSpec workload;
  workload.model = gpt(4, 1024, 16);
  workload.model.tied_embeddings = false;
  workload.framework = std::move(framework);
  workload.plan.grad_accumulation = accumulation;
  return workload;
}
}  // namespace topsim::workloads::testing
