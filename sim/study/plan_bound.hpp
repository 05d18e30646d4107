// A lower bound on the step time of a plan, without simulating it; a search may discard plans by it.
//
// A pass is the work of one micro-batch on one chunk of layers, forward or backward. Let F_g, B_g (W_g where
// the schedule splits weight gradients off) be the time from the begin of its first kernel to the end of its
// last one, alone on an idle machine: kernels at their own pace, each communication inside it at the pace
// that its links and its protocol allow when nothing else moves. With p stages, m micro-batches, chunks C_d
// on stage d, and let H_g be what the host spends on launching both, H^f_g on the forward alone:
//
//   A_0 = 0,  A_{d+1} = max(A_d + F_d, H^f_d)
//   step  >=  max over d of   max(A_d + m sum_{g in C_d} (F_g + B_g + W_g),  m sum_{g in C_d} H_g)  +
//   sum_{g<d} B_g
//
// Why. A stage's kernels run one at a time in the order of its program, a pass is contiguous in it, and a
// kernel waits for the communication it depends on: so passes follow each other, none faster than alone
// (sharing links or SMs only slows); and a host issues one launch after the other, no kernel begins before
// its launch. A_d: chunk d, the first of stage d, gets nothing before the chunks before it have computed.
// Last term: when the last pass of a stage is the backward of its first chunk, the gradient still has to come
// back through the chunks before it; the schedule's order says whether it is, else the term is left out.
// Messages between stages, gradients' reduction and optimiser are not counted: they only add. The bound is
// for the first step, which starts from rest and which the search simulates.
//
// Communication inside a pass (tensor, context) is timed on the first ranks' communicators; on clusters where
// others may be placed better than those (random or listed placement, a user's order of ranks), it counts as
// zero.
#pragma once

#include <map>
#include <mutex>
#include <span>
#include <vector>

#include "sim/collective/collective.hpp"
#include "sim/study/plan_space.hpp"
#include "topology/catalogue.hpp"
#include "workloads/plan.hpp"

namespace topsim::study {

class PlanBound {
 public:
  // REQUIRES: all outlive it.
  PlanBound(const scenario::Scenario& scenario, const topology::Topology& topology,
            const topology::Catalogue& catalogue, const collective::NcclModel& nccl);

  // Zero where no bound is known. Thread-safe. Throws ConfigError for an invalid plan.
  [[nodiscard]] Duration operator()(const PlanChoice& choice) const;

 private:
  struct Passes {
    Duration forward{}, backward{}, returns{}, host{}, host_forward{};  // F, B, I, H, H^f
  };
  [[nodiscard]] std::vector<Passes> passes_of(const PlanChoice& choice,
                                              const workloads::WorkloadSpec& workload,
                                              const workloads::Plan& plan) const;
  [[nodiscard]] std::vector<Passes> measure(const workloads::WorkloadSpec& workload,
                                            const workloads::Plan& plan) const;
  // `ranks`: where they run.
  [[nodiscard]] Duration alone(const program::Program& program, const program::Op& op,
                               std::span<const DeviceId> ranks) const;
  [[nodiscard]] Duration span(const program::Program& program, const program::RankProgram& stage,
                              std::span<const DeviceId> ranks,
                              std::initializer_list<program::Phase> phases) const;

  [[nodiscard]] static Duration issuing(const program::Program& program, const program::RankProgram& stage,
                                        std::initializer_list<program::Phase> phases);

  const scenario::Scenario& scenario_;
  const topology::Topology& topology_;
  const topology::Accelerator& accelerator_;
  const collective::NcclModel& nccl_;
  bool communication_counts_ = true, silent_ = false;
  mutable std::mutex mutex_;
  mutable std::map<PlanChoice, std::vector<Passes>> known_;
};
}  // namespace topsim::study
