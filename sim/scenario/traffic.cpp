#include "sim/scenario/traffic.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <memory>
#include <random>

#include "sim/base/error.hpp"
#include "sim/network/factory.hpp"
#include "sim/network/packet/experiments.hpp"
#include "sim/network/packet/packet_network.hpp"
#include "topology/build.hpp"
#include "topology/catalogue/device_entries.hpp"
#include "topology/catalogue/link_entry.hpp"
#include "topology/routes.hpp"

namespace topsim::scenario {
namespace {
namespace packet = network::packet;
using namespace topsim::literals;
using topology::DeviceKind;
using topology::Topology;

packet::PacketSpec packet_spec(const Scenario& scenario, bool infiniband) {
  packet::PacketSpec spec = scenario.network.packet.resolved(infiniband);
  spec.seed = scenario.run.seed;
  return spec;
}

// The scenario's topology with every switch apart, and a network over it.
class Ground {
 public:
  Ground(const Scenario& scenario, const topology::Catalogue& catalogue)
      : scenario_(scenario),
        topology_(topology::build(scenario.topology, catalogue, switches_apart())),
        router_(topology_, scenario.run.seed) {}

  [[nodiscard]] const Topology& topology() const { return topology_; }

  void renew() {
    packets_ = nullptr;
    if (scenario_.network.model == "packet") {
      auto made = std::make_unique<packet::PacketNetwork>(
          router_, packet_spec(scenario_, topology_.fabric_is_infiniband));
      packets_ = made.get();
      network_ = std::move(made);
      return;
    }
    std::vector<double> capacities;
    for (const topology::Link& link : topology_.links()) capacities.push_back(link.capacity.value());
    network_ = network::make_network(scenario_.network.model, capacities);
  }

  void send(DeviceId from, DeviceId to, Bytes bytes, std::uint64_t tag) {
    topology::RouteQuery query;
    query.from = from, query.to = to;
    router_.route(query, route_);
    if (!route_.reachable()) throw ConfigError(router_.why_unreachable(from, to));
    usage_.clear();
    for (const topology::LinkShare& share : route_.links) usage_.push_back({share.link.value, share.share});
    network::Transfer transfer;
    transfer.bytes = static_cast<double>(bytes.value());
    transfer.usage = usage_;
    transfer.latency = route_.latency;
    transfer.tag = tag;
    transfer.from = from, transfer.to = to;
    network_->start(transfer, SimTime{});
  }

  template <class Done>
  void run(const Done& done) {
    std::vector<network::Completion> completed;
    for (SimTime next = network_->next_event_before(kNever); next != kNever;
         next = network_->next_event_before(kNever)) {
      completed.clear();
      network_->advance(next, completed);
      for (const network::Completion& c : completed) done(c.tag, c.time.time_since_epoch());
    }
  }

  [[nodiscard]] const packet::PacketNetwork* packets() const { return packets_; }

 private:
  static topology::BuildOptions switches_apart() {
    topology::BuildOptions options;
    options.merge_switches_above = std::numeric_limits<int>::max();
    return options;
  }

  const Scenario& scenario_;
  const Topology topology_;
  const topology::Router router_;
  std::unique_ptr<network::Network> network_;
  const packet::PacketNetwork* packets_ = nullptr;
  topology::Route route_;
  std::vector<network::Usage> usage_;
};

// Ports that may meet: NICs node by node; accelerators where nodes have none or there is one node only.
struct Ends {
  std::vector<std::vector<DeviceId>> of_node;
  bool rails = false;  // ports of one rail only are meant to talk to each other
};

Ends ends_of(const Topology& topology) {
  Ends ends;
  ends.of_node.resize(topology.nodes());
  bool nics = topology.nodes() > 1;
  for (std::uint32_t n = 0; n < topology.nodes(); ++n) nics = nics && !topology.nics_of_node(n).empty();
  for (std::uint32_t n = 0; n < topology.nodes(); ++n) {
    if (nics) ends.of_node[n].assign(topology.nics_of_node(n).begin(), topology.nics_of_node(n).end());
  }
  if (!nics) {
    for (const DeviceId gpu : topology.accelerators()) ends.of_node[topology.device(gpu).node].push_back(gpu);
  }
  ends.rails = nics && (topology.fabric_kind == "rail" || topology.fabric_kind == "rail-only");
  return ends;
}

struct Pair {
  DeviceId from, to;
};

std::vector<Pair> incast_pairs(const Ends& ends, int senders) {
  std::vector<DeviceId> from;
  const DeviceId to = ends.of_node.front().front();
  std::size_t widest = 0;
  for (const auto& node : ends.of_node) widest = std::max(widest, node.size());
  // One port of every node before a second of any: that is how senders of an incast lie.
  for (std::size_t k = 0; k < (ends.rails ? 1 : widest); ++k) {
    for (std::size_t n = ends.of_node.size() > 1 ? 1 : 0; n < ends.of_node.size(); ++n) {
      if (k < ends.of_node[n].size() && ends.of_node[n][k] != to) from.push_back(ends.of_node[n][k]);
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

// Ports among which a permutation or an all-to-all runs: each rail for itself, or all together.
std::vector<std::vector<DeviceId>> circles(const Ends& ends) {
  std::vector<std::vector<DeviceId>> all;
  for (const auto& node : ends.of_node) {
    for (std::size_t k = 0; k < node.size(); ++k) {
      const std::size_t circle = ends.rails ? k : 0;
      if (all.size() <= circle) all.resize(circle + 1);
      all[circle].push_back(node[k]);
    }
  }
  return all;
}

std::vector<Pair> pairs_of(const Ends& ends, TrafficPattern pattern, const TrafficOptions& options,
                           const Topology& topology, std::uint64_t seed) {
  if (pattern == TrafficPattern::incast) return incast_pairs(ends, options.senders);
  std::vector<Pair> pairs;
  std::mt19937_64 random(seed);
  for (const auto& circle : circles(ends)) {
    const std::size_t n = circle.size();
    if (pattern == TrafficPattern::permutation) {
      // Sattolo's algorithm: one cycle through all, so that nobody sends to itself.
      std::vector<std::size_t> order(n);
      for (std::size_t i = 0; i < n; ++i) order[i] = i;
      for (std::size_t i = n; i-- > 1;) std::swap(order[i], order[random() % i]);
      for (std::size_t i = 0; i < n; ++i) pairs.push_back({circle[i], circle[order[i]]});
      continue;
    }
    for (std::size_t shift = 1; shift < n; ++shift) {
      for (std::size_t i = 0; i < n; ++i) {
        const DeviceId to = circle[(i + shift) % n];
        const bool same_node = topology.device(circle[i]).node == topology.device(to).node;
        if (topology.nodes() == 1 || !same_node) pairs.push_back({circle[i], to});
      }
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

std::string with_article(const Topology& topology, std::size_t flows) {
  return fmt::format("{} flows over the {} fabric of the scenario, {} nodes", flows, topology.fabric_kind,
                     topology.nodes());
}

Traffic on_scenario(const Scenario& scenario, const topology::Catalogue& catalogue, TrafficPattern pattern,
                    const TrafficOptions& options) {
  Ground ground(scenario, catalogue);
  const Topology& topology = ground.topology();
  const Ends ends = ends_of(topology);
  const std::vector<Pair> pairs = pairs_of(ends, pattern, options, topology, scenario.run.seed);
  if (pairs.empty()) {
    throw ConfigError("nobody can send: the topology has a single port",
                      "--set topology.nodes=N for more nodes, or --textbook for an incast around one switch");
  }
  const Bytes bytes = options.sizes.front();
  ground.renew();
  Traffic traffic;
  traffic.where = with_article(topology, pairs.size());
  for (const Pair& pair : pairs) {
    ground.send(pair.from, pair.to, bytes, traffic.flows.size());
    TrafficFlow flow;
    flow.from = topology.name(pair.from), flow.to = topology.name(pair.to), flow.bytes = bytes;
    traffic.flows.push_back(std::move(flow));
  }
  ground.run([&](std::uint64_t tag, Duration time) {
    TrafficFlow& flow = traffic.flows[tag];
    flow.delivered = time;
    flow.goodput = static_cast<double>(bytes.value()) / seconds(time);
    traffic.last = std::max(traffic.last, time);
  });
  traffic.fairness = jain(traffic.flows);
  if (ground.packets() == nullptr) return traffic;
  const packet::Episodes& engine = ground.packets()->messages();
  Bytes longest{};
  Duration paused{};
  for (packet::PortIndex p = 0; p < topology.links().size(); ++p) {
    const topology::Link& link = topology.link(LinkId(p));
    if (topology.device(link.from).kind == DeviceKind::fabric_switch)
      longest = std::max(longest, engine.most_waiting(p));
    paused += engine.paused(p);
  }
  traffic.queues = queues_of(engine.counters(), longest, paused);
  traffic.findings = ground.packets()->findings();
  return traffic;
}

// One cable of the scenario's fabric: the first link from a network port to a switch.
packet::LinkFigures cable_of(const Topology& topology) {
  for (const topology::Link& link : topology.links()) {
    if (topology.device(link.from).kind != DeviceKind::nic ||
        topology.device(link.to).kind != DeviceKind::fabric_switch)
      continue;
    const bool credits = link.kind == topology::LinkKind::infiniband;
    return {link.line_rate, link.latency, credits ? packet::FlowControl::credit : packet::FlowControl::pfc};
  }
  throw ConfigError("the scenario has no fabric whose cables could be used",
                    "give topology.fabric a kind and a link, and more than one node");
}

Traffic on_textbook(const Scenario& scenario, const topology::Catalogue& catalogue, TrafficPattern pattern,
                    const TrafficOptions& options) {
  const Topology topology = topology::build(scenario.topology, catalogue, {});
  packet::LinkFigures cable = cable_of(topology);
  const packet::PacketSpec spec = packet_spec(scenario, topology.fabric_is_infiniband);
  if (spec.flow_control) cable.flow_control = *spec.flow_control;
  if (cable.flow_control == packet::FlowControl::pfc && !spec.pfc.enabled)
    cable.flow_control = packet::FlowControl::none;
  const Duration window = options.window > Duration{} ? options.window : 10_ms;
  const auto senders = static_cast<std::uint32_t>(options.senders > 0 ? options.senders : 8);
  packet::Outcome outcome;
  std::vector<std::pair<std::string, std::string>> names;
  std::string shape = "two switches and one trunk, {} ms long";
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
    outcome = packet::victim_flow(cable, spec, window, options.victim_lane);
    for (int i = 0; i < 2; ++i) names.emplace_back(fmt::format("remote{}", i), "receiver");
    for (int i = 0; i < 4; ++i) names.emplace_back(fmt::format("local{}", i), "receiver");
    names.emplace_back("victim", "idle host");
    shape = fmt::format("two switches and one trunk, six flows to one receiver and the victim, {} ms",
                        seconds(window) * 1e3);
  }
  Traffic traffic;
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
  if (!outcome.deadlocks.empty()) traffic.findings.emplace_back("deadlock: ports wait for one another");
  return traffic;
}

DeviceId device_named(const Topology& topology, const std::string& name) {
  if (const auto found = topology.find_device(name)) return *found;
  throw ConfigError("there is no device \"" + name + '"',
                    "topsim topo show prints their names: node0/nic0, node1/gpu3");
}
}  // namespace

Traffic run_traffic(const Scenario& scenario, const topology::Catalogue& catalogue, TrafficPattern pattern,
                    const TrafficOptions& options) {
  const bool textbook =
      options.textbook || pattern == TrafficPattern::parking_lot || pattern == TrafficPattern::victim_flow;
  return with_places(scenario, [&] {
    return textbook ? on_textbook(scenario, catalogue, pattern, options)
                    : on_scenario(scenario, catalogue, pattern, options);
  });
}

namespace {
// What perftest times is the NICs: a small message by their own measurement back to back, every switch by its
// port-to-port time and 5 ns a metre. nullopt: not known of these parts, or told otherwise by the scenario.
std::optional<Scenario> as_perftest_sees(const Scenario& scenario, const topology::Catalogue& catalogue,
                                         const Topology& topology, DeviceId from, DeviceId to) {
  Scenario verbs = scenario;
  topology::FabricSpec& fabric = verbs.topology.fabric;
  if (fabric.nic_latency || fabric.link.latency) return std::nullopt;
  const auto nic_of = [&](DeviceId id) -> const topology::NicEntry* {
    const topology::Device& device = topology.device(id);
    return device.kind == DeviceKind::nic ? &catalogue.nic(topology.models()[device.model]) : nullptr;
  };
  const topology::NicEntry *a = nic_of(from), *b = nic_of(to);
  if (a == nullptr || b == nullptr || a->small_message == Duration{} || b->small_message == Duration{})
    return std::nullopt;
  for (const topology::Device& device : topology.devices())
    if (device.kind == DeviceKind::fabric_switch &&
        catalogue.network_switch(topology.models()[device.model]).port_to_port == Duration{})
      return std::nullopt;
  fabric.nic_latency = (a->small_message + b->small_message) / 2;
  const topology::FabricSpec resolved = topology::resolve_fabric(fabric, catalogue);
  if (fabric.length.empty() && fabric.kind != "direct")
    fabric.length = {resolved.cable_length(0), resolved.cable_length(1), resolved.cable_length(2)};
  return verbs;
}

// Beyond what goes along inline with the request, the NIC fetches the message from memory and writes it to
// memory at the far end. Round trip of a fetch: 450 ns (Neugebauer et al., SIGCOMM 2018, figure 5: 400 to
// 550). The first 4 KiB are on the bus of either side while nothing is on the wire: at MTU 256 as at 4096
// (Potter).
Duration host_part(const topology::Catalogue& catalogue, const Topology& topology, DeviceId nic, Bytes size) {
  constexpr Bytes kInline = 220_B;  // perftest's default
  if (size <= kInline) return {};
  const topology::NicEntry& entry = catalogue.nic(topology.models()[topology.device(nic).model]);
  Duration part = 450_ns;
  if (!entry.pcie.empty())
    part += 2 * (std::min(size, Bytes(4_KiB)) / topology::payload_capacity(catalogue.link(entry.pcie)));
  return part;
}

Duration one_message(Ground& ground, DeviceId from, DeviceId to, Bytes size) {
  Duration end{};
  ground.renew();
  ground.send(from, to, size, 0);
  ground.run([&](std::uint64_t, Duration time) { end = std::max(end, time); });
  return end;
}
}  // namespace

PointToPoint point_to_point(const Scenario& scenario, const topology::Catalogue& catalogue,
                            const TrafficOptions& options) {
  return with_places(scenario, [&] {
    Ground ground(scenario, catalogue);
    const Topology& topology = ground.topology();
    const Ends ends = ends_of(topology);
    const auto& first = ends.of_node.front();
    if (first.empty() || (ends.of_node.size() == 1 && first.size() < 2))
      throw ConfigError("there is nobody to send to", "give the topology a second node or accelerator");
    const DeviceId from = options.from.empty() ? first[0] : device_named(topology, options.from);
    const DeviceId to = !options.to.empty()       ? device_named(topology, options.to)
                        : ends.of_node.size() > 1 ? ends.of_node[1].front()
                                                  : first[1];
    PointToPoint result;
    result.from = topology.name(from), result.to = topology.name(to);
    const std::optional<Scenario> verbs = as_perftest_sees(scenario, catalogue, topology, from, to);
    std::optional<Ground> bare;
    if (verbs) bare.emplace(*verbs, catalogue);
    for (const Bytes size : options.sizes) {
      PointToPointRow row;
      row.size = size;
      row.library = row.latency = one_message(ground, from, to, size);
      if (bare) row.latency = one_message(*bare, from, to, size) + host_part(catalogue, topology, from, size);
      Duration end{};
      const auto keep = [&](std::uint64_t, Duration time) { end = std::max(end, time); };
      // perftest posts 5000 messages; the rate no longer changes after a few round trips' worth of bytes.
      constexpr std::int64_t kEnough = 32 << 20;
      row.iterations = static_cast<int>(
          std::clamp<std::int64_t>(kEnough / std::max<std::int64_t>(size.value(), 1), 20, 5000));
      ground.renew();
      for (int i = 0; i < row.iterations; ++i) ground.send(from, to, size, static_cast<std::uint64_t>(i));
      end = {};
      ground.run(keep);
      // From the first delivery on: what comes before it is latency.
      const double took = seconds(end - row.library);
      row.message_rate = took > 0 ? (row.iterations - 1) / took : 0;
      row.bandwidth = row.message_rate * static_cast<double>(size.value());
      result.rows.push_back(row);
    }
    return result;
  });
}
}  // namespace topsim::scenario
