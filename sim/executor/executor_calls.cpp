// Calls from a member's arrival to their end.
#include <algorithm>

#include "sim/executor/executor_class.hpp"

namespace topsim::executor {

using program::Op;
using program::OpKind;

void Executor::arrive(std::uint32_t r, std::uint32_t index) {
  const Op& op = ranks_[r].program->ops[index];
  ranks_[r].trace->edit(index).arrived = now();
  const std::uint32_t call = calls_.arrive(r, index, op);
  Call& arrived = calls_[call];
  if (arrived.last_rank == kNoOp || arrived.last < now() || arrived.last_rank < r) {
    arrived.last_rank = r;
    arrived.last_op = index;
    arrived.last = now();
  }
  if (op.kind == OpKind::collective) occupy(r, index, arrived.activity, +1);
  if (calls_.complete(call)) start_call(call);
}

void Executor::start_call(std::uint32_t index) {
  for (const std::uint32_t r : system_.groups[calls_[index].group].members) leave_lock_step(r);
  const bool loads = system_.activities[calls_[index].activity].bytes > Bytes(0);
  if (loads) disturb(calls_[index].group);
  Call& call = calls_[index];
  call.ready = now();
  call.paid.clear();
  call.traffic = 0;
  call.extended = false;
  calls_.for_members(index, [&](std::uint32_t r, std::uint32_t op) {
    call.paid.push_back(ranks_[r].compute.filled_at(now()));
    OpTrace& trace = ranks_[r].trace->edit(op);
    trace.ready = now();
    trace.cause_rank = call.last_rank;
    trace.cause_op = call.last_op;
    if (ranks_[r].program->ops[op].kind != OpKind::collective) occupy(r, op, call.activity, +1);
  });
  if (!loads) {
    const Op& last = ranks_[call.last_rank].program->ops[call.last_op];
    if (last.timed_elsewhere)
      done_.push_back(index);
    else
      engine_.after(carrier_.latency(call.activity), payload(EventKind::call_done, 0, index));
    return;
  }
  if (isolated_.isolated(call.group) && isolated_.undisturbed(call.group)) {
    const engine::Handle event =
        engine_.after(isolated_.duration(call.activity), payload(EventKind::call_done, 0, index));
    isolated_.begin(call.group, call.activity, now(), index, event);
    return;
  }
  stirred_.push_back(call.group);
  call.carried = carrier_.start(index, call.group, call.activity, now());
  if (!call.carried) done_.push_back(index);
}

// A call begins on links that isolated groups have had to themselves so far.
void Executor::disturb(std::uint32_t group) {
  isolated_.called(group);
  for (const std::uint32_t other : isolated_.disturbed_by(group)) {
    leave_lock_step(system_.groups[other].members.front());
    const auto met = isolated_.meet(other, now());
    if (!met) continue;
    engine_.cancel(met->event);
    carrier_.go_on(met->call, met->activity, met->bytes, now());
    calls_[met->call].carried = true;
  }
}

bool Executor::extend(std::uint32_t index) {
  Call& call = calls_[index];
  if (call.extended) return false;
  if (call.traffic == 0) call.traffic = calls_.memory_traffic(call.activity, now() - call.ready);
  Rest rest;
  auto paid = call.paid.begin();
  calls_.for_members(index, [&](std::uint32_t r, std::uint32_t op) {
    const RankState& rank = ranks_[r];
    rest = later(rest, rank.rest_of(rank.program->ops[op], system_.activities[call.activity], call.traffic,
                                    *paid++, now()));
  });
  if (rest.takes == Duration{}) return false;
  call.extended = rest.last;
  engine_.after(rest.takes, payload(EventKind::call_done, 0, index));
  return true;
}

void Executor::finish_call(std::uint32_t index) {
  for (const std::uint32_t r : system_.groups[calls_[index].group].members) leave_lock_step(r);
  const std::uint32_t group = calls_[index].group, activity = calls_[index].activity;
  if (extend(index)) return;
  if (system_.activities[activity].bytes > Bytes(0)) isolated_.ended(group);
  members_.clear();
  calls_.for_members(index, [&](std::uint32_t r, std::uint32_t op) { members_.emplace_back(r, op); });
  if (measuring(members_.front().first)) calls_.record(group, activity, now() - calls_[index].ready);
  const std::uint32_t bottleneck = calls_[index].carried ? carrier_.bottleneck(index) : kNoOp;
  calls_.close(index);
  for (const auto& [r, op] : members_) {
    occupy(r, op, activity, -1);
    ranks_[r].trace->edit(op).bottleneck = bottleneck;
    finish_op(r, op);
  }
  for (const auto& [r, op] : members_) start_ready(r);
  stirred_.push_back(group);
}
}  // namespace topsim::executor
