// Simulates one team without events (a walk), or reuses an equal earlier walk; see lock_step.hpp.
#include <algorithm>
#include <bit>
#include <cmath>

#include "sim/executor/lock_step.hpp"

namespace topsim::executor {

using program::Op;
using program::OpKind;

// Whether one member has finished everything outside the team's streams that the op waits for.
bool LockStep::outside_done(const Team& team, std::uint32_t member, std::uint32_t op) const {
  const RankState& rank = world_.ranks[member];
  for (const auto& [position, s] : rank.table->needs_of(op))
    if (!team.local[s] && position >= rank.next[s]) return false;
  return true;
}

// The same for all members (`least`) or for at least one (`most`).
bool LockStep::outside_done(const Team& team, std::uint32_t op, std::uint32_t Span::*which) const {
  for (const auto& [position, s] : walker_->table->needs_of(op))
    if (!team.local[s] && position >= spans_[s].*which) return false;
  return true;
}

bool LockStep::inside_done(const Team& team, std::uint32_t op) const {
  for (const auto& [position, s] : walker_->table->needs_of(op))
    if (team.local[s] && position >= walker_->next[s]) return false;
  return true;
}

// How far the members' other streams and their hosts have come.
void LockStep::look_around(const Team& team) {
  const RankState& first = world_.ranks[leader_];
  outward_.clear();
  spans_.assign(team.local.size(), {~0U, 0});
  hosts_agree_ = true;
  host_free_ = first.host_free;
  budget_ = first.ops_left;
  for (const std::uint32_t m : team.members) {
    const RankState& rank = world_.ranks[m];
    hosts_agree_ &= rank.host_free == first.host_free;
    host_free_ = std::max(host_free_, rank.host_free);
    budget_ = std::min(budget_, rank.ops_left);
    for (const std::uint16_t s : team.outer) {
      Span& span = spans_[s];
      span.least = std::min(span.least, rank.next[s]);
      span.most = std::max(span.most, rank.next[s]);
      const std::uint32_t op = rank.head(s);
      if (op == kNoOp || !outside_done(team, m, op)) continue;
      const auto known = [&](const Outward& o) { return o.stream == s && o.op == op; };
      if (std::none_of(outward_.begin(), outward_.end(), known)) outward_.push_back({s, op});
    }
  }
}

// Numbers the teams by everything that a walk can depend on.
std::uint32_t LockStep::profile_of(Team& team) {
  if (team.profile != kNone) return team.profile;
  const std::uint32_t first = team.members.front();
  const RankState& rank = world_.ranks[first];
  std::vector<std::uint64_t> what{team.program_class, world_.charge_of[first],
                                  static_cast<std::uint64_t>(rank.accelerator.compute_units),
                                  std::bit_cast<std::uint64_t>(rank.accelerator.memory_bandwidth.value()),
                                  std::bit_cast<std::uint64_t>(world_.system.ranks[first].slowdown)};
  for (std::size_t s = 0; s < team.local.size(); ++s) what.push_back(team.local[s] ? 1 : 0);
  for (const auto& [slot, shape] : team.first_shape) what.push_back(std::uint64_t{slot} << 32 | shape);
  for (const Shape& shape : team.shapes) {
    const std::uint32_t a = shape.front().activity;
    what.push_back(static_cast<std::uint64_t>(world_.isolated.duration(a).count()));
    what.push_back(static_cast<std::uint64_t>(world_.system.activities[a].ctas));
    what.push_back(static_cast<std::uint64_t>(world_.calls.memory_traffic(a)));
  }
  const auto fresh = static_cast<std::uint32_t>(profiles_.size());
  return team.profile = profiles_.try_emplace(std::move(what), fresh).first->second;
}

// Writes the key of the walk: its initial state as far as it matters (the host apart: HostBound), and the
// time at which it is cut, since messages of the next step mostly come when those of the last one did. Times
// count from `from`.
void LockStep::describe(Team& team, SimTime from, SimTime limit) {
  const RankState& first = world_.ranks[leader_];
  const ComputeState& compute = first.compute;
  const auto pair = [](std::uint32_t a, std::uint32_t b) { return std::uint64_t{a} << 32 | b; };
  constexpr std::size_t kHead = 14, kLimit = 2;  // words
  key_.resize(kHead + team.local.size() + outward_.size() + (limit == kNever ? 0 : kLimit));
  std::uint64_t* word = key_.data();
  *word++ = pair(profile_of(team), hosts_agree_ ? 1U : 0U);
  *word++ = pair(compute.op, first.synced);
  *word++ = static_cast<std::uint64_t>(compute.shared);
  *word++ = static_cast<std::uint64_t>(compute.grid);
  *word++ = static_cast<std::uint64_t>(compute.left_over);
  *word++ = std::uint64_t{compute.cells} << 3 | (compute.begun == from ? 4U : 0U) |
            (compute.placed ? 2U : 0U) | (compute.pace.beside ? 1U : 0U);
  *word++ = static_cast<std::uint64_t>((compute.since - from).count());
  // Two ops may have the same work left although they began at different times, and begins are reported.
  const SimTime begin = world_.explained ? (*first.trace)[compute.op].begin : from;
  *word++ = static_cast<std::uint64_t>((begin - from).count());
  *word++ = static_cast<std::uint64_t>(compute.alone);
  *word++ = std::bit_cast<std::uint64_t>(compute.pace.shared);
  *word++ = std::bit_cast<std::uint64_t>(compute.pace.left_over);
  *word++ = pair(static_cast<std::uint32_t>(first.ctas), budget_);
  *word++ = static_cast<std::uint64_t>(first.memory_traffic);
  *word++ = static_cast<std::uint64_t>(first.copied);
  for (std::size_t s = 0; s < team.local.size(); ++s)
    *word++ = team.local[s] ? first.next[s] : pair(spans_[s].least, spans_[s].most);
  for (const Outward& head : outward_) *word++ = pair(head.stream, head.op);
  if (limit == kNever) return;
  constexpr std::uint64_t kCut = ~std::uint64_t{0};  // no entry of outward_ looks like this
  *word++ = kCut;
  *word++ = static_cast<std::uint64_t>((limit - from).count());
}

void LockStep::walk(std::uint32_t t, SimTime from, SimTime limit, Walk& walk) {
  Team& team = teams_[t];
  leader_ = members(t).front();
  look_around(team);
  const Duration host_free = host_free_ - from;
  describe(team, from, limit);
  ++walks_;
  if (memory_.find(key_, from, host_free, walk)) {
    ++remembered_;
    return;
  }
  walker_ = world_.ranks[leader_];
  walker_->host_free = host_free_;
  synced_at_start_ = walker_->synced;
  from_ = from;
  host_ = {};
  walk.from = walk.until = walk.accounted_until = from;
  go(team, limit, walk);
  if (world_.explained) collect_trace(team, walk);
  memory_.add(key_, from, host_free, host_, walk);
}

void LockStep::go(const Team& team, SimTime limit, Walk& walk) {
  const SimTime from = walk.from;
  walk.account = {};
  walk.ops = 0;
  walk.calls.assign(team.shapes.size(), {});
  walk.open.reset();
  for (bool inside = start_heads(team, from, walk); inside;) {
    SimTime next = next_issue_;
    if (walker_->compute.running) next = std::min(next, walker_->compute.end());
    if (walk.open) next = std::min(next, walk.open->arrived ? walk.open->end : walk.open->begin);
    if (next == kNever || walk.ops + 2 >= budget_) break;  // two ops may end at one instant
    if (next > limit) {
      walk.until = limit;
      break;
    }
    if (walker_->compute.running && walker_->compute.end() == next) {
      walker_->compute.stop(next);
      finish(walker_->compute.op, next, walk);
    }
    if (walk.open && !walk.open->arrived && walk.open->begin == next)
      arrive(team, next, walk);
    else if (walk.open && walk.open->arrived && walk.open->end == next && !extend(team, next, walk)) {
      const Walk::OpenCall call = *walk.open;
      walk.open.reset();
      occupy(call.op, team.shapes[call.shape].front().activity, -1, next);
      ++walk.calls[call.shape].calls;
      walk.calls[call.shape].total += call.end - call.begin;
      finish(call.op, next, walk);
    }
    inside = start_heads(team, next, walk);
    walk.until = next;
  }
  walk.next = walker_->next;
  walk.compute = walker_->compute;
  walk.filled = walk.compute.filled - world_.ranks[leader_].compute.filled;
  walk.host_free = walker_->host_free;
  walk.synced = walker_->synced;
  walk.ctas = walker_->ctas;
  walk.memory_traffic = walker_->memory_traffic;
  walk.copied = walker_->copied;
  walk.opened = walker_->open;
}

// Starts every op that can start; false when an op outside the team's streams can start.
bool LockStep::start_heads(const Team& team, SimTime now, Walk& walk) {
  bool outward = false;
  for (bool moved = true; moved;) {
    moved = outward = false;
    next_issue_ = kNever;
    for (std::uint16_t s = 0; s < team.local.size(); ++s) {
      if (!team.local[s]) continue;
      const std::uint32_t op = walker_->head(s);
      if (op == kNoOp || !inside_done(team, op)) continue;
      const SimTime issued = walker_->issue_time(op);
      if (issued == kNever) continue;
      if (comes_later(op, issued, now)) {
        next_issue_ = std::min(next_issue_, issued);
        outward |= !hosts_agree_;
        continue;
      }
      if (!outside_done(team, op, &Span::most)) continue;
      if (!outside_done(team, op, &Span::least)) {
        outward = true;
        continue;
      }
      if (s != 0 && walk.open) {  // a second call of its communicators would overlap the first
        outward = true;
        continue;
      }
      walker_->running[s] = 1;
      start(team, op, issued, now, walk);
      moved = true;
      if (!walker_->running[s]) break;  // done at once: its stream goes on before others
    }
  }
  for (const Outward& head : outward_) {
    if (!inside_done(team, head.op)) continue;
    const SimTime issued = walker_->issue_time(head.op);
    if (issued == kNever) continue;
    const bool later = comes_later(head.op, issued, now);
    if (later) next_issue_ = std::min(next_issue_, issued);
    outward |= !later || !hosts_agree_;
  }
  return !outward;
}

void LockStep::start(const Team& team, std::uint32_t index, SimTime issued, SimTime now, Walk& walk) {
  RankState& rank = *walker_;
  const Op& op = rank.program->ops[index];
  if (world_.explained) explain(index, issued, now, walk);
  if (op.kind == OpKind::collective) {
    const std::uint32_t shape = shape_of(team, index);
    const std::uint32_t activity = team.shapes[shape].front().activity;
    const Duration wait = rank.wait_for_units(index, world_.system.activities[activity], now);
    walk.open = Walk::OpenCall{index, shape, now + wait, {}, {}};
    if (wait == Duration{}) arrive(team, now, walk);
    return;
  }
  const std::int64_t work = work_of(op, world_.system.ranks[leader_].slowdown).count();
  if (work == 0) return finish(index, now, walk);
  rank.compute.start(index, work, rank.grids_of(op), rank.pace_of(op), now);
}

// The open call's blocks have units.
void LockStep::arrive(const Team& team, SimTime now, Walk& walk) {
  Walk::OpenCall& call = *walk.open;
  const std::uint32_t activity = team.shapes[call.shape].front().activity;
  call.arrived = true;
  call.end = engine::later(now, world_.isolated.duration(activity));
  call.paid = walker_->compute.filled_at(now) - world_.ranks[leader_].compute.filled;
  if (world_.explained) {
    OpTrace& trace = walker_->trace->edit(call.op);
    trace.arrived = trace.ready = now;
  }
  occupy(call.op, activity, +1, now);
}

// Whether the open call, whose bytes have arrived, goes on for what it was held back meanwhile.
bool LockStep::extend(const Team& team, SimTime now, Walk& walk) {
  Walk::OpenCall& call = *walk.open;
  if (call.extended) return false;
  const std::uint32_t activity = team.shapes[call.shape].front().activity;
  if (call.traffic == 0) call.traffic = world_.calls.memory_traffic(activity, now - call.begin);
  const std::int64_t begin = world_.ranks[leader_].compute.filled;
  std::int64_t paid = begin + call.paid;
  const Rest rest = walker_->rest_of(walker_->program->ops[call.op], world_.system.activities[activity],
                                     call.traffic, paid, now);
  call.paid = paid - begin;
  call.extended = rest.last;
  call.end = now + rest.takes;
  return rest.takes > Duration{};
}

// Records what an op that begins has waited for, and why the accelerator was idle.
void LockStep::explain(std::uint32_t index, SimTime issued, SimTime now, Walk& walk) {
  const RankState& rank = *walker_;
  OpTrace& trace = rank.trace->edit(index);
  trace.begin = trace.arrived = trace.ready = now;
  trace.blocker = find_blocker(*rank.program, *rank.table, *rank.trace, index, now);
  if (trace.blocker == kHost)
    (void)comes_later(index, issued, issued - Duration(1));
  else if (trace.blocker != kNoOp)
    (void)comes_later(index, issued, (*rank.trace)[trace.blocker].end);
  const bool calls = rank.program->ops[index].kind == OpKind::collective;
  trace.cause_rank = calls ? kOwnTeam : kNoOp;
  trace.cause_op = calls ? index : kNoOp;
  if (calls || walk.accounted_until >= now) return;
  legs_.clear();
  explain_wait(*rank.program, *rank.table, *rank.trace, world_.charges[world_.charge_of[leader_]], index,
               trace.blocker, walk.accounted_until, now, legs_);
  for (const WaitLeg& leg : legs_)
    walk.account.idle[static_cast<std::size_t>(leg.reason)] += leg.end - leg.begin;
  walk.accounted_until = now;
}

void LockStep::finish(std::uint32_t index, SimTime now, Walk& walk) {
  RankState& rank = *walker_;
  const Op& op = rank.program->ops[index];
  if (index == world_.ranks[leader_].compute.op) walk.first_end = now;
  if (op.host_sync) (void)comes_later(index, rank.issue_time(index), now);
  rank.finish(index, now);
  hosts_agree_ |= rank.synced == index;
  ++walk.ops;
  if (!world_.explained) return;
  OpTrace& trace = rank.trace->edit(index);
  trace.end = now;
  if (op.kind != OpKind::compute) return;
  walk.account.busy += now - trace.begin;
  walk.account.slowed += rank.compute.slowed(now - trace.begin);
  walk.accounted_until = now;
}

void LockStep::occupy(std::uint32_t op, std::uint32_t activity, int sign, SimTime now) {
  RankState& rank = *walker_;
  rank.occupy(rank.program->ops[op], world_.system.activities[activity], sign,
              world_.calls.memory_traffic(activity));
  if (!rank.compute.running) return;
  rank.compute.change(rank.pace_of(rank.program->ops[rank.compute.op]), now);
}

// Whether the op is issued after `now`. Records which host times give the same answer: the walk holds for
// them.
bool LockStep::comes_later(std::uint32_t op, SimTime issued, SimTime now) {
  const bool later = issued > now;
  const RankState& rank = *walker_;
  if (rank.synced != synced_at_start_ || (rank.synced != kNoOp && op < rank.synced)) return later;
  if (later)
    host_.mattered = true;
  else
    host_.latest = std::min(host_.latest, host_free_ + (now - issued) - from_);
  return later;
}

// Moves the entries that the walk wrote out of the first member's trace.
void LockStep::collect_trace(const Team& team, Walk& walk) {
  const RankState& before = world_.ranks[leader_];
  const Duration back = -walk.from.time_since_epoch();
  taken_.clear();
  walk.trace_begin.assign(1, 0);
  for (std::uint16_t s = 0; s < team.local.size(); ++s) {
    if (team.local[s]) {
      before.trace->take_back(s, before.next[s] + (s == 0 ? 1U : 0U), taken_);
      const bool calls = s != 0 && walk.open && before.program->ops[walk.open->op].stream == s;
      const bool computes = s == 0 && walk.compute.running && walk.compute.op != before.compute.op;
      if (calls) walk.open->trace = taken_.back();
      if (computes) walk.compute_trace = taken_.back();
      if (calls || computes) taken_.pop_back();
    }
    walk.trace_begin.push_back(static_cast<std::uint32_t>(taken_.size()));
  }
  for (OpTrace& trace : taken_) trace = trace.shifted(back);
  walk.trace = std::make_shared<const std::vector<OpTrace>>(taken_);
}
}  // namespace topsim::executor
