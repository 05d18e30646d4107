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

// At most one team per group; a rank belongs to the first of its groups that forms one.
void LockStep::add_team(std::uint32_t group, std::uint32_t slot) {
  const auto& members = world_.system.groups[group].members;
  const fold::RankClass& first = world_.system.ranks[members.front()];
  const auto alike = [&](std::uint32_t m) {
    const fold::RankClass& rank = world_.system.ranks[m];
    return team_of_rank_[m] == kNone && rank.program_class == first.program_class &&
           rank.slowdown == first.slowdown;
  };
  if (!std::all_of(members.begin(), members.end(), alike)) return;
  Team team;
  Slots slots;
  for (std::uint32_t other = slot; other < world_.system.group_of.size(); ++other) {
    const std::uint32_t g = world_.system.group_of[other][members.front()];
    if (g == fold::System::kNone || !world_.isolated.isolated(g) || team_of_group_[g] != kNone ||
        world_.system.groups[g].members != members)
      continue;
    slots.push_back(other);
    team.groups.push_back(g);
    team.first_shape[other] = static_cast<std::uint32_t>(team.shapes.size());
    for (const std::uint32_t activity : world_.system.groups[g].activities)
      team.shapes.push_back({g, activity});
  }
  const auto [local, fresh] = local_streams_.try_emplace({first.program_class, slots});
  if (fresh) local->second = local_streams(first.program_class, slots);
  if (local->second.empty()) return;
  team.program_class = first.program_class;
  team.local = local->second;
  for (std::uint16_t s = 0; s < team.local.size(); ++s) {
    if (team.local[s])
      team.local_set |= only(s);
    else
      team.outer.push_back(s);
  }
  for (const std::uint32_t m : members) team_of_rank_[m] = static_cast<std::uint32_t>(teams_.size());
  for (const std::uint32_t g : team.groups) team_of_group_[g] = static_cast<std::uint32_t>(teams_.size());
  teams_.push_back(std::move(team));
}

std::vector<bool> LockStep::local_streams(std::uint16_t program_class, const Slots& slots) const {
  const program::RankProgram& cls = world_.program.classes[program_class];
  std::vector<bool> local(cls.streams.size(), true);
  bool calls = false;
  for (const Op& op : cls.ops) {
    const bool inside = op.kind == OpKind::collective && op.stream != 0 &&
                        std::binary_search(slots.begin(), slots.end(), op.slot);
    calls |= inside;
    if (!inside && !(op.kind == OpKind::compute && op.stream == 0)) local[op.stream] = false;
  }
  return calls && local[0] ? local : std::vector<bool>();
}

const std::vector<std::uint32_t>& LockStep::members(std::uint32_t team) const {
  return world_.system.groups[teams_[team].groups.front()].members;
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
    if (rank.step != first.step || rank.synced != first.synced || rank.ctas != first.ctas ||
        rank.memory_traffic != first.memory_traffic || !rank.compute.same(first.compute))
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
        trace.cause_rank = members(t).back();
      }
      rank.next[s] = walk.next[s];
      rank.running[s] = computes || calls ? 1 : 0;
    }
    rank.ops_left -= walk.ops;
    rank.compute = walk.compute;
    if (rank.synced != walk.synced) rank.host_free = walk.host_free;
    rank.synced = walk.synced;
    rank.ctas = walk.ctas;
    rank.memory_traffic = walk.memory_traffic;
    rank.open |= walk.opened | team.local_set;
  }
}
}  // namespace topsim::executor
