#include "sim/executor/trace.hpp"

#include <algorithm>

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
                                   const Trace& trace, Intervals& computing, Intervals& communicating) {
  using program::OpKind;
  computing.clear(), communicating.clear();
  for (std::uint16_t stream = 0; stream < table.ops.size(); ++stream) {
    const auto computed = static_cast<std::ptrdiff_t>(computing.size());
    const auto communicated = static_cast<std::ptrdiff_t>(communicating.size());
    trace.for_each(stream, [&](std::uint32_t position, SimTime arrived, SimTime ready, SimTime end) {
      const OpKind kind = program.ops[table.ops[stream][position]].kind;
      if (kind == OpKind::host_work || kind == OpKind::host_copy) return;
      Intervals& its = kind == OpKind::compute ? computing : communicating;
      const SimTime begin = kind == OpKind::send || kind == OpKind::recv ? ready : arrived;
      if (!its.empty() && its.back().end == begin)
        its.back().end = end;  // most follow each other at once
      else
        its.push_back({begin, end});
    });
    std::inplace_merge(computing.begin(), computing.begin() + computed, computing.end());
    std::inplace_merge(communicating.begin(), communicating.begin() + communicated, communicating.end());
  }
  unite(computing), unite(communicating);
  return {length(communicating), common(communicating, computing)};
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
      leg(legs, charge[blocker].waiting, from, op.arrived, to);
      leg(legs, charge[blocker].running, from, op.begin, to);  // for units
    }
    to = std::min(to, op.begin);
    blocked = blocker;
    blocker = op.blocker != kNotAsked ? op.blocker : find_blocker(program, table, trace, blocker, op.begin);
  }
}
}  // namespace topsim::executor
