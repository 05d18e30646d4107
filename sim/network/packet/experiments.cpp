#include "sim/network/packet/experiments.hpp"

#include <algorithm>
#include <random>

namespace topsim::network::packet {
namespace {
void finish(Outcome& outcome, const Fabric& fabric, const Engine& engine) {
  double sum = 0, squares = 0;
  for (const FlowOutcome& flow : outcome.flows) {
    outcome.last = std::max(outcome.last, flow.acknowledged);
    outcome.last_delivered = std::max(outcome.last_delivered, flow.delivered);
    sum += flow.goodput;
    squares += flow.goodput * flow.goodput;
  }
  if (squares > 0) outcome.fairness = sum * sum / (static_cast<double>(outcome.flows.size()) * squares);
  std::vector<char> is_switch(fabric.graph.devices, 0);
  for (const DeviceIndex device : fabric.switches) is_switch[device] = 1;
  for (PortIndex p = 0; p < fabric.graph.ports.size(); ++p) {
    outcome.paused += engine.paused(p);
    if (is_switch[fabric.graph.ports[p].from] == 0) continue;
    outcome.most_waiting = std::max(outcome.most_waiting, engine.most_waiting(p));
  }
  outcome.counters = engine.counters();
  outcome.deadlocks = engine.deadlocks();
  outcome.memory = engine.bytes();
}
}  // namespace

Outcome run_flows(const Fabric& fabric, const std::vector<Flow>& flows, const PacketSpec& spec,
                  Duration window) {
  Engine engine(fabric.graph, spec);
  Outcome outcome;
  outcome.flows.resize(flows.size());
  std::vector<PairIndex> pairs;
  for (std::size_t i = 0; i < flows.size(); ++i) {
    const Flow& flow = flows[i];
    pairs.push_back(
        engine.connect({fabric.hosts[flow.from], fabric.hosts[flow.to], i, flow.lane, {}, {}, {}}));
    engine.send(pairs.back(), flow.bytes, flow.start, i);
  }
  if (window > Duration{}) {
    engine.run_until(SimTime(window));
    for (std::size_t i = 0; i < flows.size(); ++i) {
      outcome.flows[i].goodput = static_cast<double>(engine.received(pairs[i]).value()) / seconds(window);
    }
  } else {
    engine.run();
  }
  for (const Completion& done : engine.delivered()) {
    FlowOutcome& flow = outcome.flows[done.tag];
    flow.delivered = done.time - flows[done.tag].start;
    if (window == Duration{}) {
      flow.goodput = static_cast<double>(flows[done.tag].bytes.value()) / seconds(flow.delivered);
    }
  }
  for (const Completion& done : engine.acknowledged()) {
    outcome.flows[done.tag].acknowledged = done.time - flows[done.tag].start;
  }
  finish(outcome, fabric, engine);
  return outcome;
}

Outcome incast(std::uint32_t senders, Bytes each, const LinkFigures& link, const PacketSpec& spec) {
  std::vector<Flow> flows;
  for (std::uint32_t i = 0; i < senders; ++i) flows.push_back({i, senders, each});
  return run_flows(star(senders + 1, link), flows, spec);
}

std::vector<Flow> permutation(const Fabric& fabric, Bytes each, std::uint64_t seed) {
  std::vector<std::size_t> order(fabric.hosts.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::mt19937_64 random(seed);
  // Sattolo's algorithm: one cycle through all, so nobody sends to itself.
  for (std::size_t i = order.size() - 1; i > 0; --i) std::swap(order[i], order[random() % i]);
  std::vector<Flow> flows;
  for (std::size_t i = 0; i < order.size(); ++i) flows.push_back({i, order[i], each});
  return flows;
}

std::vector<Flow> all_to_all(const Fabric& fabric, Bytes each) {
  std::vector<Flow> flows;
  const std::size_t n = fabric.hosts.size();
  for (std::size_t shift = 1; shift < n; ++shift) {
    for (std::size_t i = 0; i < n; ++i) flows.push_back({i, (i + shift) % n, each});
  }
  return flows;
}

Outcome parking_lot(const LinkFigures& link, const PacketSpec& spec, Duration window) {
  const Bytes each(static_cast<std::int64_t>(2 * link.rate.value() * seconds(window)));
  const Fabric fabric = dumbbell(3, 2, link);
  return run_flows(fabric, {{0, 4, each}, {1, 4, each}, {2, 4, each}, {3, 4, each}}, spec, window);
}

Outcome victim_flow(const LinkFigures& link, const PacketSpec& spec, Duration window, int victim_lane) {
  const Bytes each(static_cast<std::int64_t>(2 * link.rate.value() * seconds(window)));
  const Fabric fabric = dumbbell(3, 6, link);  // senders 0-2 left; 3-6 local senders, 7 congested, 8 idle
  std::vector<Flow> flows{{0, 7, each}, {1, 7, each}};
  for (std::size_t local = 3; local < 7; ++local) flows.push_back({local, 7, each});
  flows.push_back({2, 8, each, victim_lane});
  return run_flows(fabric, flows, spec, window);
}

Outcome ring_all_reduce(const Fabric& fabric, const std::vector<std::vector<std::size_t>>& rings, Bytes bytes,
                        const PacketSpec& spec) {
  Engine engine(fabric.graph, spec);
  Outcome outcome;
  struct Member {
    PairIndex pair;
    std::size_t ring, next;
    int steps_left;
  };
  std::vector<Member> members;
  std::vector<std::size_t> begin;
  for (std::size_t r = 0; r < rings.size(); ++r) {
    begin.push_back(members.size());
    const std::size_t n = rings[r].size();
    for (std::size_t i = 0; i < n; ++i) {
      const Connection connection{
          fabric.hosts[rings[r][i]], fabric.hosts[rings[r][(i + 1) % n]], r, 0, {}, {}, {}};
      members.push_back(
          {engine.connect(connection), r, begin.back() + (i + 1) % n, 2 * static_cast<int>(n - 1)});
    }
  }
  const auto start_step = [&](std::size_t member, SimTime now) {
    Member& m = members[member];
    if (m.steps_left-- <= 0) return;
    const auto n = static_cast<std::int64_t>(rings[m.ring].size());
    engine.send(m.pair, Bytes((bytes.value() + n - 1) / n), now, member);
  };
  for (std::size_t m = 0; m < members.size(); ++m) start_step(m, SimTime{});
  outcome.flows.resize(members.size());
  for (SimTime next = engine.next_event(); next != kNever; next = engine.next_event()) {
    engine.run_until(next);
    // What arrived at a member lets it send the same chunk on.
    for (const Completion& done : engine.delivered()) {
      outcome.flows[done.tag].delivered = outcome.flows[done.tag].acknowledged = done.time.time_since_epoch();
      start_step(members[done.tag].next, done.time);
    }
    engine.delivered().clear();
    engine.acknowledged().clear();
  }
  for (FlowOutcome& flow : outcome.flows)
    flow.goodput = static_cast<double>(bytes.value()) / seconds(flow.delivered);
  finish(outcome, fabric, engine);
  return outcome;
}
}  // namespace topsim::network::packet
