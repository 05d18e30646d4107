// One class, since its parts share the state of a run; what can stand alone lives in streams, trace,
// accounting, path.
#include "sim/executor/executor.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>

#include "sim/base/error.hpp"
#include "sim/engine/engine.hpp"
#include "sim/executor/accounting.hpp"
#include "sim/executor/communication.hpp"
#include "sim/executor/critical_path.hpp"
#include "sim/executor/isolated.hpp"
#include "sim/executor/link_sampler.hpp"
#include "sim/executor/lock_step.hpp"
#include "sim/executor/rank_state.hpp"
#include "sim/executor/reasons.hpp"
#include "sim/executor/trace.hpp"

namespace topsim::executor {
namespace {

using program::Op;
using program::OpKind;

enum class EventKind : std::uint8_t { compute_done, wake, capacity, pace, sample, call_done, walk_done };
constexpr std::uint64_t payload(EventKind kind, std::uint32_t rank, std::uint32_t what) {
  return std::uint64_t{static_cast<std::uint8_t>(kind)} << 60 | std::uint64_t{rank} << 30 | what;
}

class Executor {
 public:
  Executor(const program::Program& program, const fold::System& system, const topology::Topology& topology,
           network::Network& network, Carrier& carrier, const RunOptions& options, Progress* progress,
           bool exact_sharing)
      : program_(program),
        system_(system),
        options_(options),
        progress_(progress),
        network_(network),
        carrier_(carrier),
        tables_(program.classes.begin(), program.classes.end()),
        accounting_(system.ranks.size(), options.warmup, options.steps),
        calls_(program, system),
        isolated_(program, system, options.capacity_changes, carrier, exact_sharing),
        lock_step_({program, system, tables_, charges_, charge_of_, isolated_, calls_, ranks_},
                   exact_sharing && !options.timeline && options.pace_changes.empty()),
        walks_(lock_step_.teams()),
        enders_(static_cast<std::size_t>(options.warmup + options.steps)) {
    traces_.reserve(system.ranks.size());
    std::map<std::vector<std::uint32_t>, std::uint32_t> charge_keys;
    for (const auto& rank : system.ranks) {
      const auto& cls = program.classes[rank.program_class];
      const std::uint32_t model = topology.device(rank.device).model;
      traces_.emplace_back(pages_, tables_[rank.program_class]);
      const auto r = static_cast<std::uint32_t>(ranks_.size());
      ranks_.emplace_back(
          cls, tables_[rank.program_class],
          model < options.accelerators.size() ? options.accelerators[model] : AcceleratorFacts{},
          traces_.back());
      const auto row = static_cast<std::uint32_t>(charges_.size());
      const auto [known, first] = charge_keys.try_emplace(calls_.charge_key(r), row);
      if (first) charges_.push_back(calls_.charges(r));
      charge_of_.push_back(known->second);
      for (const Op& op : cls.ops) total_ops_ += op.kind <= OpKind::host_work ? 1 : 0;
    }
    total_ops_ *= static_cast<std::uint64_t>(options.warmup + options.steps);
    if (progress_) progress_->ops_total = total_ops_;
    for (std::size_t c = 0; c < options.capacity_changes.size(); ++c) {
      engine_.at(options.capacity_changes[c].at,
                 payload(EventKind::capacity, 0, static_cast<std::uint32_t>(c)));
    }
    for (std::size_t c = 0; c < options.pace_changes.size(); ++c)
      engine_.at(options.pace_changes[c].at, payload(EventKind::pace, 0, static_cast<std::uint32_t>(c)));
    if (options.warmup == 0) snapshot();
  }

  Outcome run() {
    for (std::uint32_t r = 0; r < ranks_.size(); ++r) begin_step(r);
    while (!finished_ && !stopped()) advance();
    return outcome();
  }

 private:
  SimTime now() const { return engine_.now(); }
  bool stopped() const { return progress_ && progress_->stop.load(std::memory_order_relaxed); }

  void advance() {
    if (!done_.empty()) return finish_done();
    // Everything scheduled for this very instant comes before the network is asked: one solve an instant.
    if (engine_.next() == now()) return handle(engine_.pop());
    const SimTime engine_next = engine_.next();
    const SimTime network_next = network_.next_event_before(engine_next);
    if (network_next == kNever && engine_next == kNever) throw_deadlock();
    if (network_next <= engine_next) {
      engine_.advance(network_next);
      drain_network();
    } else {
      handle(engine_.pop());
    }
    if (progress_) {
      progress_->events.store(engine_.events() + network_.events(), std::memory_order_relaxed);
      progress_->now_ps.store(now().time_since_epoch().count(), std::memory_order_relaxed);
    }
  }

  void drain_network() {
    carrier_.advance(now(), done_);
    finish_done();
  }

  void finish_done() {
    finishing_.swap(done_);
    for (std::uint32_t call : finishing_) finish_call(call);
    finishing_.clear();
  }

  void handle(std::uint64_t event) {
    const auto kind = static_cast<EventKind>(event >> 60);
    const auto rank = static_cast<std::uint32_t>(event >> 30 & 0x3fffffffU);
    const auto what = static_cast<std::uint32_t>(event & 0x3fffffffU);
    switch (kind) {
      case EventKind::call_done:
        return finish_call(what);
      case EventKind::walk_done:
        walks_[what].resume = engine::kNoHandle;
        return end_walk(what);
      case EventKind::compute_done:
        leave_lock_step(rank);
        if (ranks_[rank].program->ops[what].stream == 0) ranks_[rank].compute.running = false;
        return finish_op(rank, what), start_ready(rank);
      case EventKind::wake:
        leave_lock_step(rank);
        ranks_[rank].wake[what] = kNever;
        return start_ready(rank);
      case EventKind::capacity:
        return change_capacity(options_.capacity_changes[what]);
      case EventKind::pace:
        return change_pace(options_.pace_changes[what]);
      case EventKind::sample:
        return sample_links();
    }
  }

  void sample_links() {
    carrier_.advance(now(), done_);
    sampler_->sample([&](std::uint32_t l) { return record(l).bytes; });
    if (engine_.empty() && done_.empty() && network_.next_event() == kNever) throw_deadlock();
    engine_.at(sampler_->next(), payload(EventKind::sample, 0, 0));
  }

  void change_capacity(const CapacityChange& change) {
    for (std::uint32_t l = 0; l < system_.links.size(); ++l) {
      const auto& members = system_.links[l].members;
      if (std::binary_search(members.begin(), members.end(), change.link)) {
        network_.set_capacity(l, system_.links[l].capacity.value() * change.factor, now());
      }
    }
  }

  void change_pace(const PaceChange& change) {
    for (std::uint32_t r = 0; r < system_.ranks.size(); ++r) {
      const auto& members = system_.ranks[r].members;
      if (std::find(members.begin(), members.end(), change.rank) == members.end()) continue;
      ranks_[r].throttling = 1 / change.pace;
      retime(ranks_[r]);
    }
  }

  void begin_step(std::uint32_t r) {
    ranks_[r].begin_step();
    start_ready(r);
  }

  // Starts what can start; ops that end at once may free others, so repeat until nothing moves.
  void start_ready(std::uint32_t r) {
    RankState& rank = ranks_[r];
    for (bool moved = true; moved && rank.ops_left > 0;) {
      moved = false;
      for (std::uint16_t s = 0; s < rank.table->ops.size(); ++s) {
        const std::uint32_t op = rank.head(s);
        if (op == kNoOp || !rank.dependencies_done(op)) continue;
        const SimTime issued = rank.issue_time(op);
        if (issued == kNever) continue;  // the host waits at a synchronisation
        if (issued > now()) {
          if (rank.wake[s] != issued) {
            rank.wake[s] = issued;
            engine_.at(issued, payload(EventKind::wake, r, s));
          }
          continue;
        }
        rank.running[s] = true;
        moved |= start(r, op, issued);
      }
    }
  }

  // Returns whether the op is already done.
  bool start(std::uint32_t r, std::uint32_t index, SimTime issued) {
    RankState& rank = ranks_[r];
    const Op& op = rank.program->ops[index];
    OpTrace& trace = rank.trace->edit(index);
    trace.begin = trace.ready = now();
    trace.blocker = rank.blocker(index, issued);
    trace.cause_rank = trace.cause_op = kNoOp;
    switch (op.kind) {
      case OpKind::compute:
        return start_compute(r, index);
      case OpKind::host_work:
        engine_.after(op.duration, payload(EventKind::compute_done, r, index));
        return false;
      case OpKind::collective:
      case OpKind::send:
      case OpKind::recv:
      case OpKind::host_copy: {
        const std::uint32_t call = calls_.arrive(r, index, op);
        Call& arrived = calls_[call];
        if (arrived.last_rank == kNoOp || arrived.last < now() || arrived.last_rank < r) {
          arrived.last_rank = r;
          arrived.last_op = index;
          arrived.last = now();
        }
        if (op.kind == OpKind::collective) occupy(r, arrived.activity, +1);
        if (calls_.complete(call)) start_call(call);
        return false;
      }
    }
    return false;
  }

  bool start_compute(std::uint32_t r, std::uint32_t index) {
    RankState& rank = ranks_[r];
    const Op& op = rank.program->ops[index];
    const auto work = static_cast<std::int64_t>(
        std::llround(static_cast<double>(op.duration.count()) * system_.ranks[r].slowdown));
    if (op.stream != 0) {
      const auto throttled = std::llround(static_cast<double>(work) * rank.throttling);
      engine_.after(Duration(rank.throttling == 1 ? work : throttled),
                    payload(EventKind::compute_done, r, index));
      return false;
    }
    charge_wait(r, index, (*rank.trace)[index].blocker, now());
    if (work == 0) return finish_op(r, index), true;
    rank.compute.start(index, work, rank.contention(op) * rank.throttling, now());
    rank.compute.event = engine_.at(rank.compute.end(), payload(EventKind::compute_done, r, index));
    return false;
  }

  // Communication holds or frees a member's SMs and memory bandwidth: its running kernel changes pace.
  void occupy(std::uint32_t r, std::uint32_t activity, int sign) {
    RankState& rank = ranks_[r];
    rank.occupy(system_.activities[activity], sign, calls_.memory_traffic(activity));
    retime(rank);
  }

  void retime(RankState& rank) {
    if (!rank.compute.running) return;
    const double slowdown = rank.contention(rank.program->ops[rank.compute.op]) * rank.throttling;
    if (rank.compute.change(slowdown, now())) engine_.retime(rank.compute.event, rank.compute.end());
  }

  void start_call(std::uint32_t index) {
    for (const std::uint32_t r : system_.groups[calls_[index].group].members) leave_lock_step(r);
    Call& call = calls_[index];
    call.ready = now();
    calls_.for_members(index, [&](std::uint32_t r, std::uint32_t op) {
      OpTrace& trace = ranks_[r].trace->edit(op);
      trace.ready = now();
      trace.cause_rank = call.last_rank;
      trace.cause_op = call.last_op;
      if (ranks_[r].program->ops[op].kind != OpKind::collective) occupy(r, call.activity, +1);
    });
    if (system_.activities[call.activity].bytes == Bytes(0)) {
      done_.push_back(
          index);  // a signal without payload: replayed schedules carry their transfer times elsewhere
      return;
    }
    if (isolated_.isolated(call.group)) {
      isolated_.begin(call.group, call.activity, now());
      ++isolated_calls_;
      engine_.after(isolated_.duration(call.activity), payload(EventKind::call_done, 0, index));
      return;
    }
    carrier_.start(index, call.group, call.activity, now());
  }

  void finish_call(std::uint32_t index) {
    for (const std::uint32_t r : system_.groups[calls_[index].group].members) leave_lock_step(r);
    const Call call = calls_[index];
    members_.clear();
    calls_.for_members(index, [&](std::uint32_t r, std::uint32_t op) { members_.emplace_back(r, op); });
    if (measuring()) {
      calls_.record(call.group, call.activity, now() - call.ready);
    }
    calls_.close(index);
    const auto members = members_;
    for (const auto& [r, op] : members) {
      occupy(r, call.activity, -1);
      finish_op(r, op);
    }
    for (const auto& [r, op] : members) start_ready(r);
    const std::uint32_t team = lock_step_.team_of_group(call.group);
    if (team != LockStep::kNone) begin_walk(team);
  }

  // --- Teams in lock-step (lock_step.hpp) ---

  void begin_walk(std::uint32_t team) {
    constexpr std::uint32_t kWorthwhile = 3;  // ops; fewer cost less one by one
    if (walks_[team].resume != engine::kNoHandle || !lock_step_.agree(team, now())) return;
    const auto& members = lock_step_.members(team);
    for (const std::uint32_t r : members)
      if (!accounting_.in_open_window(r)) return;
    Walking& walking = walks_[team];
    walking.from = now();
    lock_step_.walk(team, now(), kNever, walking.walk);
    if (walking.walk.ops < kWorthwhile) return;
    for (const std::uint32_t r : members) engine_.cancel(ranks_[r].compute.event);
    walking.resume = engine_.at(walking.walk.until, payload(EventKind::walk_done, 0, team));
  }

  // Something is about to happen to a rank that its team does not do together.
  void leave_lock_step(std::uint32_t r) {
    const std::uint32_t team = lock_step_.team_of_rank(r);
    if (team == LockStep::kNone || walks_[team].resume == engine::kNoHandle) return;
    Walking& walking = walks_[team];
    engine_.cancel(walking.resume);
    walking.resume = engine::kNoHandle;
    if (now() < walking.walk.until) lock_step_.walk(team, walking.from, now(), walking.walk);
    end_walk(team);
  }

  void end_walk(std::uint32_t team) {
    const LockStep::Walk& walk = walks_[team].walk;
    const auto& members = lock_step_.members(team);
    const std::uint32_t group = lock_step_.group(team);
    const auto& activities = system_.groups[group].activities;
    for (std::size_t a = 0; a < activities.size(); ++a) {
      if (walk.calls[a].calls == 0) continue;
      isolated_.add(activities[a], walk.calls[a].calls);
      isolated_calls_ += walk.calls[a].calls;
      if (measuring()) calls_.record(group, activities[a], walk.calls[a].total, walk.calls[a].calls);
    }
    for (const std::uint32_t r : members) accounting_.add(r, walk.busy, walk.idle, walk.accounted_until);
    ops_done_ += std::uint64_t{walk.ops} * members.size();
    lock_step_.take_over(team, walk);
    if (walk.open) {
      const LockStep::OpenCall& open = *walk.open;
      const std::uint32_t call = calls_.joined(group, open.activity, open.op, open.begin);
      isolated_.begin(group, open.activity, open.begin);
      ++isolated_calls_;
      engine_.at(open.end, payload(EventKind::call_done, 0, call));
    }
    for (const std::uint32_t r : members) {
      if (!walk.compute.running) continue;
      ranks_[r].compute.event =
          engine_.at(walk.compute.end(), payload(EventKind::compute_done, r, walk.compute.op));
    }
    for (const std::uint32_t r : members) start_ready(r);
  }

  void end_all_walks() {
    for (std::uint32_t team = 0; team < walks_.size(); ++team)
      leave_lock_step(lock_step_.members(team).front());
  }

  [[nodiscard]] network::LinkRecord record(std::uint32_t l) const {
    network::LinkRecord sum = network_.record(l);
    const network::LinkRecord isolated = isolated_.record(l, now());
    sum.bytes += isolated.bytes;
    sum.busy += isolated.busy;
    sum.peak_rate = std::max(sum.peak_rate, isolated.peak_rate);
    return sum;
  }

  [[nodiscard]] bool measuring() const {
    return accounting_.boundaries().size() >= static_cast<std::size_t>(options_.warmup);
  }

  void finish_op(std::uint32_t r, std::uint32_t index) {
    RankState& rank = ranks_[r];
    const Op& op = rank.program->ops[index];
    OpTrace& trace = rank.trace->edit(index);
    trace.end = now();
    rank.finish(index, now());
    if (op.kind == OpKind::compute && op.stream == 0) accounting_.busy(r, trace.begin, now());
    if (options_.timeline && rank.step >= static_cast<std::uint32_t>(options_.warmup)) {
      timeline_.push_back(
          {r, index, static_cast<std::uint16_t>(rank.step - static_cast<std::uint32_t>(options_.warmup)),
           op.stream, trace.begin, trace.end, trace.ready});
    }
    ++ops_done_;
    if (progress_) progress_->ops_done.store(ops_done_, std::memory_order_relaxed);
    if (rank.ops_left == 0) finish_step(r, index);
  }

  void finish_step(std::uint32_t r, std::uint32_t last_op) {
    charge_wait(r, kNoOp, last_op, now());
    ranks_[r].last_op = last_op;
    auto& [end, ender] = enders_[ranks_[r].step++];
    if (end < now() || ender < r) ender = r;
    end = now();
    if (accounting_.finish_step(r, now())) {
      const std::size_t done = accounting_.boundaries().size();
      if (progress_) progress_->step = static_cast<int>(done);
      if (done == static_cast<std::size_t>(options_.warmup)) snapshot();
      finished_ = done == static_cast<std::size_t>(options_.warmup + options_.steps);
      last_rank_ = enders_[done - 1].second;
    }
    if (ranks_[r].step < static_cast<std::uint32_t>(options_.warmup + options_.steps)) {
      ranks_[r].begin_step();
      start_ready(r);
    }
  }

  // Compute has been idle since what is accounted; say why.
  void charge_wait(std::uint32_t r, std::uint32_t blocked, std::uint32_t blocker, SimTime until) {
    const SimTime from = accounting_.accounted_until(r);
    if (from >= until) return;
    legs_.clear();
    const RankState& rank = ranks_[r];
    explain_wait(*rank.program, *rank.table, *rank.trace, charges_[charge_of_[r]], blocked, blocker,
                 rank.host_free, from, until, legs_);
    for (auto leg = legs_.rbegin(); leg != legs_.rend(); ++leg) {
      accounting_.idle(r, leg->reason, leg->begin, leg->end);
      if (options_.timeline && rank.step >= static_cast<std::uint32_t>(options_.warmup)) {
        idle_.push_back({r, leg->reason, leg->begin, leg->end});
      }
    }
  }

  void snapshot() {
    end_all_walks();
    carrier_.advance(now(), done_);  // brings the byte counts up to now
    before_.clear();
    for (std::uint32_t l = 0; l < system_.links.size(); ++l) before_.push_back(record(l));
    if (options_.timeline) {
      sampler_.emplace(system_.links.size(), now());
      for (std::uint32_t l = 0; l < system_.links.size(); ++l) sampler_->skip(l, before_[l].bytes);
      engine_.at(sampler_->next(), payload(EventKind::sample, 0, 0));
    }
  }

  [[noreturn]] void throw_deadlock() const {
    std::string waiting;
    int shown = 0;
    for (std::uint32_t r = 0; r < ranks_.size() && shown < 4; ++r) {
      for (std::uint16_t s = 0; s < ranks_[r].table->ops.size(); ++s) {
        if (!ranks_[r].running[s]) continue;
        const std::uint32_t op = ranks_[r].table->ops[s][ranks_[r].next[s]];
        waiting +=
            fmt::format("{}rank {} waits in {} (op {})", shown ? "; " : "", system_.ranks[r].members[0].value,
                        program_.labels[ranks_[r].program->ops[op].label], op);
        ++shown;
        break;
      }
    }
    throw Blocked("the workload cannot finish: every rank waits for another", waiting);
  }

  Outcome outcome();

  const program::Program& program_;
  const fold::System& system_;
  const RunOptions& options_;
  Progress* progress_;
  engine::Engine engine_;
  network::Network& network_;
  Carrier& carrier_;
  std::vector<StreamTable> tables_;
  TracePages pages_;
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
    LockStep::Walk walk;
    engine::Handle resume = engine::kNoHandle;  // pending while the team walks
  };
  std::vector<Walking> walks_;  // by team
  std::uint64_t isolated_calls_ = 0;
  std::vector<std::uint32_t> done_, finishing_;  // calls whose last byte has arrived
  std::vector<network::LinkRecord> before_;
  std::optional<LinkSampler> sampler_;
  std::vector<std::pair<std::uint32_t, std::uint32_t>> members_;
  std::vector<WaitLeg> legs_;
  std::vector<TimelineEvent> timeline_;
  std::vector<IdleInterval> idle_;
  std::uint64_t ops_done_ = 0, total_ops_ = 0;
  std::vector<std::pair<SimTime, std::uint32_t>>
      enders_;  // by step: who ended it, the last by number of several
  std::uint32_t last_rank_ = 0;
  bool finished_ = false;
};

Outcome Executor::outcome() {
  end_all_walks();
  Outcome out;
  out.complete = finished_;
  out.folded = system_.folded;
  const auto& boundaries = accounting_.boundaries();
  const auto warmup = static_cast<std::size_t>(options_.warmup);
  if (boundaries.size() >= warmup && warmup > 0) out.measured_begin = boundaries[warmup - 1];
  out.end = boundaries.size() > warmup ? boundaries.back() : now();
  for (std::size_t s = warmup; s < boundaries.size(); ++s) {
    out.step_times.push_back(boundaries[s] - (s == 0 ? SimTime{} : boundaries[s - 1]));
  }
  const Reason at_end = reason_at_end(program_);
  for (std::uint32_t r = 0; r < ranks_.size(); ++r) {
    accounting_.close(r, at_end);
    out.ranks.push_back({system_.ranks[r].program_class, system_.ranks[r].members, accounting_.steps(r)});
    out.ranks.back().steps.resize(out.step_times.size());
  }
  std::vector<std::uint32_t> rows(system_.links.size(), LinkSampler::kNoRow);
  if (boundaries.size() < warmup) before_.assign(system_.links.size(), {});
  for (std::uint32_t l = 0; l < system_.links.size(); ++l) {
    const network::LinkRecord record = this->record(l);
    if (record.bytes <= 0) continue;
    rows[l] = static_cast<std::uint32_t>(out.links.size());
    out.links.push_back({system_.links[l].members, record.bytes - before_[l].bytes, record.peak_rate,
                         record.busy - before_[l].busy});
  }
  if (sampler_) out.link_samples = sampler_->samples(rows);
  out.collectives = calls_.records();
  out.timeline = std::move(timeline_);
  out.idle = std::move(idle_);
  if (finished_) {
    const SimTime last_begin = boundaries.size() > 1 ? boundaries[boundaries.size() - 2] : SimTime{};
    out.critical_path = critical_path(ranks_, charges_, charge_of_, calls_, system_, last_rank_, last_begin);
  }
  out.events = engine_.events() + network_.events();
  out.flows = carrier_.transfers() + isolated_calls_;
  out.group_classes = system_.groups.size();
  return out;
}
}  // namespace

Outcome run(const program::Program& program, const fold::System& system, const topology::Topology& topology,
            network::Network& network, Carrier& carrier, const RunOptions& options, Progress* progress,
            bool exact_sharing) {
  return Executor(program, system, topology, network, carrier, options, progress, exact_sharing).run();
}
}  // namespace topsim::executor
