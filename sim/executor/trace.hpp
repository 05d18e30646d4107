// What each op of a rank class's current step waited for: enough to charge idle time and to walk the critical
// path back.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/executor/op_trace.hpp"
#include "sim/executor/outcome.hpp"
#include "sim/executor/streams.hpp"

namespace topsim::executor {

inline constexpr std::uint32_t kHost = 0xfffffffeU;  // as a blocker: the host had not issued the op yet

// One leg of a wait, latest first.
struct WaitLeg {
  Reason reason;
  SimTime begin, end;
};

// How communication ops of one rank program are charged; by op.
struct OpCharge {
  Reason running = Reason::other, waiting = Reason::other;
};

// Splits [from, to), during which compute waited for `blocker` (of op `blocked`; kNoOp: of the step's end),
// into legs with one reason each: the communication's own time, the wait for its last member, and before its
// arrival whatever held it up in turn. The host is charged from when it resumed issuing, at the end of the op
// that it synchronised with before the waiting one; before, that op.
void explain_wait(const program::RankProgram& program, const StreamTable& table, const Trace& trace,
                  const std::vector<OpCharge>& charge, std::uint32_t blocked, std::uint32_t blocker,
                  SimTime from, SimTime to, std::vector<WaitLeg>& legs);
}  // namespace topsim::executor
