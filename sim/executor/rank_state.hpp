// One rank class while it runs: where its streams stand, when its host issues, what its accelerator computes.
#pragma once

#include <algorithm>
#include <vector>

#include "sim/engine/engine.hpp"
#include "sim/executor/compute_state.hpp"
#include "sim/executor/intervals.hpp"
#include "sim/executor/options.hpp"
#include "sim/executor/trace.hpp"
#include "sim/fold/fold.hpp"

namespace topsim::executor {

// Picoseconds that a kernel takes alone.
[[nodiscard]] inline Duration work_of(const program::Op& op, double slowdown) {
  return Duration(nearest(static_cast<double>(op.duration.count()) * slowdown));
}

// Of the memory's bandwidth, what a kernel and a ring beside it share: copies, sums and norms of large
// tensors on an H100, one figure for all (tests/golden/accelerator, h100-sxm5-ring.json).
inline constexpr double kReached = 0.8;

// What a call still takes because kernels beside it filled the memory.
struct Rest {
  Duration takes{};
  bool last = true;  // so little that what is lost meanwhile does not matter
  friend Rest later(const Rest& a, const Rest& b) { return {std::max(a.takes, b.takes), a.last && b.last}; }
};

struct RankState {
  const program::RankProgram* program;
  const StreamTable* table;
  AcceleratorFacts accelerator;
  std::uint32_t step = 0;
  std::uint32_t ops_left = 0;
  std::uint32_t last_op = kNoOp;      // that ended the previous step
  std::vector<std::uint32_t> next;    // by stream: position of the head; all before it are done
  std::vector<std::uint8_t> running;  // by stream: the head has started; quicker than bits
  std::vector<SimTime> wake;          // by stream: a wake-up is scheduled for then
  StreamSet open = 0;                 // whose head may have become able to start
  SimTime host_free{};                // the host resumed issuing then,
  std::uint32_t synced = kNoOp;       // after this host_sync op (or at the step's start)
  ComputeState compute;
  std::vector<ComputeState> beside;       // compute of other streams: throttled with it, no contention
  std::vector<Interval> computed_beside;  // of those that are done, not yet accounted
  double throttling = 1;                  // compute takes this many times longer for now
  int ctas = 0;                           // SMs held by communication
  std::int64_t memory_traffic = 0;  // bytes/s moved by communication; whole ones, so that sums have no order
  std::int64_t copied = 0;          // those of them that need no SMs
  Trace* trace;                     // of the current step

  RankState(const program::RankProgram& p, const StreamTable& t, AcceleratorFacts facts, Trace& its_trace)
      : program(&p),
        table(&t),
        accelerator(facts),
        next(t.ops.size()),
        running(t.ops.size()),
        wake(t.ops.size(), kNever),
        trace(&its_trace) {}

  void begin_step() {
    if (step > 0) host_free += Duration(table->places.back().issued_by - issued_after_sync());
    synced = kNoOp;
    open = table->all;
    trace->clear();
    ops_left = static_cast<std::uint32_t>(program->ops.size());
    std::fill(next.begin(), next.end(), 0U);
    std::fill(running.begin(), running.end(), std::uint8_t{0});
  }

  // Head of a stream that has not started, or kNoOp.
  [[nodiscard]] std::uint32_t head(std::uint16_t stream) const {
    return running[stream] ? kNoOp : table->heads[table->heads_begin[stream] + next[stream]];
  }
  [[nodiscard]] bool dependencies_done(std::uint32_t op) const {
    const auto needs = table->needs_of(op);
    return std::all_of(needs.begin(), needs.end(),
                       [&](const StreamTable::Need& need) { return need.position < next[need.stream]; });
  }
  // When the host has issued the op (from the last synchronisation on); kNever while it waits at an earlier
  // one.
  [[nodiscard]] SimTime issue_time(std::uint32_t op) const {
    if (synced != kNoOp && op < synced) return SimTime{};  // long since: launched before that synchronisation
    if (table->places[op].sync_before != synced) return kNever;
    return engine::later(host_free, Duration(table->places[op + 1].issued_by - issued_after_sync()));
  }
  // Of an op that has begun.
  [[nodiscard]] std::uint32_t blocker(std::uint32_t op) const {
    return blocker_of(*program, *table, *trace, op);
  }
  void finish(std::uint32_t op, SimTime now) {
    const StreamTable::Place& place = table->places[op];
    running[place.stream] = 0;
    ++next[place.stream];
    --ops_left;
    open |= place.frees;
    if (program->ops[op].host_sync) {
      host_free = std::max(issue_time(op), now);
      synced = op;
    }
  }
  [[nodiscard]] static int units_of(const program::Op& op, const fold::Activity& activity) {
    return op.units == program::Op::kByChannels ? activity.ctas : op.units;
  }
  // Communication of an op takes or frees SMs and memory bandwidth.
  void occupy(const program::Op& op, const fold::Activity& activity, int sign, std::int64_t traffic) {
    const int units = units_of(op, activity);
    ctas += sign * units;
    memory_traffic += sign * traffic;
    if (units == 0) copied += sign * traffic;
  }
  [[nodiscard]] const program::Grids* grids_of(const program::Op& op) const {
    return op.grids == 0 ? nullptr : &program->grids[op.grids - 1];
  }
  // See executor.hpp.
  [[nodiscard]] Pace pace_of(const program::Op& op) const {
    Pace pace = throttled(throttling);
    if (accelerator.compute_units == 0 || (ctas == 0 && memory_traffic == 0)) return pace;
    const double units = accelerator.compute_units;
    const int taken = std::min(ctas, accelerator.compute_units / 2);
    const double bandwidth = accelerator.memory_bandwidth.value();
    const double traffic = static_cast<double>(memory_traffic) / bandwidth;
    const double own = static_cast<double>(copied) / bandwidth;  // of copy engines
    const auto crowded_by = [](double part) { return 1 / (1 - std::min(part / kReached, 0.5)); };
    const double bound = op.memory_bound;
    const double filling = op.fills_memory * crowded_by(own + std::min(traffic - own, taken / units));
    double slowed = filling + (bound - op.fills_memory) * crowded_by(traffic);
    double others = 1 - bound, persistent = 0, in_grids = 0;
    if (const program::Grids* grids = grids_of(op); grids != nullptr) {
      const double products = grids->persistent + grids->in_waves;
      const double crowded = 1 / (1 - std::min(traffic, 0.5));
      const double crowd = 1 + (products > 0 ? std::min(grids->traffic / products, 1.0) : 0) * (crowded - 1);
      persistent = grids->persistent;
      pace.grid *= crowd;
      in_grids = persistent * crowd;
      double waves = grids->in_waves;
      if (taken > 0) {
        pace.beside = true;
        pace.left_over = program::Grids::at(grids->left_over, taken);
        waves += program::Grids::at(grids->more_waves, taken);
      }
      slowed += waves * crowd;
      others = std::max(0.0, others - products);
    }
    if (taken > 0) others *= units / (units - taken);
    slowed += others;
    if (persistent < 1) pace.shared *= slowed / (1 - persistent);
    pace.filling = filling / (slowed + in_grids);
    return pace;
  }
  // Of what a collective moves, the part that it does not move beside kernels that fill the memory: its
  // blocks get the share of the units that they hold.
  [[nodiscard]] double held_back(const program::Op& op, const fold::Activity& activity,
                                 std::int64_t traffic) const {
    const int units = units_of(op, activity);
    if (op.kind != program::OpKind::collective || units == 0 || traffic == 0 ||
        accelerator.compute_units == 0)
      return 0;
    const double share = std::min(1.0, static_cast<double>(units) / accelerator.compute_units);
    return std::max(0.0, 1 - share * accelerator.memory_bandwidth.value() / static_cast<double>(traffic));
  }
  // Of a call that moved so much while its bytes were on their way and has paid for `filled`
  // (ComputeState::filled_at()), on this rank. Nothing here depends on the order of events at `now`.
  [[nodiscard]] Rest rest_of(const program::Op& op, const fold::Activity& activity, std::int64_t traffic,
                             std::int64_t& filled, SimTime now) const {
    constexpr std::int64_t kLittle = 200'000;  // ps
    const std::int64_t by_now = compute.filled_at(now);
    const double part = held_back(op, activity, traffic);
    const std::int64_t lost = nearest(part * static_cast<double>(by_now - filled));
    filled = by_now;
    return {Duration(lost), lost <= kLittle};
  }
  // Until the blocks of a communication op that can start now find units: a kernel that was launched before
  // has them all. RankProgram::in_launch_order: which is the first of two that can start at one instant.
  [[nodiscard]] Duration wait_for_units(std::uint32_t index, const fold::Activity& activity,
                                        SimTime now) const {
    const program::Op& op = program->ops[index];
    if (!compute.running || op.timed_elsewhere || units_of(op, activity) == 0) return {};
    if (program->in_launch_order && compute.begun == now && compute.op > index) return {};
    const program::Op& run = program->ops[compute.op];
    const double kernel = compute.begun == now ? run.first_kernel : run.residual;
    // At the latest just before it ends: they asked before the next kernel does.
    const Duration left = std::max(compute.end() - now - Duration(1), Duration{});
    return std::min(Duration(nearest(static_cast<double>(compute.alone) * kernel)), left);
  }

 private:
  [[nodiscard]] std::int64_t issued_after_sync() const {
    return synced == kNoOp ? 0 : table->places[synced + 1].issued_by;
  }
};
}  // namespace topsim::executor
