// Rank classes that are simulated together (a walk of their team): its begin, its end and its effects.
#include <algorithm>
#include <utility>

#include "sim/executor/executor_class.hpp"

namespace topsim::executor {

// Once all calls of an instant have ended: those of a circle end together.
void Executor::begin_walks() {
  const auto try_to = [&](std::uint32_t team) {
    return team != LockStep::kNone && std::exchange(walks_[team].tried, now()) != now() && begin_walk(team);
  };
  for (const std::uint32_t group : stirred_) {
    for (const std::uint32_t team : lock_step_.teams_of_group(group))
      if (try_to(team)) break;
    for (const std::uint32_t r : system_.groups[group].members) {
      const auto& [circle, team] = lock_step_.teams_of_rank(r);
      if (circle != LockStep::kNone && !try_to(circle)) try_to(team);
    }
  }
  stirred_.clear();
}

// False: the members do not agree, or some of them walk already.
bool Executor::begin_walk(std::uint32_t team) {
  constexpr std::uint32_t kWorthwhile = 3;  // ops; for fewer, single events are cheaper
  const auto& groups = lock_step_.groups(team);
  const auto alone = [&](std::uint32_t group) { return isolated_.undisturbed(group); };
  const auto& members = lock_step_.members(team);
  const auto walking_already = [&](std::uint32_t r) {
    const auto& teams = lock_step_.teams_of_rank(r);
    return std::any_of(teams.begin(), teams.end(), [&](std::uint32_t its) { return walks(its); });
  };
  if (std::any_of(members.begin(), members.end(), walking_already) ||
      !std::all_of(groups.begin(), groups.end(), alone) || !lock_step_.agree(team, now()))
    return false;
  Walking& walking = walks_[team];
  walking.from = now();
  lock_step_.walk(team, now(), kNever, walking.walk);
  if (walking.walk.ops < kWorthwhile) return true;
  walking.resume = ranks_[members.front()].compute.event;
  for (const std::uint32_t r : members)
    if (r != members.front()) engine_.cancel(ranks_[r].compute.event);
  engine_.replace(walking.resume, walking.walk.until, payload(EventKind::walk_done, 0, team));
  return true;
}

void Executor::cut_walk(std::uint32_t team) {
  Walking& walking = walks_[team];
  engine_.cancel(walking.resume);
  walking.resume = engine::kNoHandle;
  if (now() < walking.walk.until) lock_step_.walk(team, walking.from, now(), walking.walk);
  end_walk(team);
}

void Executor::end_walk(std::uint32_t team) {
  const Walk& walk = walks_[team].walk;
  const auto& members = lock_step_.members(team);
  const auto& shapes = lock_step_.shapes(team);
  for (std::size_t s = 0; s < shapes.size(); ++s) {
    if (walk.calls[s].calls == 0) continue;
    for (const auto& [group, activity] : shapes[s]) {
      isolated_.add(activity, walk.calls[s].calls);
      if (measuring(members.front()))
        calls_.record(group, activity, walk.calls[s].total, walk.calls[s].calls);
    }
  }
  if (options_.explained)
    for (const std::uint32_t r : members) accounting_.add(r, walk.account, walk.accounted_until);
  ops_done_ += std::uint64_t{walk.ops} * members.size();
  lock_step_.take_over(team, walk);
  if (walk.open) {
    const Walk::OpenCall& open = *walk.open;
    for (const std::uint32_t r : members)
      if (!open.arrived) engine_.at(open.begin, payload(EventKind::arrive, r, open.op));
    for (const auto& [group, activity] : shapes[open.shape]) {
      if (!open.arrived) break;
      const std::uint32_t call = calls_.joined(group, activity, open.op, open.begin);
      for (const std::uint32_t r : system_.groups[group].members)
        calls_[call].paid.push_back(ranks_[r].compute.filled - walk.filled + open.paid);
      calls_[call].traffic = open.traffic;
      calls_[call].extended = open.extended;
      const engine::Handle event = engine_.at(open.end, payload(EventKind::call_done, 0, call));
      if (system_.activities[activity].bytes > Bytes(0)) {
        isolated_.called(group);
        isolated_.begin(group, activity, open.begin, call, event);
      }
    }
  }
  for (const std::uint32_t r : members) {
    if (!walk.compute.running) continue;
    ranks_[r].compute.event =
        engine_.at(walk.compute.end(), payload(EventKind::compute_done, r, walk.compute.op));
  }
  for (const std::uint32_t r : members) start_ready(r);
}

void Executor::end_all_walks() {
  for (std::uint32_t team = 0; team < walks_.size(); ++team)
    leave_lock_step(lock_step_.members(team).front());
}
}  // namespace topsim::executor
