#include "sim/executor/critical_path.hpp"

#include <algorithm>

namespace topsim::executor {
namespace {

using program::Op;
using program::OpKind;

// What limited a communication: the bottleneck at its end; where that is unknown, or where it shares no link,
// its tightest link.
void add_limits(PathLeg& leg, std::uint32_t bottleneck, const fold::System& system, const Calls& calls) {
  const std::uint32_t activity = calls.activity_of(leg.rank_class, leg.op);
  leg.latency = std::min(leg.share, system.activities[activity].latency);
  if (bottleneck < system.links.size()) {
    leg.limiting_link = system.links[bottleneck].members.front();
    return;
  }
  const std::uint32_t link = calls.tightest_link(activity);
  if (link == fold::System::kNone) return;
  const bool capped = bottleneck != kNoOp || calls.is_capped(activity);
  (capped ? leg.paced_link : leg.limiting_link) = system.links[link].members.front();
}
}  // namespace

std::vector<PathLeg> critical_path(const std::vector<RankState>& ranks,
                                   const std::vector<std::vector<OpCharge>>& charges,
                                   const std::vector<std::uint32_t>& charge_of, const Calls& calls,
                                   const fold::System& system, std::uint32_t last_rank, SimTime begin,
                                   bool even_pace) {
  std::vector<PathLeg> legs;
  std::uint32_t rank = last_rank, op = ranks[last_rank].last_op;
  SimTime until = (*ranks[rank].trace)[op].end;
  const auto leg = [&](SimTime from, Reason reason, const OpTrace* communication = nullptr) {
    from = std::max(from, begin);
    if (from >= until) return;
    PathLeg next;
    next.rank_class = rank;
    next.op = op;
    next.share = until - from;
    next.reason = reason;
    const Op& what = ranks[rank].program->ops[op];
    const OpTrace its = (*ranks[rank].trace)[op];
    if (even_pace && what.kind == OpKind::compute && from >= its.begin) {  // not the idle time before it
      const Duration longer = its.end - its.begin - work_of(what, system.ranks[rank].slowdown);
      next.slowed = std::clamp(longer, Duration{}, next.share);
    }
    if (communication != nullptr) add_limits(next, communication->bottleneck, system, calls);
    legs.push_back(next);
    until = from;
  };
  while (until > begin) {
    const OpTrace& trace = (*ranks[rank].trace)[op];
    const OpKind kind = ranks[rank].program->ops[op].kind;
    if (kind == OpKind::compute || kind == OpKind::host_work) {
      leg(trace.begin, kind == OpKind::compute ? Reason::other : Reason::offload);
    } else {
      leg(trace.ready, charges[charge_of[rank]][op].running, &trace);
      if (trace.cause_rank != kNoOp &&
          (*ranks[trace.cause_rank].trace)[trace.cause_op].arrived == trace.ready) {
        const std::uint32_t cause = trace.cause_op;
        rank = trace.cause_rank;
        op = cause;
      }
      const OpTrace its = (*ranks[rank].trace)[op];
      const OpCharge& charge = charges[charge_of[rank]][op];
      leg(its.arrived, charge.waiting);
      if (its.arrived > its.begin) {
        const std::size_t before = legs.size();
        leg(its.begin, charge.running);
        if (legs.size() > before) legs.back().for_units = true;
      }
    }
    const std::uint32_t blocker = ranks[rank].blocker(op);
    if (blocker == kHost) {
      // The host resumed issuing when the op that it had synchronised with before this one ended.
      const std::uint32_t sync = ranks[rank].table->places[op].sync_before;
      leg(sync == kNoOp ? begin : (*ranks[rank].trace)[sync].end, Reason::host);
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
