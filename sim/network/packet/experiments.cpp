#include "sim/network/packet/experiments.hpp"

#include <algorithm>

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

Outcome parking_lot(const LinkFigures& link, const PacketSpec& spec, Duration window) {
  const Bytes each(static_cast<std::int64_t>(2 * link.rate.value() * seconds(window)));
  const Fabric fabric = dumbbell(3, 2, link);
  return run_flows(fabric, {{0, 4, each}, {1, 4, each}, {2, 4, each}, {3, 4, each}}, spec, window);
}

Outcome victim_flow(const LinkFigures& link, const PacketSpec& spec, Duration window, int victim_lane) {
  const Bytes each(static_cast<std::int64_t>(2 * link.rate.value() * seconds(window)));
  const Fabric fabric = dumbbell(3, 6, link);  // left: 0-2 senders; right: 3-6 senders, 7 congested, 8 idle
  std::vector<Flow> flows{{0, 7, each}, {1, 7, each}};
  for (std::size_t local = 3; local < 7; ++local) flows.push_back({local, 7, each});
  flows.push_back({2, 8, each, victim_lane});
  return run_flows(fabric, flows, spec, window);
}
}  // namespace topsim::network::packet
