// Rank classes that are simulated together (a walk of their team): its begin, its end and its effects.
#include <algorithm>

#include "sim/executor/executor_class.hpp"

namespace topsim::executor {

void Executor::begin_walk(std::uint32_t team) {
  constexpr std::uint32_t kWorthwhile = 3;  // ops; for fewer, single events are cheaper
  const auto& groups = lock_step_.groups(team);
  const auto alone = [&](std::uint32_t group) { return isolated_.undisturbed(group); };
  if (walks_[team].resume != engine::kNoHandle || !std::all_of(groups.begin(), groups.end(), alone) ||
      !lock_step_.agree(team, now()))
    return;
  const auto& members = lock_step_.members(team);
  Walking& walking = walks_[team];
  walking.from = now();
  lock_step_.walk(team, now(), kNever, walking.walk);
  if (walking.walk.ops < kWorthwhile) return;
  walking.resume = ranks_[members.front()].compute.event;
  for (const std::uint32_t r : members)
    if (r != members.front()) engine_.cancel(ranks_[r].compute.event);
  engine_.replace(walking.resume, walking.walk.until, payload(EventKind::walk_done, 0, team));
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
    isolated_.add(shapes[s].activity, walk.calls[s].calls);
    if (measuring(members.front()))
      calls_.record(shapes[s].group, shapes[s].activity, walk.calls[s].total, walk.calls[s].calls);
  }
  if (options_.explained)
    for (const std::uint32_t r : members) accounting_.add(r, walk.account, walk.accounted_until);
  ops_done_ += std::uint64_t{walk.ops} * members.size();
  lock_step_.take_over(team, walk);
  if (walk.open) {
    const Walk::OpenCall& open = *walk.open;
    const auto [group, activity] = shapes[open.shape];
    const std::uint32_t call = calls_.joined(group, activity, open.op, open.begin);
    const engine::Handle event = engine_.at(open.end, payload(EventKind::call_done, 0, call));
    if (system_.activities[activity].bytes > Bytes(0)) {
      isolated_.called(group);
      isolated_.begin(group, activity, open.begin, call, event);
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
