#include "sim/executor/lock_step.hpp"

#include <algorithm>
#include <cmath>

namespace topsim::executor {

using program::Op;
using program::OpKind;

LockStep::LockStep(const World& world, bool allowed)
    : world_(world),
      team_of_rank_(world.system.ranks.size(), kNone),
      team_of_group_(world.system.groups.size(), kNone) {
  if (!allowed) return;
  for (std::uint32_t slot = 0; slot < world.system.group_of.size(); ++slot) {
    for (const std::uint32_t group : world.system.group_of[slot]) {
      if (group != fold::System::kNone && team_of_group_[group] == kNone && world.isolated.isolated(group))
        add_team(group, slot);
    }
  }
}

// Teams are as many as there are groups; a rank belongs to the first of its groups that makes one.
void LockStep::add_team(std::uint32_t group, std::uint32_t slot) {
  const auto& members = world_.system.groups[group].members;
  const fold::RankClass& first = world_.system.ranks[members.front()];
  const program::RankProgram& cls = world_.program.classes[first.program_class];
  const auto alike = [&](std::uint32_t m) {
    const fold::RankClass& rank = world_.system.ranks[m];
    return team_of_rank_[m] == kNone && rank.program_class == first.program_class &&
           rank.slowdown == first.slowdown;
  };
  if (!std::all_of(members.begin(), members.end(), alike)) return;
  Team team{group, first.program_class, std::vector<bool>(cls.streams.size(), true)};
  bool calls = false;
  for (const Op& op : cls.ops) {
    const bool inside = op.kind == OpKind::collective && op.slot == slot && op.stream != 0;
    calls |= inside;
    if (!inside && !(op.kind == OpKind::compute && op.stream == 0)) team.local[op.stream] = false;
  }
  if (!calls || !team.local[0]) return;
  for (const std::uint32_t m : members) team_of_rank_[m] = static_cast<std::uint32_t>(teams_.size());
  team_of_group_[group] = static_cast<std::uint32_t>(teams_.size());
  teams_.push_back(std::move(team));
}

const std::vector<std::uint32_t>& LockStep::members(std::uint32_t team) const {
  return world_.system.groups[teams_[team].group].members;
}

bool LockStep::agree(std::uint32_t t, SimTime now) const {
  const Team& team = teams_[t];
  const RankState& first = world_.ranks[members(t).front()];
  if (!first.compute.running || first.compute.since != now) return false;
  for (std::uint16_t s = 1; s < team.local.size(); ++s)
    if (team.local[s] && first.running[s]) return false;
  for (const std::uint32_t m : members(t)) {
    const RankState& rank = world_.ranks[m];
    if (rank.throttling != 1) return false;  // a walk knows one pace for all
    if (rank.step != first.step || rank.synced != first.synced || rank.ctas != first.ctas ||
        rank.memory_traffic != first.memory_traffic || !rank.compute.same(first.compute))
      return false;
    for (std::uint16_t s = 0; s < team.local.size(); ++s)
      if (team.local[s] && (rank.next[s] != first.next[s] || rank.running[s] != first.running[s]))
        return false;
  }
  return true;
}

// Whether all that an op waits for outside, or inside, the team's streams is done.
bool LockStep::outside_done(const Team& team, std::uint32_t member, std::uint32_t op) const {
  const RankState& rank = world_.ranks[member];
  for (const std::uint32_t d : rank.program->dependencies_of(op)) {
    const std::uint16_t s = rank.program->ops[d].stream;
    if (!team.local[s] && rank.table->position[d] >= rank.next[s]) return false;
  }
  return true;
}

bool LockStep::inside_done(const Team& team, std::uint32_t op) const {
  for (const std::uint32_t d : walker_->program->dependencies_of(op)) {
    const std::uint16_t s = walker_->program->ops[d].stream;
    if (team.local[s] && walker_->table->position[d] >= walker_->next[s]) return false;
  }
  return true;
}

void LockStep::look_outward(const Team& team) {
  outward_.clear();
  for (const std::uint32_t m : world_.system.groups[team.group].members) {
    for (std::uint16_t s = 0; s < team.local.size(); ++s) {
      if (team.local[s]) continue;
      const std::uint32_t op = world_.ranks[m].head(s);
      if (op == kNoOp || !outside_done(team, m, op)) continue;
      const auto known = [&](const Outward& o) { return o.stream == s && o.op == op; };
      if (std::none_of(outward_.begin(), outward_.end(), known)) outward_.push_back({s, op});
    }
  }
}

void LockStep::walk(std::uint32_t t, SimTime from, SimTime limit, Walk& walk) {
  const Team& team = teams_[t];
  leader_ = members(t).front();
  walker_ = world_.ranks[leader_];
  walk.until = walk.accounted_until = from;
  walk.busy = {};
  walk.idle = {};
  walk.ops = 0;
  walk.calls.assign(world_.system.groups[team.group].activities.size(), {});
  walk.open.reset();
  // Hosts that resumed at different times make no difference while none of them is waited for.
  hosts_agree_ = true;
  for (const std::uint32_t m : members(t)) {
    hosts_agree_ &= world_.ranks[m].host_free == walker_->host_free;
    walker_->host_free = std::max(walker_->host_free, world_.ranks[m].host_free);
  }
  // The end of a step is more than the team's affair.
  std::uint32_t budget = walker_->ops_left;
  for (const std::uint32_t m : members(t)) budget = std::min(budget, world_.ranks[m].ops_left);
  look_outward(team);
  for (bool inside = start_heads(team, from, walk); inside;) {
    SimTime next = next_issue_;
    if (walker_->compute.running) next = std::min(next, walker_->compute.end());
    if (walk.open) next = std::min(next, walk.open->end);
    if (next == kNever || walk.ops + 2 >= budget) break;  // two ops may end at one instant
    if (next > limit) {
      walk.until = limit;
      break;
    }
    if (walker_->compute.running && walker_->compute.end() == next) {
      walker_->compute.running = false;
      finish(walker_->compute.op, next, walk);
    }
    if (walk.open && walk.open->end == next) {
      const OpenCall call = *walk.open;
      walk.open.reset();
      occupy(call.activity, -1, next);
      const auto& activities = world_.system.groups[team.group].activities;
      const auto at = std::find(activities.begin(), activities.end(), call.activity) - activities.begin();
      ++walk.calls[static_cast<std::size_t>(at)].calls;
      walk.calls[static_cast<std::size_t>(at)].total += call.end - call.begin;
      finish(call.op, next, walk);
    }
    inside = start_heads(team, next, walk);
    walk.until = next;
  }
  walk.next = walker_->next;
  walk.compute = walker_->compute;
  walk.host_free = walker_->host_free;
  walk.synced = walker_->synced;
  walk.ctas = walker_->ctas;
  walk.memory_traffic = walker_->memory_traffic;
}

// Starts what can start; false when something outside the team's streams can.
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
      if (issued > now) {
        next_issue_ = std::min(next_issue_, issued);
        outward |= !hosts_agree_;
        continue;
      }
      std::size_t ready = 0;
      const auto& members = world_.system.groups[team.group].members;
      for (const std::uint32_t m : members) ready += outside_done(team, m, op) ? 1 : 0;
      if (ready == 0) continue;
      if (ready < members.size()) {
        outward = true;
        continue;
      }
      walker_->running[s] = true;
      start(team, op, issued, now, walk);
      moved = true;
    }
  }
  for (const Outward& head : outward_) {
    if (!inside_done(team, head.op)) continue;
    const SimTime issued = walker_->issue_time(head.op);
    if (issued == kNever) continue;
    if (issued > now) next_issue_ = std::min(next_issue_, issued);
    outward |= issued <= now || !hosts_agree_;
  }
  return !outward;
}

void LockStep::start(const Team& team, std::uint32_t index, SimTime issued, SimTime now, Walk& walk) {
  RankState& rank = *walker_;
  const Op& op = rank.program->ops[index];
  OpTrace& trace = rank.trace->edit(index);
  trace.begin = trace.ready = now;
  trace.blocker = rank.blocker(index, issued);
  trace.cause_rank = trace.cause_op = kNoOp;
  if (op.kind == OpKind::collective) {
    const fold::GroupClass& group = world_.system.groups[team.group];
    const std::uint32_t activity = group.activities[world_.system.op_shape[team.program_class][index]];
    trace.cause_rank = group.members.back();
    trace.cause_op = index;
    occupy(activity, +1, now);
    walk.open = OpenCall{index, activity, now, now + world_.isolated.duration(activity)};
    return;
  }
  if (walk.accounted_until < now) {
    legs_.clear();
    explain_wait(*rank.program, *rank.table, *rank.trace, world_.charges[world_.charge_of[leader_]], index,
                 trace.blocker, rank.host_free, walk.accounted_until, now, legs_);
    for (const WaitLeg& leg : legs_) walk.idle[static_cast<std::size_t>(leg.reason)] += leg.end - leg.begin;
    walk.accounted_until = now;
  }
  const auto work = static_cast<std::int64_t>(
      std::llround(static_cast<double>(op.duration.count()) * world_.system.ranks[leader_].slowdown));
  if (work == 0) return finish(index, now, walk);
  rank.compute.start(index, work, rank.contention(op), now);
}

void LockStep::finish(std::uint32_t index, SimTime now, Walk& walk) {
  RankState& rank = *walker_;
  OpTrace& trace = rank.trace->edit(index);
  trace.end = now;
  rank.finish(index, now);
  hosts_agree_ |= rank.synced == index;
  ++walk.ops;
  if (rank.program->ops[index].kind != OpKind::compute) return;
  walk.busy += now - trace.begin;
  walk.accounted_until = now;
}

void LockStep::occupy(std::uint32_t activity, int sign, SimTime now) {
  RankState& rank = *walker_;
  rank.occupy(world_.system.activities[activity], sign, world_.calls.memory_traffic(activity));
  if (!rank.compute.running) return;
  (void)rank.compute.change(rank.contention(rank.program->ops[rank.compute.op]), now);
}

// Ops of a stream from where `rank` stands to `end`. What they computed when they came to agree may have been
// held up by different things.
void LockStep::share_trace(RankState& rank, const RankState& leader, std::uint16_t stream,
                           std::uint32_t end) {
  std::uint32_t first = rank.next[stream];
  if (stream == 0 && first < end) {
    const std::uint32_t op = rank.table->ops[0][first];
    OpTrace own = (*rank.trace)[op];
    const OpTrace& theirs = (*leader.trace)[op];
    own.end = theirs.end;
    if (!(own == theirs)) {
      rank.trace->edit(op) = own;
      ++first;
    }
  }
  rank.trace->share(*leader.trace, stream, first, end);
}

void LockStep::take_over(std::uint32_t t, const Walk& walk) {
  const Team& team = teams_[t];
  const RankState& leader = world_.ranks[members(t).front()];
  for (const std::uint32_t m : members(t)) {
    RankState& rank = world_.ranks[m];
    for (std::uint16_t s = 0; s < team.local.size(); ++s) {
      if (!team.local[s]) continue;
      const bool running =
          s == 0 ? walk.compute.running : walk.open && rank.program->ops[walk.open->op].stream == s;
      if (&rank != &leader) share_trace(rank, leader, s, walk.next[s] + (running ? 1U : 0U));
      rank.next[s] = walk.next[s];
      rank.running[s] = running;
    }
    rank.ops_left -= walk.ops;
    rank.compute = walk.compute;
    if (rank.synced != walk.synced) rank.host_free = walk.host_free;
    rank.synced = walk.synced;
    rank.ctas = walk.ctas;
    rank.memory_traffic = walk.memory_traffic;
  }
}
}  // namespace topsim::executor
