#include "sim/executor/executor.hpp"

#include <algorithm>
#include <bit>
#include <map>

#include "sim/executor/executor_class.hpp"

namespace topsim::executor {

using program::Op;
using program::OpKind;

Executor::Executor(const program::Program& program, const fold::System& system,
                   const topology::Topology& topology, network::Network& network, Carrier& carrier,
                   const RunOptions& options, Progress* progress, bool exact_sharing)
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
      lock_step_(
          {program, system, tables_, charges_, charge_of_, isolated_, calls_, ranks_, options.explained},
          exact_sharing && !options.timeline),
      walks_(lock_step_.teams()),
      enders_(static_cast<std::size_t>(options.warmup + options.steps)) {
  traces_.reserve(system.ranks.size());
  std::map<std::vector<std::uint32_t>, std::uint32_t> charge_keys;
  for (const auto& rank : system.ranks) {
    if (progress_) progress_->end_if_stopped();
    const auto& cls = program.classes[rank.program_class];
    const std::uint32_t model = topology.device(rank.device).model;
    traces_.emplace_back(tables_[rank.program_class], options.explained);
    const auto r = static_cast<std::uint32_t>(ranks_.size());
    ranks_.emplace_back(
        cls, tables_[rank.program_class],
        model < options.accelerators.size() ? options.accelerators[model] : AcceleratorFacts{},
        traces_.back());
    total_ops_ += cls.ops.size();
    const auto row = static_cast<std::uint32_t>(charges_.size());
    charge_of_.push_back(row);
    if (!options.explained) continue;
    const auto [known, first] = charge_keys.try_emplace(calls_.charge_key(r), row);
    if (first) charges_.push_back(calls_.charges(r));
    charge_of_.back() = known->second;
  }
  for (std::uint32_t team = 0; team < lock_step_.teams(); ++team) lock_step_.name_last(team, traces_);
  total_ops_ *= static_cast<std::uint64_t>(options.warmup + options.steps);
  if (progress_) {
    progress_->steps = options.warmup + options.steps;
    progress_->ops_total = total_ops_;
    constexpr std::size_t kQuicklyPrinted = 16'384;
    progress_->worth_printing = ranks_.size() <= kQuicklyPrinted ? 1 : 0;
  }
  for (std::size_t c = 0; c < options.capacity_changes.size(); ++c) {
    engine_.at(options.capacity_changes[c].at,
               payload(EventKind::capacity, 0, static_cast<std::uint32_t>(c)));
  }
  for (std::size_t c = 0; c < options.pace_changes.size(); ++c)
    engine_.at(options.pace_changes[c].at, payload(EventKind::pace, 0, static_cast<std::uint32_t>(c)));
  for (std::size_t c = 0; c < options.route_changes.size(); ++c)
    engine_.at(options.route_changes[c].at, payload(EventKind::routes, 0, static_cast<std::uint32_t>(c)));
  if (options.warmup == 0) snapshot();
}

Outcome Executor::run() {
  if (progress_) progress_->began = std::chrono::steady_clock::now();
  while (engine_.next() == now()) handle(engine_.pop());  // faults at time zero come first
  for (std::uint32_t r = 0; r < ranks_.size() && !stopped(); ++r) begin_step(r);
  while (!finished_ && !stopped()) advance();
  if (progress_) progress_->end_if_stopped();
  return outcome();
}

void Executor::advance() {
  if (!done_.empty()) return finish_done();
  // Everything scheduled for this instant comes before the network: one solve per instant.
  if (engine_.next() == now()) return handle(engine_.pop());
  begin_walks();
  const SimTime engine_next = engine_.next();
  carrier_.settle(now());
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

void Executor::drain_network() {
  carrier_.advance(now(), done_);
  finish_done();
}

void Executor::finish_done() {
  finishing_.swap(done_);
  for (std::uint32_t call : finishing_) finish_call(call);
  finishing_.clear();
}

void Executor::handle(std::uint64_t event) {
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
      if (ranks_[rank].program->ops[what].stream == 0)
        ranks_[rank].compute.stop(now());
      else
        std::erase_if(ranks_[rank].beside, [&](const ComputeState& each) { return each.op == what; });
      return finish_op(rank, what), start_ready(rank);
    case EventKind::wake:
      leave_lock_step(rank);
      ranks_[rank].wake[what] = kNever;
      ranks_[rank].open |= only(static_cast<std::uint16_t>(what));
      return start_ready(rank);
    case EventKind::capacity:
      return change_capacity(options_.capacity_changes[what]);
    case EventKind::pace:
      return change_pace(options_.pace_changes[what]);
    case EventKind::routes:
      return carrier_.change_routes(options_.route_changes[what], now());
    case EventKind::sample:
      return sample_links();
    case EventKind::arrive:
      leave_lock_step(rank);
      return arrive(rank, what);
  }
}

void Executor::change_capacity(const CapacityChange& change) {
  for (std::uint32_t l = 0; l < system_.links.size(); ++l) {
    const auto& members = system_.links[l].members;
    if (std::binary_search(members.begin(), members.end(), change.link)) {
      carrier_.scale_capacity(l, change.factor, now());
    }
  }
}

void Executor::change_pace(const PaceChange& change) {
  for (std::uint32_t r = 0; r < system_.ranks.size(); ++r) {
    const auto& members = system_.ranks[r].members;
    if (!std::binary_search(members.begin(), members.end(), change.rank)) continue;
    leave_lock_step(r);
    ranks_[r].throttling = 1 / change.pace;
    retime(ranks_[r]);
    for (ComputeState& beside : ranks_[r].beside) {
      beside.change(throttled(ranks_[r].throttling), now());
      engine_.retime(beside.event, beside.end());
    }
  }
}

void Executor::begin_step(std::uint32_t r) {
  ranks_[r].begin_step();
  start_ready(r);
}

inline void Executor::start_head(std::uint32_t r, std::uint16_t stream) {
  RankState& rank = ranks_[r];
  const std::uint32_t op = rank.head(stream);
  if (op == kNoOp || !rank.dependencies_done(op)) return;
  const SimTime issued = rank.issue_time(op);
  if (issued == kNever) return;  // the host waits at a synchronisation
  if (issued > now()) {
    if (rank.wake[stream] == issued) return;
    rank.wake[stream] = issued;
    engine_.at(issued, payload(EventKind::wake, r, stream));
    return;
  }
  rank.running[stream] = 1;
  start(r, op);
}

void Executor::start_ready(std::uint32_t r) {
  RankState& rank = ranks_[r];
  while (rank.open != 0 && rank.ops_left > 0) {
    const auto first = static_cast<std::uint16_t>(std::countr_zero(rank.open));
    rank.open &= rank.open - 1;
    const std::size_t end = first < kLastStreamBit ? first + std::size_t{1} : rank.table->ops.size();
    for (std::uint16_t s = first; s < end; ++s) start_head(r, s);
  }
}

void Executor::start(std::uint32_t r, std::uint32_t index) {
  RankState& rank = ranks_[r];
  const Op& op = rank.program->ops[index];
  OpTrace& trace = rank.trace->edit(index);
  trace.begin = trace.arrived = trace.ready = now();
  trace.blocker = kNotAsked;
  trace.cause_rank = trace.cause_op = kNoOp;
  switch (op.kind) {
    case OpKind::compute:
      return start_compute(r, index);
    case OpKind::host_work:
      engine_.after(op.duration, payload(EventKind::compute_done, r, index));
      return;
    case OpKind::collective:
    case OpKind::send:
    case OpKind::recv: {
      const Duration wait =
          rank.wait_for_units(index, system_.activities[calls_.activity_of(r, index)], now());
      if (wait == Duration{}) return arrive(r, index);
      engine_.after(wait, payload(EventKind::arrive, r, index));
      return;
    }
    case OpKind::host_copy:
      return arrive(r, index);
  }
}

void Executor::start_compute(std::uint32_t r, std::uint32_t index) {
  RankState& rank = ranks_[r];
  const Op& op = rank.program->ops[index];
  const std::int64_t work = work_of(op, system_.ranks[r].slowdown).count();
  if (op.stream != 0) {
    ComputeState& beside = rank.beside.emplace_back();
    beside.start(index, work, nullptr, throttled(rank.throttling), now());
    beside.event = engine_.at(beside.end(), payload(EventKind::compute_done, r, index));
    return;
  }
  if (options_.explained && accounting_.accounted_until(r) < now())
    charge_wait(r, index, rank.blocker(index), now());
  if (work == 0) return finish_op(r, index);
  rank.compute.start(index, work, rank.grids_of(op), rank.pace_of(op), now());
  rank.compute.event = engine_.at(rank.compute.end(), payload(EventKind::compute_done, r, index));
}

void Executor::occupy(std::uint32_t r, std::uint32_t op, std::uint32_t activity, int sign) {
  RankState& rank = ranks_[r];
  rank.occupy(rank.program->ops[op], system_.activities[activity], sign, calls_.memory_traffic(activity));
  retime(rank);
}

void Executor::retime(RankState& rank) {
  if (!rank.compute.running) return;
  rank.compute.change(rank.pace_of(rank.program->ops[rank.compute.op]), now());
  engine_.retime(rank.compute.event, rank.compute.end());
}

void Executor::finish_op(std::uint32_t r, std::uint32_t index) {
  RankState& rank = ranks_[r];
  const Op& op = rank.program->ops[index];
  OpTrace& trace = rank.trace->edit(index);
  trace.end = now();
  rank.finish(index, now());
  if (options_.explained && op.kind == OpKind::compute) {
    if (op.stream == 0)
      accounting_.busy(r, trace.begin, now(), rank.compute.slowed(now() - trace.begin));
    else if (trace.begin < now())
      rank.computed_beside.push_back({trace.begin, now()});
  }
  if (options_.timeline && measuring(r)) {
    timeline_.push_back({r, index,
                         static_cast<std::uint16_t>(rank.step - static_cast<std::uint32_t>(options_.warmup)),
                         op.stream, trace.arrived, trace.end, trace.ready});
  }
  ++ops_done_;
  if (progress_) progress_->ops_done.store(ops_done_, std::memory_order_relaxed);
  if (rank.ops_left == 0) finish_step(r, index);
}

void Executor::finish_step(std::uint32_t r, std::uint32_t last_op) {
  if (options_.explained) charge_wait(r, kNoOp, last_op, now());
  if (options_.explained && measuring(r)) {
    const Together times = computed_and_communicated(*ranks_[r].program, *ranks_[r].table, *ranks_[r].trace,
                                                     computing_, communicating_);
    accounting_.communicated(r, times.communication, times.hidden);
  }
  ranks_[r].last_op = last_op;
  auto& [end, ender] = enders_[ranks_[r].step++];
  if (end < now() || ender < r) ender = r;
  end = now();
  if (accounting_.finish_step(r, now())) {
    const std::size_t done = accounting_.boundaries().size();
    if (progress_) progress_->step = static_cast<int>(done), progress_->worth_printing = 1;
    if (done == static_cast<std::size_t>(options_.warmup)) snapshot();
    finished_ = done == static_cast<std::size_t>(options_.warmup + options_.steps);
    last_rank_ = enders_[done - 1].second;
  }
  if (ranks_[r].step < static_cast<std::uint32_t>(options_.warmup + options_.steps)) {
    ranks_[r].begin_step();
    start_ready(r);
  }
}

Outcome run(const program::Program& program, const fold::System& system, const topology::Topology& topology,
            network::Network& network, Carrier& carrier, const RunOptions& options, Progress* progress,
            bool exact_sharing) {
  return Executor(program, system, topology, network, carrier, options, progress, exact_sharing).run();
}
}  // namespace topsim::executor
