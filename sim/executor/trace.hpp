// What each op of a rank class's current step waited for: enough to charge idle time and to walk the critical
// path back.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/executor/intervals.hpp"
#include "sim/executor/op_trace.hpp"
#include "sim/executor/outcome.hpp"
#include "sim/executor/streams.hpp"

namespace topsim::executor {

// One leg of a wait, latest first.
struct WaitLeg {
  Reason reason;
  SimTime begin, end;
};

// How communication ops of one rank program are charged; by op.
struct OpCharge {
  Reason running = Reason::other, waiting = Reason::other;
};

// What kept an op from beginning before it did: of all that it waits for what ended last; of several that
// ended together, what began last. An op begins as soon as it can: later than all of that, the host kept it.
[[nodiscard]] inline std::uint32_t find_blocker(const program::RankProgram& program, const StreamTable& table,
                                                const Trace& trace, std::uint32_t op, SimTime its_begin) {
  std::uint32_t last = kNoOp;
  SimTime begin{}, end{};  // of the last
  const auto consider = [&](std::uint32_t candidate) {
    const OpTrace its = trace[candidate];
    if (last != kNoOp && (its.end < end || (its.end == end && its.begin <= begin))) return;
    last = candidate;
    begin = its.begin;
    end = its.end;
  };
  const StreamTable::Place& place = table.places[op];
  if (place.position > 0) consider(table.ops[place.stream][place.position - 1]);
  for (const std::uint32_t d : program.dependencies_of(op)) consider(d);
  const bool issued = program.ops[op].launch.count() > 0 || place.sync_before != kNoOp;
  return issued && (last == kNoOp || its_begin > end) ? kHost : last;
}
// The same of an op whose trace may say so already: most are never asked.
[[nodiscard]] inline std::uint32_t blocker_of(const program::RankProgram& program, const StreamTable& table,
                                              const Trace& trace, std::uint32_t op) {
  const OpTrace its = trace[op];
  return its.blocker != kNotAsked ? its.blocker : find_blocker(program, table, trace, op, its.begin);
}

// Of a step that the rank class has done: in which a collective (from its own arrival, when its kernel takes
// its SMs) or a message (from when both ends are there) is under way, and in which of that it computes, too.
struct Together {
  Duration communication{}, hidden{};
};
// The last two are scratch.
[[nodiscard]] Together computed_and_communicated(const program::RankProgram& program,
                                                 const StreamTable& table, const Trace& trace,
                                                 Intervals& computing, Intervals& communicating);

// Splits [from, to), during which compute waited for `blocker` (of op `blocked`; kNoOp: of the step's end),
// into legs with one reason each: the communication's own time, the wait for its last member, its wait for
// units, which is its own time too, and before that whatever held it up in turn. The host is charged from
// when it resumed issuing, at the end of the op that it synchronised with before the waiting one; before,
// that op.
void explain_wait(const program::RankProgram& program, const StreamTable& table, const Trace& trace,
                  const std::vector<OpCharge>& charge, std::uint32_t blocked, std::uint32_t blocker,
                  SimTime from, SimTime to, std::vector<WaitLeg>& legs);
}  // namespace topsim::executor
