#include "sim/scenario/bench/traffic.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <random>
#include <set>

#include "sim/base/error.hpp"
#include "sim/executor/executor.hpp"
#include "sim/network/packet/experiments.hpp"
#include "sim/scenario/bench/testbed.hpp"
#include "sim/scenario/findings/cable_findings.hpp"
#include "sim/scenario/findings/packet_findings.hpp"
#include "sim/scenario/run/network_findings.hpp"
#include "topology/build.hpp"

namespace topsim::scenario {
namespace {
namespace packet = network::packet;
using namespace topsim::literals;
using topology::DeviceKind;
using topology::Topology;

struct Pair {
  DeviceId from, to;
};

// Which of the separate fabrics each NIC is on: dies of one accelerator may have switches of their own (Gaudi
// 2). If ports are not NICs, all are on the same.
std::vector<std::uint32_t> fabrics_of(const Topology& topology) {
  const auto joins = [&](DeviceId id) {
    return topology.device(id).kind == DeviceKind::nic ||
           topology.device(id).kind == DeviceKind::fabric_switch;
  };
  std::vector<std::uint32_t> part(topology.devices().size());
  for (std::size_t i = 0; i < part.size(); ++i) part[i] = static_cast<std::uint32_t>(i);
  const auto root = [&](std::size_t i) {
    while (part[i] != i) i = part[i] = part[part[i]];
    return static_cast<std::uint32_t>(i);
  };
  for (const topology::Link& link : topology.links()) {
    if (joins(link.from) && joins(link.to)) part[root(link.from.index())] = root(link.to.index());
  }
  for (std::size_t i = 0; i < part.size(); ++i) part[i] = joins(DeviceId(i)) ? root(i) : 0;
  return part;
}

std::vector<Pair> incast_pairs(const Ends& ends, const std::vector<std::uint32_t>& fabric, int senders) {
  std::vector<DeviceId> from;
  const DeviceId to = ends.of_node.front().front();
  std::size_t widest = 0;
  for (const auto& node : ends.of_node) widest = std::max(widest, node.size());
  // Senders of an incast take one port of every node before a second port of any node.
  for (std::size_t k = 0; k < (ends.rails ? 1 : widest); ++k) {
    for (std::size_t n = ends.of_node.size() > 1 ? 1 : 0; n < ends.of_node.size(); ++n) {
      if (k < ends.of_node[n].size() && ends.of_node[n][k] != to &&
          fabric[ends.of_node[n][k].index()] == fabric[to.index()])
        from.push_back(ends.of_node[n][k]);
    }
  }
  if (senders > 0 && static_cast<std::size_t>(senders) > from.size()) {
    throw ConfigError(
        fmt::format("{} senders do not fit: {} ports can send to one here", senders, from.size()),
        "--set topology.nodes=N for more nodes, or --textbook for a switch with as many ports "
        "as it takes");
  }
  if (senders > 0) from.resize(static_cast<std::size_t>(senders));
  std::vector<Pair> pairs;
  for (const DeviceId sender : from) pairs.push_back({sender, to});
  return pairs;
}

// Groups of ports within which a permutation or an all-to-all runs: each rail separately, or all ports of a
// fabric.
std::vector<std::vector<DeviceId>> circles(const Ends& ends, const std::vector<std::uint32_t>& fabric) {
  std::map<std::pair<std::size_t, std::uint32_t>, std::vector<DeviceId>> all;
  for (const auto& node : ends.of_node) {
    for (std::size_t k = 0; k < node.size(); ++k)
      all[{ends.rails ? k : 0, ends.rails ? 0 : fabric[node[k].index()]}].push_back(node[k]);
  }
  std::vector<std::vector<DeviceId>> list;
  for (auto& [key, circle] : all) list.push_back(std::move(circle));
  return list;
}

std::vector<Pair> pairs_of(const Ends& ends, const std::vector<std::uint32_t>& fabric, TrafficPattern pattern,
                           const TrafficOptions& options, std::uint64_t seed) {
  if (pattern == TrafficPattern::incast) return incast_pairs(ends, fabric, options.senders);
  std::vector<Pair> pairs;
  std::mt19937_64 random(seed);
  for (const auto& circle : circles(ends, fabric)) {
    const std::size_t n = circle.size();
    if (n < 2) continue;
    if (pattern == TrafficPattern::permutation) {
      // Sattolo's algorithm: one cycle through all, so no port sends to itself.
      std::vector<std::size_t> order(n);
      for (std::size_t i = 0; i < n; ++i) order[i] = i;
      for (std::size_t i = n; i-- > 1;) std::swap(order[i], order[random() % i]);
      for (std::size_t i = 0; i < n; ++i) pairs.push_back({circle[i], circle[order[i]]});
      continue;
    }
    for (std::size_t shift = 1; shift < n; ++shift) {
      for (std::size_t i = 0; i < n; ++i) pairs.push_back({circle[i], circle[(i + shift) % n]});
    }
  }
  return pairs;
}

double jain(const std::vector<TrafficFlow>& flows) {
  double sum = 0, squares = 0;
  for (const TrafficFlow& flow : flows) sum += flow.goodput, squares += flow.goodput * flow.goodput;
  return squares > 0 ? sum * sum / (static_cast<double>(flows.size()) * squares) : 1;
}

TrafficQueues queues_of(const packet::Counters& counters, Bytes longest, Duration paused) {
  return {longest,        paused,          counters.pauses, counters.marks, counters.notifications,
          counters.drops, counters.repeats};
}

std::string where_it_ran(const Topology& topology, std::size_t flows) {
  return fmt::format("{} flows over the {} fabric of the scenario, {} nodes", flows,
                     name_of(topology.fabric_kind), topology.nodes());
}

// Names the PCIe slots that limit what NICs send and receive; empty: none does.
std::string slots_in_the_way(const Testbed& testbed, const std::vector<Pair>& pairs) {
  std::set<DeviceId> nics;
  std::set<std::string> slots;
  for (const Pair& pair : pairs) {
    for (const DeviceId end : {pair.from, pair.to}) {
      const auto slot = testbed.tight_slot(end, end == pair.from);
      if (!slot) continue;
      nics.insert(end);
      slots.insert(fmt::format("{}, {:.4g} GB/s", testbed.topology().type_of(slot->link).label,
                               slot->capacity * 1e-9));
    }
  }
  if (nics.empty()) return {};
  return fmt::format(
      "messages go from memory to memory: {} of the NICs are in slots slower than their cables ({})",
      nics.size(), fmt::join(slots, "; "));
}

// Ports that faults take from the fabric send and receive nothing. Says whose flows are left out; empty:
// none.
std::string leave_out_cut_off(const Testbed& testbed, std::vector<Pair>& pairs) {
  std::vector<DeviceId> cut;
  const auto is_cut = [&](DeviceId port) {
    if (!testbed.cut_off(port)) return false;
    if (std::find(cut.begin(), cut.end(), port) == cut.end()) cut.push_back(port);
    return true;
  };
  const std::size_t all = pairs.size();
  std::erase_if(pairs, [&](const Pair& pair) { return is_cut(pair.to) || is_cut(pair.from); });
  if (cut.empty()) return {};
  const std::string ports = cut.size() == 1
                                ? fmt::format("a fault cuts {} off", testbed.topology().name(cut.front()))
                                : fmt::format("faults cut {} and {} more off",
                                              testbed.topology().name(cut.front()), cut.size() - 1);
  if (!pairs.empty()) return fmt::format("{} of {} flows are left out: {}", all - pairs.size(), all, ports);
  Problem problem;
  problem.path = "faults";
  problem.message = "nobody can send: " + ports;
  problem.help =
      "leave the fault out, or let it take ports that the pattern does not use (here all flows do)";
  throw ConfigError({problem});
}

Traffic on_scenario(const Scenario& scenario, const topology::Catalogue& catalogue, TrafficPattern pattern,
                    const TrafficOptions& options, const std::atomic<bool>* stop) {
  Testbed testbed(scenario, catalogue, stop);
  const Topology& topology = testbed.topology();
  const Ends ends = ends_of(topology);
  std::vector<Pair> pairs = pairs_of(ends, fabrics_of(topology), pattern, options, scenario.run.seed);
  if (pairs.empty()) {
    throw ConfigError("nobody can send: the topology has a single port",
                      "--set topology.nodes=N for more nodes, or --textbook for an incast around one switch");
  }
  const std::string left_out = leave_out_cut_off(testbed, pairs);
  const Bytes bytes = options.sizes.front();
  testbed.renew_with_contention();
  Traffic traffic;
  traffic.where = where_it_ran(topology, pairs.size());
  for (const Pair& pair : pairs) {
    testbed.send(pair.from, pair.to, bytes, traffic.flows.size());
    TrafficFlow flow;
    flow.from = topology.name(pair.from), flow.to = topology.name(pair.to), flow.bytes = bytes;
    traffic.flows.push_back(std::move(flow));
  }
  testbed.run([&](std::uint64_t tag, Duration time) {
    TrafficFlow& flow = traffic.flows[tag];
    flow.delivered = time;
    flow.goodput = static_cast<double>(bytes.value()) / seconds(time);
    traffic.last = std::max(traffic.last, time);
  });
  traffic.complete = !testbed.stopped();
  traffic.fairness = jain(traffic.flows);
  for (const report::Finding& finding : packet_findings(scenario, topology))
    traffic.findings.push_back(finding.message);
  for (const report::Finding& finding : cable_findings(scenario, topology, catalogue))
    traffic.findings.push_back(finding.message);
  if (!left_out.empty()) traffic.findings.push_back(left_out);
  if (testbed.least_efficiency() < 1)
    traffic.findings.push_back(
        fmt::format("ports where flows meet carry as little as {:.1f} % of their capacity, as packets do "
                    "(topsim calibrate); network.contention=ideal leaves it out",
                    100 * testbed.least_efficiency()));
  if (const auto crowd = testbed.longest_crowd(traffic.last)) {
    if (std::string text = crowd_text(*crowd, traffic.last, topology); !text.empty())
      traffic.findings.push_back(text + "; --network packet shows it");
  }
  if (std::string slots = slots_in_the_way(testbed, pairs); !slots.empty())
    traffic.findings.push_back(std::move(slots));
  if (testbed.packets() == nullptr) return traffic;
  const packet::Episodes& engine = testbed.packets()->messages();
  Bytes longest{};
  Duration paused{};
  for (packet::PortIndex p = 0; p < topology.links().size(); ++p) {
    const topology::Link& link = topology.link(LinkId(p));
    if (topology.device(link.from).kind == DeviceKind::fabric_switch)
      longest = std::max(longest, engine.most_waiting(p));
    paused += engine.paused(p);
  }
  traffic.queues = queues_of(engine.counters(), longest, paused);
  for (std::string& finding : testbed.packets()->findings()) traffic.findings.push_back(std::move(finding));
  return traffic;
}

// One cable of the scenario's fabric: the first link from a NIC to a switch.
packet::LinkFigures cable_of(const Topology& topology, const packet::PacketSpec& spec) {
  for (const topology::Link& link : topology.links()) {
    if (topology.device(link.from).kind != DeviceKind::nic ||
        topology.device(link.to).kind != DeviceKind::fabric_switch)
      continue;
    const bool credits = link.kind == topology::LinkKind::infiniband;
    const packet::Framing framing =
        spec.framing.value_or(credits ? packet::Framing::infiniband() : packet::Framing::roce());
    return {packet::wire_rate(link, framing), link.latency,
            credits ? packet::FlowControl::credit : packet::FlowControl::pfc, topology.fabric_is_infiniband};
  }
  throw ConfigError("the scenario has no fabric whose cables could be used",
                    "give topology.fabric a kind and a link, and more than one node");
}

Traffic textbook_traffic(const Scenario& scenario, const topology::Catalogue& catalogue,
                         TrafficPattern pattern, const TrafficOptions& options) {
  const Topology topology = topology::build(scenario.topology, catalogue, {});
  const packet::PacketSpec spec = packet_spec(scenario, topology.fabric_is_infiniband);
  packet::LinkFigures cable = cable_of(topology, spec);
  if (spec.flow_control) cable.flow_control = *spec.flow_control;
  if (cable.flow_control == packet::FlowControl::pfc && !spec.pfc.enabled)
    cable.flow_control = packet::FlowControl::none;
  const Duration window = options.window > Duration{} ? options.window : 10_ms;
  const auto senders = static_cast<std::uint32_t>(options.senders > 0 ? options.senders : 8);
  packet::Outcome outcome;
  std::vector<std::pair<std::string, std::string>> names;
  std::string shape;
  if (pattern == TrafficPattern::incast) {
    outcome = packet::incast(senders, options.sizes.front(), cable, spec);
    for (std::uint32_t i = 0; i < senders; ++i) names.emplace_back(fmt::format("sender{}", i), "receiver");
    shape = fmt::format("{} senders around one switch", senders);
  } else if (pattern == TrafficPattern::parking_lot) {
    outcome = packet::parking_lot(cable, spec, window);
    for (int i = 0; i < 3; ++i) names.emplace_back(fmt::format("remote{}", i), "receiver");
    names.emplace_back("local", "receiver");
    shape = fmt::format("two switches and one trunk, three senders behind it and a local one, {} ms",
                        seconds(window) * 1e3);
  } else {
    if (options.victim_lane >= spec.lanes.count && options.victim_lane > 0)
      throw ConfigError(
          fmt::format("no virtual lane {}: the scenario has {}", options.victim_lane, spec.lanes.count),
          fmt::format("--set network.packet.virtual_lanes={}", options.victim_lane + 1));
    outcome = packet::victim_flow(cable, spec, window, options.victim_lane);
    for (int i = 0; i < 2; ++i) names.emplace_back(fmt::format("remote{}", i), "receiver");
    for (int i = 0; i < 4; ++i) names.emplace_back(fmt::format("local{}", i), "receiver");
    names.emplace_back("victim", "idle host");
    shape = fmt::format("two switches and one trunk, six flows to one receiver and the victim, {} ms",
                        seconds(window) * 1e3);
  }
  const bool to_the_end = pattern == TrafficPattern::incast;
  const auto missing = std::count_if(outcome.flows.begin(), outcome.flows.end(),
                                     [](const auto& flow) { return flow.delivered == Duration{}; });
  if (to_the_end && missing > 0) {
    throw executor::Blocked(
        fmt::format("the traffic cannot finish: {} of {} messages never arrive", missing, senders),
        outcome.deadlocks.empty() ? "" : "deadlock: ports wait for one another");
  }
  Traffic traffic;
  if (!to_the_end) traffic.window = window;
  traffic.where = fmt::format("{}; cables {:g} Gbit/s, {:g} us", shape, cable.rate.value() * 8e-9,
                              microseconds(cable.latency));
  for (std::size_t i = 0; i < outcome.flows.size(); ++i) {
    const packet::FlowOutcome& from = outcome.flows[i];
    TrafficFlow flow;
    flow.from = names[i].first, flow.to = names[i].second;
    flow.delivered = from.delivered;
    flow.goodput = from.goodput;
    if (pattern == TrafficPattern::incast) {
      flow.bytes = options.sizes.front();
      flow.acknowledged = from.acknowledged;
    } else {
      flow.bytes = Bytes(static_cast<std::int64_t>(from.goodput * seconds(window)));
    }
    traffic.flows.push_back(std::move(flow));
  }
  traffic.last = outcome.last_delivered;
  traffic.fairness = outcome.fairness;
  traffic.queues = queues_of(outcome.counters, outcome.most_waiting, outcome.paused);
  for (const report::Finding& finding : packet_findings(scenario, topology))
    traffic.findings.push_back(finding.message);
  for (const report::Finding& finding : cable_findings(scenario, topology, catalogue))
    traffic.findings.push_back(finding.message);
  if (!outcome.deadlocks.empty()) traffic.findings.emplace_back("deadlock: ports wait for one another");
  return traffic;
}

}  // namespace

bool on_textbook(TrafficPattern pattern, bool asked) {
  return asked || pattern == TrafficPattern::parking_lot || pattern == TrafficPattern::victim_flow;
}

Traffic run_traffic(const Scenario& scenario, const topology::Catalogue& catalogue, TrafficPattern pattern,
                    const TrafficOptions& options, const std::atomic<bool>* stop) {
  return with_places(scenario, [&] {
    return on_textbook(pattern, options.textbook) ? textbook_traffic(scenario, catalogue, pattern, options)
                                                  : on_scenario(scenario, catalogue, pattern, options, stop);
  });
}
}  // namespace topsim::scenario
