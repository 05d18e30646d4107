#include "sim/report/timeline.hpp"

#include <algorithm>
#include <deque>
#include <map>
#include <tuple>

#include "topology/link_name.hpp"

namespace topsim::report {
namespace {
using executor::Outcome;
using executor::TimelineEvent;
using program::Op;
using program::OpKind;
using program::Program;

const Op& op_of(const TimelineEvent& event, const Outcome& outcome, const Program& program) {
  return program.classes[outcome.ranks[event.rank_class].program_class].ops[event.op];
}

std::vector<Lane> make_lanes(const topology::Topology& topology, const Program& program,
                             const Outcome& outcome) {
  std::vector<Lane> lanes;
  for (const executor::RankClass& each : outcome.ranks) {
    Lane lane;
    lane.rank = each.members.front().value;
    lane.count = static_cast<std::uint32_t>(each.members.size());
    const DeviceId device = topology.accelerators()[lane.rank];
    lane.node = topology.device(device).node;
    lane.device = topology.name(device);
    lane.program = program.classes[each.program_class].name;
    lane.streams = program.classes[each.program_class].streams;
    lanes.push_back(std::move(lane));
  }
  return lanes;
}

std::vector<Slice> make_slices(const Program& program, const Outcome& outcome) {
  std::vector<Slice> slices;
  slices.reserve(outcome.timeline.size());
  for (const TimelineEvent& event : outcome.timeline) {
    const Op& op = op_of(event, outcome, program);
    Slice slice;
    slice.lane = event.rank_class;
    slice.name = op.label;
    slice.stream = event.stream;
    slice.step = event.step;
    slice.phase = name_of(op.phase);
    slice.begin = event.begin;
    slice.end = event.end;
    slice.receives = op.kind == OpKind::recv;
    slice.computes = op.kind == OpKind::compute;
    // A receive's `ready` is the begin of its send, which may precede the receive.
    slice.ready = std::clamp(event.ready, event.begin, event.end);
    slice.waits = slice.ready > slice.begin;
    slices.push_back(slice);
  }
  return slices;
}

// A send and its receive share a flow. The receive's `ready` is the begin of its send, so (receiving class,
// its slot, that time) identifies the pair; several pairs with the same key are matched in order.
void pair_messages(const Program& program, const Outcome& outcome, std::vector<Slice>& slices) {
  std::vector<std::uint32_t> class_of(program.ranks, 0);
  for (std::size_t i = 0; i < outcome.ranks.size(); ++i) {
    for (RankId member : outcome.ranks[i].members) class_of[member.index()] = static_cast<std::uint32_t>(i);
  }
  using Key = std::tuple<std::uint32_t, std::uint16_t, SimTime>;
  std::map<Key, std::deque<std::size_t>> receives;
  for (std::size_t i = 0; i < slices.size(); ++i) {
    const TimelineEvent& event = outcome.timeline[i];
    const Op& op = op_of(event, outcome, program);
    if (op.kind == OpKind::recv) receives[{event.rank_class, op.slot, event.ready}].push_back(i);
  }
  std::uint64_t flow = 0;
  for (std::size_t i = 0; i < slices.size(); ++i) {
    const TimelineEvent& event = outcome.timeline[i];
    const Op& op = op_of(event, outcome, program);
    if (op.kind != OpKind::send || op.slot >= program.peer_counterpart.size()) continue;
    const RankId peer = program.peer_slots[op.slot][outcome.ranks[event.rank_class].members.front().index()];
    if (!peer.valid()) continue;
    const auto found =
        receives.find({class_of[peer.index()], program.peer_counterpart[op.slot], event.begin});
    if (found == receives.end() || found->second.empty()) continue;
    slices[i].flow = slices[found->second.front()].flow = ++flow;
    found->second.pop_front();
  }
}
}  // namespace

std::string_view name_of(program::Phase phase) {
  constexpr std::string_view names[] = {"forward",        "backward",  "weight_gradient",
                                        "recompute",      "optimizer", "gradient_sync",
                                        "parameter_sync", "transfer",  "other"};
  return names[static_cast<std::size_t>(phase)];
}

Timeline make_timeline(const topology::Topology& topology, const Program& program, const Outcome& outcome) {
  Timeline timeline;
  timeline.lanes = make_lanes(topology, program, outcome);
  timeline.names = program.labels;
  timeline.slices = make_slices(program, outcome);
  pair_messages(program, outcome, timeline.slices);
  std::stable_sort(timeline.slices.begin(), timeline.slices.end(), [](const Slice& a, const Slice& b) {
    return std::tie(a.lane, a.stream, a.begin, a.end) < std::tie(b.lane, b.stream, b.begin, b.end);
  });
  for (const executor::IdleInterval& each : outcome.idle) {
    timeline.idle.push_back({each.rank_class, each.reason, each.begin, each.end});
  }
  for (const executor::LinkClass& each : outcome.links) {
    const topology::Link& link = topology.link(each.members.front());
    timeline.links.push_back({topology.name(each.members.front()), std::string(name_of(link.kind)),
                              name_with_speed(topology, link),
                              static_cast<std::uint32_t>(each.members.size()), link.capacity.value()});
  }
  for (const executor::LinkSample& each : outcome.link_samples) {
    timeline.samples.push_back(
        {each.link_class, each.time, each.rate / timeline.links[each.link_class].capacity});
  }
  std::stable_sort(timeline.samples.begin(), timeline.samples.end(),
                   [](const CounterSample& a, const CounterSample& b) {
                     return std::tie(a.link, a.time) < std::tie(b.link, b.time);
                   });
  return timeline;
}
}  // namespace topsim::report
