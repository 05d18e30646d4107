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

void explain_wait(const program::RankProgram& program, const std::vector<OpTrace>& trace,
                  const std::vector<OpCharge>& charge, std::uint32_t blocker, SimTime host_free, SimTime from,
                  SimTime to, std::vector<WaitLeg>& legs) {
  while (from < to) {
    if (blocker == kHost) {
      // Since the host was last held up by a synchronisation (host_free) the time is its own.
      leg(legs, Reason::host, from, host_free, to);
      leg(legs, Reason::other, from, from, to);
      return;
    }
    if (blocker == kNoOp) return leg(legs, Reason::other, from, from, to);
    const OpTrace& op = trace[blocker];
    const program::Op& what = program.ops[blocker];
    if (what.kind == program::OpKind::compute) {
      leg(legs, Reason::other, from, op.begin, to);  // work of another stream, or of the wait's own past
    } else if (what.kind == program::OpKind::host_work) {
      leg(legs, Reason::offload, from, op.begin, to);
    } else {
      leg(legs, charge[blocker].running, from, op.ready, to);
      leg(legs, charge[blocker].waiting, from, op.begin, to);
    }
    to = std::min(to, op.begin);
    blocker = op.blocker;
  }
}
}  // namespace topsim::executor
