// The state of a run, shared by the executor_*.cpp files. Independent parts are in rank_state, communication,
// isolated, lock_step, trace, accounting, critical_path.
#pragma once

#include <optional>
#include <utility>
#include <vector>

#include "sim/engine/engine.hpp"
#include "sim/executor/accounting.hpp"
#include "sim/executor/carrier.hpp"
#include "sim/executor/communication.hpp"
#include "sim/executor/isolated.hpp"
#include "sim/executor/link_sampler.hpp"
#include "sim/executor/lock_step.hpp"
#include "sim/executor/options.hpp"
#include "sim/executor/outcome.hpp"
#include "sim/executor/progress.hpp"
#include "sim/executor/rank_state.hpp"
#include "sim/executor/trace.hpp"

namespace topsim::executor {

enum class EventKind : std::uint8_t {
  compute_done,
  wake,
  capacity,
  pace,
  sample,
  call_done,
  walk_done,
  routes,
  arrive
};
constexpr std::uint64_t payload(EventKind kind, std::uint32_t rank, std::uint32_t what) {
  return std::uint64_t{static_cast<std::uint8_t>(kind)} << 60 | std::uint64_t{rank} << 30 | what;
}

class Executor {
 public:
  Executor(const program::Program& program, const fold::System& system, const topology::Topology& topology,
           network::Network& network, Carrier& carrier, const RunOptions& options, Progress* progress,
           bool exact_sharing);

  Outcome run();

 private:
  SimTime now() const { return engine_.now(); }
  bool stopped() const { return progress_ && progress_->stopped(); }
  [[nodiscard]] bool measuring(std::uint32_t r) const {  // the rank is past its own warm-up
    return ranks_[r].step >= static_cast<std::uint32_t>(options_.warmup);
  }

  // executor.cpp: events and ops.
  void advance();
  void drain_network();
  void finish_done();
  void handle(std::uint64_t event);
  void change_capacity(const CapacityChange& change);
  void change_pace(const PaceChange& change);
  void begin_step(std::uint32_t r);
  // Starts what can start, including what is freed by ops that end immediately.
  void start_ready(std::uint32_t r);
  void start_head(std::uint32_t r, std::uint16_t stream);
  void start(std::uint32_t r, std::uint32_t index);
  void start_compute(std::uint32_t r, std::uint32_t index);
  // Communication holds or frees a member's SMs and memory bandwidth: its running kernel changes pace.
  void occupy(std::uint32_t r, std::uint32_t op, std::uint32_t activity, int sign);
  void retime(RankState& rank);
  void finish_op(std::uint32_t r, std::uint32_t index);
  void finish_step(std::uint32_t r, std::uint32_t last_op);
  [[nodiscard]] std::vector<Interval> take_computed_beside(std::uint32_t r);
  // The compute stream has been idle since the end of the account; records why, where no other stream
  // computed.
  void charge_wait(std::uint32_t r, std::uint32_t blocked, std::uint32_t blocker, SimTime until);

  // executor_calls.cpp: calls.
  // A communication op has the units that it needs.
  void arrive(std::uint32_t r, std::uint32_t index);
  void start_call(std::uint32_t index);
  // Whether a call whose bytes have arrived goes on for what it was held back meanwhile; then its end is set.
  [[nodiscard]] bool extend(std::uint32_t index);
  void disturb(std::uint32_t group);
  void finish_call(std::uint32_t index);

  // executor_teams.cpp: rank classes in lock-step (lock_step.hpp).
  void begin_walks();
  bool begin_walk(std::uint32_t team);
  [[nodiscard]] bool walks(std::uint32_t team) const {
    return team != LockStep::kNone && walks_[team].resume != engine::kNoHandle;
  }
  // Something is about to happen to a rank that its team does not do together.
  void leave_lock_step(std::uint32_t r) {
    for (const std::uint32_t team : lock_step_.teams_of_rank(r))
      if (walks(team)) cut_walk(team);
  }
  void cut_walk(std::uint32_t team);
  void end_walk(std::uint32_t team);
  void end_all_walks();

  // executor_outcome.cpp: what links carried; the outcome.
  void sample_links();
  void snapshot();
  [[nodiscard]] network::LinkRecord record(std::uint32_t l) const;
  [[noreturn]] void throw_deadlock() const;
  Outcome outcome();

  const program::Program& program_;
  const fold::System& system_;
  const RunOptions& options_;
  Progress* progress_;
  engine::Engine engine_;
  network::Network& network_;
  Carrier& carrier_;
  std::vector<StreamTable> tables_;
  std::vector<Trace> traces_;  // by rank class
  std::vector<RankState> ranks_;
  std::vector<std::vector<OpCharge>> charges_;
  std::vector<std::uint32_t> charge_of_;  // by rank class: its row of charges_
  Accounting accounting_;
  Calls calls_;
  IsolatedGroups isolated_;
  LockStep lock_step_;
  struct Walking {
    SimTime from{};
    Walk walk;
    engine::Handle resume = engine::kNoHandle;  // pending while the team walks
    SimTime tried = kNever;                     // to begin another
  };
  std::vector<Walking> walks_;                   // by team
  std::vector<std::uint32_t> stirred_;           // groups whose calls have begun or ended at this instant
  std::vector<std::uint32_t> done_, finishing_;  // calls whose last byte has arrived
  std::vector<network::LinkRecord> before_;
  std::optional<LinkSampler> sampler_;
  std::vector<std::pair<std::uint32_t, std::uint32_t>> members_;
  std::vector<WaitLeg> legs_;
  Intervals computing_, communicating_;  // scratch
  std::vector<TimelineEvent> timeline_;
  std::vector<IdleInterval> idle_;
  std::uint64_t ops_done_ = 0, total_ops_ = 0;
  // By step: when it ended, and who ended it; of several the last by number.
  std::vector<std::pair<SimTime, std::uint32_t>> enders_;
  std::uint32_t last_rank_ = 0;
  bool finished_ = false;
};
}  // namespace topsim::executor
