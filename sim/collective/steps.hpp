// Collectives as messages: the reference for the pipelined form, and what the packet model carries. Messages
// are NCCL's slices: a chunk of a Simple ring travels in two, which overlap, others in one. Connections keep
// NCCL's order with as many slices in flight as its eight slots hold.
#pragma once

#include <initializer_list>
#include <utility>
#include <vector>

#include "sim/collective/placement.hpp"
#include "sim/collective/time_model.hpp"

namespace topsim::collective {
class UsageBuilder;

[[nodiscard]] StepPlan ring_steps(CollectiveKind kind, std::int64_t bytes, const Choice& choice,
                                  const Placement& placement, const Timing& timing, const StepTiming& steps);
[[nodiscard]] StepPlan tree_steps(std::int64_t bytes, const Choice& choice, const Placement& placement,
                                  const TreePipeline& pipe, double wire, const StepTiming& steps);
// Throws Stopped as `usage` does, which is of the collective's connections.
[[nodiscard]] StepPlan direct_steps(const UsageBuilder& usage, CollectiveKind kind, std::int64_t bytes,
                                    const Placement& placement, const Timing& timing);
// Sums over trees of switches or of boxes. REQUIRES: choice is CollNet, NVLSTree, or NVLS over several boxes.
[[nodiscard]] StepPlan sum_steps(const topology::Router& router, std::int64_t bytes, const Choice& choice,
                                 const Placement& placement, const Timing& timing);

// Appends messages and what they wait for.
class StepBuilder {
 public:
  static constexpr std::uint32_t kNothing = ~0U;
  // REQUIRES: the messages waited for were added before.
  std::uint32_t add(StepMessage message, std::initializer_list<std::uint32_t> after) {
    return add(message, std::vector<std::uint32_t>(after));
  }
  std::uint32_t add(StepMessage message, const std::vector<std::uint32_t>& after) {
    message.after_begin = static_cast<std::uint32_t>(plan_.after.size());
    for (const std::uint32_t m : after)
      if (m != kNothing) plan_.after.push_back(m);
    message.after_count = static_cast<std::uint32_t>(plan_.after.size()) - message.after_begin;
    plan_.messages.push_back(message);
    return static_cast<std::uint32_t>(plan_.messages.size() - 1);
  }
  [[nodiscard]] StepPlan finish() { return std::move(plan_); }

 private:
  StepPlan plan_;
};
}  // namespace topsim::collective
