#include "sim/executor/lock_step.hpp"

#include <algorithm>
#include <cmath>

namespace topsim::executor {

using program::Op;
using program::OpKind;

LockStep::LockStep(const World& world, bool allowed)
    : world_(world),
      teams_of_rank_(world.system.ranks.size(), {kNone, kNone}),
      teams_of_group_(world.system.groups.size(), {kNone, kNone}) {
  if (!allowed) return;
  for (const auto& circle : world.isolated.circles()) add_team(circle, 0);
  for (const auto& groups : world.system.group_of) {
    for (const std::uint32_t group : groups) {
      if (group != fold::System::kNone && teams_of_group_[group][1] == kNone &&
          world.isolated.isolated(group))
        add_team(world.system.groups[group].members, 1);
    }
  }
}

// A rank belongs to one circle at most, and to the first of its groups that forms a team.
void LockStep::add_team(const std::vector<std::uint32_t>& members, std::size_t level) {
  const fold::RankClass& first = world_.system.ranks[members.front()];
  const auto alike = [&](std::uint32_t m) {
    const fold::RankClass& rank = world_.system.ranks[m];
    return teams_of_rank_[m][level] == kNone && rank.program_class == first.program_class &&
           rank.slowdown == first.slowdown;
  };
  if (!std::all_of(members.begin(), members.end(), alike)) return;
  Team team;
  team.members = members;
  Slots slots;
  for (std::uint32_t slot = 0; slot < world_.system.group_of.size(); ++slot)
    if (add_slot(team, slot)) slots.push_back(slot);
  const auto [local, fresh] = local_streams_.try_emplace({first.program_class, slots});
  if (fresh) local->second = local_streams(first.program_class, slots);
  if (local->second.empty()) return;
  team.program_class = first.program_class;
  for (const std::optional<Slots>& called : local->second) {
    const auto s = static_cast<std::uint16_t>(team.local.size());
    // kOwnTeam stands for one member a stream.
    const auto same_last = [&](std::uint32_t slot) {
      return std::all_of(members.begin(), members.end(), [&](std::uint32_t m) {
        return last_member(slot, m) == last_member(called->front(), m);
      });
    };
    team.local.push_back(called && std::all_of(called->begin(), called->end(), same_last));
    team.slot.push_back(team.local[s] && !called->empty() ? called->front() : kNone);
    if (team.local[s])
      team.local_set |= only(s);
    else
      team.outer.push_back(s);
  }
  const auto number = static_cast<std::uint32_t>(teams_.size());
  for (const std::uint32_t m : members) teams_of_rank_[m][level] = number;
  for (const std::uint32_t g : team.groups) teams_of_group_[g][level] = number;
  teams_.push_back(std::move(team));
}

// Adds the communicators of the slot if they are isolated, connect members only, and take the same time.
bool LockStep::add_slot(Team& team, std::uint32_t slot) const {
  const auto& groups = world_.system.groups;
  std::vector<std::uint32_t> its;
  std::size_t members = 0;
  for (const std::uint32_t m : team.members) {
    const std::uint32_t g = world_.system.group_of[slot][m];
    if (g == fold::System::kNone || !world_.isolated.isolated(g)) return false;
    if (std::find(its.begin(), its.end(), g) != its.end()) continue;
    its.push_back(g);
    members += groups[g].members.size();
    if (!std::includes(team.members.begin(), team.members.end(), groups[g].members.begin(),
                       groups[g].members.end()))
      return false;
  }
  const auto& activities = groups[its.front()].activities;
  const auto same = [&](std::uint32_t g) {
    return std::equal(activities.begin(), activities.end(), groups[g].activities.begin(),
                      groups[g].activities.end(), [&](std::uint32_t a, std::uint32_t b) {
                        return world_.isolated.duration(a) == world_.isolated.duration(b) &&
                               world_.system.activities[a].ctas == world_.system.activities[b].ctas &&
                               world_.calls.memory_traffic(a) == world_.calls.memory_traffic(b);
                      });
  };
  if (members != team.members.size() || !std::all_of(its.begin(), its.end(), same)) return false;
  team.first_shape[slot] = static_cast<std::uint32_t>(team.shapes.size());
  for (std::size_t a = 0; a < activities.size(); ++a) {
    Shape& shape = team.shapes.emplace_back();
    for (const std::uint32_t g : its) shape.push_back({g, groups[g].activities[a]});
  }
  team.groups.insert(team.groups.end(), its.begin(), its.end());
  return true;
}

void LockStep::name_last(std::uint32_t t, std::vector<Trace>& traces) const {
  const Team& team = teams_[t];
  for (std::uint16_t s = 0; s < team.slot.size(); ++s) {
    if (team.slot[s] == kNone) continue;
    for (const std::uint32_t m : team.members) traces[m].set_team(s, last_member(team.slot[s], m));
  }
}

LockStep::Streams LockStep::local_streams(std::uint16_t program_class, const Slots& slots) const {
  const program::RankProgram& cls = world_.program.classes[program_class];
  Streams local(cls.streams.size(), Slots());
  bool calls = false;
  for (const Op& op : cls.ops) {
    const bool inside = op.kind == OpKind::collective && op.stream != 0 &&
                        std::binary_search(slots.begin(), slots.end(), op.slot);
    calls |= inside;
    std::optional<Slots>& its = local[op.stream];
    if (!inside && !(op.kind == OpKind::compute && op.stream == 0))
      its.reset();
    else if (inside && its && std::find(its->begin(), its->end(), op.slot) == its->end())
      its->push_back(op.slot);
  }
  return calls && local[0] ? local : Streams();
}

std::uint32_t LockStep::shape_of(const Team& team, std::uint32_t op) const {
  return team.first_shape.at(world_.program.classes[team.program_class].ops[op].slot) +
         world_.system.op_shape[team.program_class][op];
}

bool LockStep::agree(std::uint32_t t, SimTime now) const {
  const Team& team = teams_[t];
  const RankState& first = world_.ranks[members(t).front()];
  if (!first.compute.running || first.compute.since != now) return false;
  for (std::uint16_t s = 1; s < team.local.size(); ++s)
    if (team.local[s] && first.running[s]) return false;
  for (const std::uint32_t m : members(t)) {
    const RankState& rank = world_.ranks[m];
    if (rank.throttling != 1) return false;  // a walk has one pace for all members
    if (!rank.beside.empty() || !rank.computed_beside.empty()) return false;  // and one stream that computes
    if (&rank == &first) continue;
    if (world_.charge_of[m] != world_.charge_of[members(t).front()] || rank.accelerator != first.accelerator)
      return false;
    if (rank.step != first.step || rank.synced != first.synced || rank.ctas != first.ctas ||
        rank.memory_traffic != first.memory_traffic || rank.copied != first.copied ||
        !rank.compute.same(first.compute))
      return false;
    // The remaining work may be rounded to the same value although one began a picosecond earlier.
    if (world_.explained && (*rank.trace)[first.compute.op].begin != (*first.trace)[first.compute.op].begin)
      return false;
    for (std::uint16_t s = 0; s < team.local.size(); ++s)
      if (team.local[s] && (rank.next[s] != first.next[s] || rank.running[s] != first.running[s]))
        return false;
  }
  return true;
}

void LockStep::take_over(std::uint32_t t, const Walk& walk) {
  const Team& team = teams_[t];
  for (const std::uint32_t m : members(t)) {
    RankState& rank = world_.ranks[m];
    const std::uint32_t first = rank.compute.op;
    if (walk.next[0] > rank.next[0]) rank.trace->edit(first).end = walk.first_end;
    for (std::uint16_t s = 0; s < team.local.size(); ++s) {
      if (!team.local[s]) continue;
      const bool computes = s == 0 && walk.compute.running;
      const bool calls = s != 0 && walk.open && rank.program->ops[walk.open->op].stream == s;
      if (world_.explained)
        rank.trace->append(s, walk.trace, walk.trace_begin[s], walk.trace_begin[s + 1U] - walk.trace_begin[s],
                           walk.from.time_since_epoch());
      if (computes && walk.compute.op != first) rank.trace->edit(walk.compute.op) = walk.compute_trace;
      if (calls) {
        OpTrace& trace = rank.trace->edit(walk.open->op);
        trace = walk.open->trace;
        trace.cause_rank = last_member(rank.program->ops[walk.open->op].slot, m);
      }
      rank.next[s] = walk.next[s];
      rank.running[s] = computes || calls ? 1 : 0;
    }
    rank.ops_left -= walk.ops;
    const std::int64_t filled = rank.compute.filled + walk.filled;
    rank.compute = walk.compute;
    rank.compute.filled = filled;
    if (rank.synced != walk.synced) rank.host_free = walk.host_free;
    rank.synced = walk.synced;
    rank.ctas = walk.ctas;
    rank.memory_traffic = walk.memory_traffic;
    rank.copied = walk.copied;
    rank.open |= walk.opened | team.local_set;
  }
}
}  // namespace topsim::executor
