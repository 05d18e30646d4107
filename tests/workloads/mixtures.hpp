// A small mixture of experts, and what tests read from its program.
#pragma once

#include <optional>
#include <vector>

#include "tests/workloads/fixtures.hpp"
#include "workloads/training_step.hpp"

namespace topsim::workloads::testing {

// 8 experts of width 2048, 2 per token; h 1024; 4 layers; 512 tokens per micro-batch.
inline WorkloadSpec small_moe(int tp, int ep, std::optional<int> etp = {}) {
  WorkloadSpec workload;
  workload.model = gpt(4, 1024, 16);
  workload.model.gated_ffn = true, workload.model.tied_embeddings = false;
  workload.model.experts.count = 8, workload.model.experts.top_k = 2, workload.model.experts.ffn = 2048;
  workload.sequence = 512;
  workload.plan.tp = tp, workload.plan.ep = ep, workload.plan.etp = etp;
  workload.plan.grad_accumulation = 2;
  return workload;
}

inline std::vector<program::Op> collectives(const program::Program& program, program::Dimension dimension) {
  std::vector<program::Op> ops;
  for (const auto& op : program.classes[0].ops) {
    if (op.kind != program::OpKind::collective) continue;
    const CommunicatorId id = program.communicator_slots[op.slot][0];
    if (program.communicators[id.index()].dimension == dimension) ops.push_back(op);
  }
  return ops;
}

inline double flops_of_all_ranks(const program::Program& program) {
  double total = 0;
  for (const auto rank_class : program.class_of_rank)
    for (const auto& op : program.classes[rank_class].ops) total += op.flops.value();
  return total;
}

// The ranks of every communicator of a dimension.
inline std::vector<std::vector<std::size_t>> groups(const program::Program& program,
                                                    program::Dimension dimension) {
  std::vector<std::vector<std::size_t>> result;
  for (std::size_t c = 0; c < program.communicators.size(); ++c) {
    if (program.communicators[c].dimension != dimension) continue;
    auto& ranks = result.emplace_back();
    for (const RankId rank : program.members_of(CommunicatorId(c))) ranks.push_back(rank.index());
  }
  return result;
}

// The same with latent attention, a shared expert and a dense first layer.
inline WorkloadSpec small_deepseek(int tp, int ep) {
  WorkloadSpec workload = small_moe(tp, ep, 1);
  workload.model.attention = {AttentionKind::mla, {}, true, 384, 128, 64, 32, 64};
  workload.model.dense_layers = 1, workload.model.ffn = 4096;
  workload.model.experts.shared = 1;
  return workload;
}
}  // namespace topsim::workloads::testing
