#include "sim/executor/critical_path.hpp"

#include <algorithm>

namespace topsim::executor {
namespace {

using program::OpKind;

LinkId limiting(const fold::System& system, const Calls& calls, std::uint32_t rank, std::uint32_t op) {
  const std::uint32_t link = calls.tightest_link(calls.activity_of(rank, op));
  return link == fold::System::kNone ? LinkId() : system.links[link].members.front();
}
}  // namespace

std::vector<PathLeg> critical_path(const std::vector<RankState>& ranks,
                                   const std::vector<std::vector<OpCharge>>& charges,
                                   const std::vector<std::uint32_t>& charge_of, const Calls& calls,
                                   const fold::System& system, std::uint32_t last_rank, SimTime begin) {
  std::vector<PathLeg> legs;
  std::uint32_t rank = last_rank, op = ranks[last_rank].last_op;
  SimTime until = (*ranks[rank].trace)[op].end;
  const auto leg = [&](SimTime from, Reason reason, LinkId link = {}) {
    from = std::max(from, begin);
    if (from >= until) return;
    legs.push_back({rank, op, until - from, reason, link});
    until = from;
  };
  while (until > begin) {
    const OpTrace& trace = (*ranks[rank].trace)[op];
    const OpKind kind = ranks[rank].program->ops[op].kind;
    if (kind == OpKind::compute || kind == OpKind::host_work) {
      leg(trace.begin, kind == OpKind::compute ? Reason::other : Reason::offload);
    } else {
      leg(trace.ready, charges[charge_of[rank]][op].running, limiting(system, calls, rank, op));
      if (trace.cause_rank != kNoOp &&
          (*ranks[trace.cause_rank].trace)[trace.cause_op].begin == trace.ready) {
        const std::uint32_t cause = trace.cause_op;
        rank = trace.cause_rank;
        op = cause;
      }
    }
    const OpTrace& arrived = (*ranks[rank].trace)[op];
    const std::uint32_t blocker = arrived.blocker;
    if (blocker == kHost) {
      leg(ranks[rank].host_free, Reason::host);
      const std::uint32_t sync = ranks[rank].table->sync_before[op];
      if (sync == kNoOp) break;
      op = sync;
    } else if (blocker == kNoOp) {
      break;
    } else {
      op = blocker;
    }
    if ((*ranks[rank].trace)[op].end > until) break;  // left over from another step
  }
  leg(begin, Reason::other);
  std::reverse(legs.begin(), legs.end());
  return legs;
}
}  // namespace topsim::executor
