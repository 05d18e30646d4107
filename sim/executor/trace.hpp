// What each op of a rank class's current step waited for: enough to charge idle time and to walk the critical
// path back.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/executor/outcome.hpp"
#include "sim/executor/streams.hpp"

namespace topsim::executor {

inline constexpr std::uint32_t kHost = 0xfffffffeU;  // as a blocker: the host had not issued the op yet

struct OpTrace {
  SimTime begin{};  // compute: starts; communication: arrives
  SimTime ready{};  // communication: the last member has arrived, bytes may move
  SimTime end{};
  std::uint32_t blocker = kNoOp;  // the op of this rank (or kHost) that kept it from beginning until `begin`
  std::uint32_t cause_rank = kNoOp;  // communication: rank class and op that arrived last
  std::uint32_t cause_op = kNoOp;
};

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
// arrival whatever held it up in turn. The host is charged from `host_free`, when it last resumed issuing;
// before, what it had to synchronise with.
void explain_wait(const program::RankProgram& program, const StreamTable& table,
                  const std::vector<OpTrace>& trace, const std::vector<OpCharge>& charge,
                  std::uint32_t blocked, std::uint32_t blocker, SimTime host_free, SimTime from, SimTime to,
                  std::vector<WaitLeg>& legs);
}  // namespace topsim::executor
