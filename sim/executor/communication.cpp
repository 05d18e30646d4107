#include "sim/executor/communication.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <tuple>

#include "sim/base/error.hpp"
#include "sim/executor/reasons.hpp"

namespace topsim::executor {

using program::OpKind;
constexpr std::uint32_t kAnyActivity = fold::System::kNone;  // a receiver learns the size from its sender

Calls::Calls(const program::Program& program, const fold::System& system)
    : program_(program), system_(system), open_(system.groups.size()), tallies_(system.activities.size()) {
  for (const fold::Activity& a : system.activities) {
    constexpr double kUnlimited = std::numeric_limits<double>::infinity();
    const double cap = a.rate_cap > 0 ? a.rate_cap : kUnlimited;
    double rate = kUnlimited;
    std::uint32_t tightest = fold::System::kNone;
    for (const network::Usage& use : fold::Activity::view(a.usage)) {
      const double limit = system.links[use.link].capacity.value() / use.coefficient;
      if (limit < rate) {
        rate = limit;
        tightest = use.link;
      }
    }
    // Memory traffic must not depend on how many calls a class merges: the rate of one call alone.
    double own = cap;
    for (const network::Usage& use : fold::Activity::view(a.own_usage))
      own = std::min(own, system.links[use.link].capacity.value() / use.coefficient);
    const double alone = own == kUnlimited ? 0 : own;
    traffic_.push_back(std::llround(alone * a.memory_traffic));
    tightest_.push_back(tightest);
    capped_.push_back(cap <= rate);
  }
}

std::uint32_t Calls::group_of(std::uint32_t rank, const program::Op& op) const {
  switch (op.kind) {
    case OpKind::collective:
      return system_.group_of[op.slot][rank];
    case OpKind::send:
      return system_.out_edge[op.slot][rank];
    case OpKind::recv:
      return system_.in_edge[op.slot][rank];
    case OpKind::host_copy:
      return system_.host_group[op.slot][rank];
    case OpKind::compute:
    case OpKind::host_work:
      break;
  }
  throw InternalError("only communication belongs to a group");
}

std::uint32_t Calls::member_of(std::uint32_t group, std::uint32_t rank, const program::Op& op) const {
  if (op.kind == OpKind::send || op.kind == OpKind::host_copy) return 0;
  if (op.kind == OpKind::recv) return 1;
  const auto& members = system_.groups[group].members;
  return static_cast<std::uint32_t>(std::lower_bound(members.begin(), members.end(), rank) - members.begin());
}

std::uint32_t Calls::fresh(std::uint32_t group, std::uint32_t activity) {
  if (free_.empty()) {
    free_.push_back(static_cast<std::uint32_t>(calls_.size()));
    calls_.emplace_back();
  }
  const std::uint32_t c = free_.back();
  free_.pop_back();
  calls_[c].group = group;
  calls_[c].activity = activity;
  calls_[c].last_rank = calls_[c].last_op = kNoOp;
  calls_[c].carried = false;
  return c;
}

std::uint32_t Calls::joined(std::uint32_t group, std::uint32_t activity, std::uint32_t index, SimTime ready) {
  const auto& members = system_.groups[group].members;
  const std::uint32_t c = fresh(group, activity);
  Call& call = calls_[c];
  call.missing = 0;
  call.ops.assign(members.size(), index);
  call.paid.clear();
  call.traffic = 0;
  call.extended = false;
  call.ready = ready;
  call.last_rank = members.back();
  call.last_op = index;
  return c;
}

std::uint32_t Calls::arrive(std::uint32_t rank, std::uint32_t index, const program::Op& op) {
  const std::uint32_t group = group_of(rank, op);
  if (group == fold::System::kNone) throw InternalError("a rank calls a communicator it is not a member of");
  const fold::GroupClass& members = system_.groups[group];
  const std::uint32_t member = member_of(group, rank, op);
  const std::uint32_t activity =
      op.kind == OpKind::recv
          ? kAnyActivity
          : members.activities[system_.op_shape[system_.ranks[rank].program_class][index]];
  for (std::uint32_t c : open_[group]) {
    Call& call = calls_[c];
    const bool fits = call.activity == activity || call.activity == kAnyActivity || activity == kAnyActivity;
    if (!fits || call.ops[member] != kNoOp) continue;
    if (activity != kAnyActivity) call.activity = activity;
    call.ops[member] = index;
    if (--call.missing == 0) open_[group].erase(std::find(open_[group].begin(), open_[group].end(), c));
    return c;
  }
  const std::uint32_t c = fresh(group, activity);
  Call& call = calls_[c];
  call.missing = static_cast<std::uint32_t>(members.members.size()) - 1;
  call.ops.assign(members.members.size(), kNoOp);
  call.ops[member] = index;
  if (call.missing > 0) open_[group].push_back(c);
  return c;
}

void Calls::close(std::uint32_t call) {
  free_.push_back(call);
}

std::uint32_t Calls::activity_of(std::uint32_t rank, std::uint32_t index) const {
  const std::uint16_t cls = system_.ranks[rank].program_class;
  const program::Op& op = program_.classes[cls].ops[index];
  const std::uint32_t group = group_of(rank, op);
  if (group == fold::System::kNone) throw InternalError("a rank calls a communicator it is not a member of");
  const auto& activities = system_.groups[group].activities;
  return op.kind == OpKind::recv ? activities.front() : activities[system_.op_shape[cls][index]];
}

std::vector<OpCharge> Calls::charges(std::uint32_t rank) const {
  const Relation relation = relation_of(program_);
  std::vector<OpCharge> result;
  for (const program::Op& op : program_.classes[system_.ranks[rank].program_class].ops) {
    if (op.kind == OpKind::compute || op.kind == OpKind::host_work) {
      result.push_back({op.kind == OpKind::host_work ? beside_computing(op.phase) : Reason::other});
      continue;
    }
    const std::uint32_t g = group_of(rank, op);
    if (g == fold::System::kNone) throw InternalError("a rank calls a communicator it is not a member of");
    const fold::GroupClass& group = system_.groups[g];
    result.push_back({while_running(group.dimension, op.kind != OpKind::collective),
                      before_running(group.dimension, group.spans_programs, relation)});
  }
  return result;
}

std::vector<std::uint32_t> Calls::charge_key(std::uint32_t rank) const {
  std::vector<std::uint32_t> key{system_.ranks[rank].program_class};
  for (const auto* tables : {&system_.group_of, &system_.out_edge, &system_.in_edge, &system_.host_group}) {
    for (const auto& table : *tables) {
      const std::uint32_t g = table[rank];
      key.push_back(g == fold::System::kNone ? g
                                             : static_cast<std::uint32_t>(system_.groups[g].dimension) * 2 +
                                                   (system_.groups[g].spans_programs ? 1U : 0U));
    }
  }
  return key;
}

void Calls::record(std::uint32_t group, std::uint32_t activity, Duration total, std::uint64_t calls) {
  Tally& tally = tallies_[activity];
  tally.group = group;
  tally.calls += calls;
  tally.total += total;
}

std::vector<CollectiveRecord> Calls::records(const Carrier& carrier) const {
  // Classes of communicators that differ only in who shares their links become one row of the report.
  using Key = std::tuple<program::Dimension, program::CollectiveKind, std::int64_t, std::uint32_t,
                         collective::Algorithm, collective::Protocol, std::uint16_t>;
  __extension__ using Wide = __int128;  // 131,072 ranks: 64 bits of ps last a few hundred steps
  struct Row {
    CollectiveRecord record;
    Wide total = 0;
  };
  std::map<Key, Row> rows;
  for (std::size_t a = 0; a < tallies_.size(); ++a) {
    const Tally& tally = tallies_[a];
    if (tally.calls == 0) continue;
    const fold::Activity& activity = system_.activities[a];
    const fold::GroupClass& group = system_.groups[tally.group];
    const collective::Choice* became = carrier.choice(static_cast<std::uint32_t>(a));
    const collective::Choice& choice = became != nullptr ? *became : activity.choice;
    const Key key{group.dimension,  activity.kind,   activity.bytes.value(), group.size,
                  choice.algorithm, choice.protocol, choice.channels};
    auto& [row, total] = rows[key];
    row.dimension = group.dimension;
    row.kind = activity.kind;
    row.bytes = activity.bytes;
    row.group_size = group.size;
    row.calls += tally.calls * group.count;
    total += Wide{tally.total.count()} * group.count;
    row.bus_factor = activity.bus_factor;
    row.choice = choice;
    row.chosen = activity.choice.algorithm;
  }
  std::vector<CollectiveRecord> result;
  for (auto& [key, row] : rows) {
    const Wide calls = row.record.calls;
    row.record.each = Duration(static_cast<std::int64_t>((row.total + calls / 2) / calls));
    row.record.seconds = static_cast<double>(row.total) * 1e-12;
    result.push_back(row.record);
  }
  return result;
}
}  // namespace topsim::executor
