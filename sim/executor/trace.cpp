#include "sim/executor/trace.hpp"

#include <algorithm>
#include <utility>

#include "sim/executor/intervals.hpp"

namespace topsim::executor {
namespace {

void leg(std::vector<WaitLeg>& legs, Reason reason, SimTime from, SimTime begin, SimTime& to) {
  const SimTime at = std::max(from, begin);
  if (at < to) {
    legs.push_back({reason, at, to});
    to = at;
  }
}
}  // namespace

Together computed_and_communicated(const program::RankProgram& program, const StreamTable& table,
                                   const Trace& trace) {
  std::vector<Interval> computing, communicating;
  for (const std::vector<std::uint32_t>& stream : table.ops) {
    for (const std::uint32_t index : stream) {
      using program::OpKind;
      const OpKind kind = program.ops[index].kind;
      if (kind == OpKind::host_work || kind == OpKind::host_copy) continue;
      const OpTrace op = trace[index];
      const bool message = kind == OpKind::send || kind == OpKind::recv;
      std::vector<Interval>& its = kind == OpKind::compute ? computing : communicating;
      if (!its.empty() && its.back().end == op.begin && !message)
        its.back().end = op.end;  // most follow each other at once
      else
        its.push_back({message ? op.ready : op.begin, op.end});
    }
  }
  if (communicating.empty()) return {};
  communicating = united(std::move(communicating));
  return {length(communicating), common(communicating, united(std::move(computing)))};
}

void explain_wait(const program::RankProgram& program, const StreamTable& table, const Trace& trace,
                  const std::vector<OpCharge>& charge, std::uint32_t blocked, std::uint32_t blocker,
                  SimTime from, SimTime to, std::vector<WaitLeg>& legs) {
  while (from < to) {
    if (blocker == kHost) {
      const std::uint32_t synchronised = blocked == kNoOp ? kNoOp : table.places[blocked].sync_before;
      if (synchronised == kNoOp) return leg(legs, Reason::host, from, from, to);
      leg(legs, Reason::host, from, trace[synchronised].end, to);
      blocker = synchronised;
      continue;
    }
    if (blocker == kNoOp) return leg(legs, Reason::other, from, from, to);
    const OpTrace op = trace[blocker];
    const program::Op& what = program.ops[blocker];
    if (what.kind == program::OpKind::compute) {
      leg(legs, Reason::other, from, op.begin, to);  // the computation of another stream
    } else if (what.kind == program::OpKind::host_work) {
      leg(legs, charge[blocker].running, from, op.begin, to);
    } else {
      leg(legs, charge[blocker].running, from, op.ready, to);
      leg(legs, charge[blocker].waiting, from, op.begin, to);
    }
    to = std::min(to, op.begin);
    blocked = blocker;
    blocker = op.blocker != kNotAsked ? op.blocker : find_blocker(program, table, trace, blocker, op.begin);
  }
}
}  // namespace topsim::executor
