// The runs of one scenario: folded once, with errors expressed in terms of its faults.
#pragma once

#include <span>
#include <vector>

#include "sim/executor/simulate.hpp"
#include "sim/scenario/cluster/sharp_faults.hpp"
#include "sim/scenario/run/simulate.hpp"
#include "sim/scenario/scenario.hpp"
#include "topology/routes.hpp"

namespace topsim::scenario {

class FoldedScenario {
 public:
  // REQUIRES: the arguments outlive it. `dead`: from the beginning to the end.
  FoldedScenario(const Scenario& scenario, const Prepared& prepared, const topology::Router& router,
                 std::span<const LinkId> dead, const executor::RunOptions& options);

  // `options` may differ from the constructor's in what folding does not depend on: steps, records.
  [[nodiscard]] executor::Outcome run(const executor::RunOptions& options,
                                      executor::Progress* progress) const;
  // Ops that the measured steps of this many simulate: one of each kind of rank.
  [[nodiscard]] std::uint64_t ops(int steps) const;
  [[nodiscard]] const program::Program& program() const { return prepared_.program; }
  [[nodiscard]] const topology::Router& router() const { return router_; }

 private:
  void say_stop() const;
  template <class Work>
  void explained(const Work& work) const;

  const Scenario& scenario_;
  const Prepared& prepared_;
  const topology::Router& router_;
  collective::NcclModel nccl_;
  fold::System system_;
  std::vector<SharpStop> stops_;
};
}  // namespace topsim::scenario
