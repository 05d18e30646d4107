#include "sim/executor/contention.hpp"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "sim/base/mix.hpp"
#include "sim/base/nearest.hpp"
#include "sim/network/packet/calibrate.hpp"

namespace topsim::executor {
namespace {
using topology::DeviceKind;

// The kind of congestion control on the link; other cables (Ethernet under TCP, Slingshot) have none.
std::string_view fabric_of(const topology::Topology& topology, LinkId link) {
  if (topology.link(link).kind == topology::LinkKind::infiniband) return "infiniband";
  return topology.type_of(link).transport == "roce" ? "roce" : "";
}

// The payload rate of the ports in the table. The timers of congestion control are absolute times, and its
// buffers and rates scale with the port; so at other rates the same happens in the same time.
double table_port(std::string_view fabric) {
  using network::packet::Framing;
  const Framing framing = fabric == "infiniband" ? Framing::infiniband() : Framing::roce();
  return network::packet::kCalibratedRate.value() * framing.payload_share();
}

// Credits, or PFC under RoCE, and no congestion control.
bool nothing_slows_senders(std::string_view fabric, const network::packet::PacketSpec& spec) {
  const bool infiniband = fabric == "infiniband";
  return spec.flow_control_on(infiniband) != network::packet::FlowControl::none &&
         spec.congestion_on(infiniband) == network::packet::CongestionControlKind::none;
}

constexpr double kOne = 4294967296.0;
std::int64_t fixed(double value) {
  return nearest(value * kOne);
}
}  // namespace

Contention::Contention(const fold::System& system, const topology::Topology& topology,
                       const RunOptions& options)
    : system_(system),
      ports_(system.links.size()),
      sources_(system.links.size()),
      flows_(system.activities.size()),
      remembered_(std::size_t{1} << kRememberedBits) {
  const network::CongestionTable& table = *options.congestion;
  const std::string routing(topology::name_of(topology.routing));
  const char* one_way = SwitchBuffers::packets_choose(topology) ? "bundle" : "static";
  const int pairs = options.packet.queue_pairs;
  constexpr std::size_t kSeveral = 0, kOneWay = 1, kToNic = 2, kKinds = 3;
  curves_.reserve(2 * kKinds);
  SwitchBuffers buffers(topology, options.packet);
  for (const char* fabric : {"roce", "infiniband"}) {
    curves_.push_back(table.between_switches(fabric, routing, pairs, options.congestion_bound));
    curves_.push_back(table.between_switches(fabric, one_way, pairs, options.congestion_bound));
    curves_.push_back(table.to_nic(fabric, pairs, options.congestion_bound));
  }
  for (std::size_t l = 0; l < ports_.size(); ++l) {
    const fold::LinkClass& link = system.links[l];
    if (link.members.empty()) continue;
    const topology::Link& one = topology.link(link.members.front());
    const std::string_view fabric = fabric_of(topology, link.members.front());
    if (fabric.empty()) continue;
    const DeviceKind from = topology.device(one.from).kind, to = topology.device(one.to).kind;
    ports_[l].capacity = ports_[l].given = link.capacity.value();
    if (from == DeviceKind::nic && to == DeviceKind::fabric_switch) {
      sources_[l].capacity = link.capacity.value();
      sources_[l].table_port = table_port(fabric);
    }
    if (from != DeviceKind::fabric_switch) continue;
    const std::size_t kind = to != DeviceKind::fabric_switch ? kToNic
                             : several_above(topology, one)  ? kSeveral
                                                             : kOneWay;
    const std::size_t row = (fabric == "roce" ? 0 : kKinds) + kind;
    if (curves_[row].empty()) continue;
    ports_[l].curve = &curves_[row];
    if (kind == kToNic && nothing_slows_senders(fabric, options.packet)) {
      ports_[l].crowd = static_cast<std::uint32_t>(crowds_.size());
      crowds_.push_back({{.port = link.members.front()}, {}});
    }
    if (fabric == "roce" && kind != kToNic) ports_[l].buffer = buffers.of(lower_of(topology, one));
  }
  buffers_ = std::move(buffers).all();
}

Contention::Flow& Contention::flow_of(std::uint32_t activity) {
  Flow& flow = flows_[activity];
  if (flow.known) return flow;
  flow.known = true;
  const fold::Activity& a = system_.activities[activity];
  double own = 0, port_in_table = 0;
  const fold::Activity::Detour* detour = a.on(detour_);
  const auto& own_usage = detour != nullptr ? detour->own_usage : a.own_usage;
  const auto& usage = detour != nullptr ? detour->usage : a.usage;
  for (const network::Usage& use : fold::Activity::view(own_usage)) {
    const Source& source = sources_[use.link];
    if (source.capacity == 0 || use.coefficient / source.capacity <= own) continue;
    own = use.coefficient / source.capacity;
    port_in_table = source.table_port;
  }
  if (own == 0) return flow;
  for (const network::Usage& use : fold::Activity::view(usage)) {
    const Port& port = ports_[use.link];
    if (port.curve != nullptr) flow.ports.push_back({use.link, use.coefficient / port.capacity / own});
    const double source = sources_[use.link].capacity;
    if (source > 0) flow.sources.push_back({use.link, use.coefficient / source / own});
  }
  flow.log_bytes = std::log2(std::max(own * port_in_table * static_cast<double>(a.bytes.value()), 1.0));
  return flow;
}

double Contention::efficiency_of(const Port& port) {
  if (port.factor == 0 || port.load == 0) return 1;  // a failed link, or an idle one
  // Messages have few sizes, so ports see the same loads again and again.
  const auto hash = (static_cast<std::uint64_t>(port.load) * kGoldenGamma +
                     static_cast<std::uint64_t>(port.weighted_size)) *
                    kGoldenGamma;
  Remembered& known = remembered_[hash >> (64 - kRememberedBits)];
  if (known.curve != port.curve || known.load != port.load || known.weighted_size != port.weighted_size ||
      known.factor != port.factor || known.buffer != port.buffer)
    known = {port.curve, port.buffer, port.load, port.weighted_size, port.factor, table_efficiency(port)};
  return known.efficiency;
}

double Contention::table_efficiency(const Port& port) const {
  // Loads are sums of rounded coefficients: those that differ only in the last digits are equal.
  constexpr double kGrid = 1048576;
  const auto on_grid = [](double value) { return std::round(value * kGrid) / kGrid; };
  const double load = on_grid(static_cast<double>(port.load) / kOne / port.factor);
  if (load <= port.curve->harmless()) return 1;
  const double log_bytes = static_cast<double>(port.weighted_size) / static_cast<double>(port.load);
  return port.curve->at(buffers_[port.buffer].queue(load), load, std::exp2(on_grid(log_bytes)));
}

double Contention::offer_of(const Flow& flow) const {
  Fixed demand = 0;
  for (const Share& source : flow.sources) demand = std::max(demand, sources_[source.link].demand);
  return std::min(1.0, kOne / static_cast<double>(std::max<Fixed>(demand, 1)));
}

void Contention::add(const Flow& flow, int times) {
  for (const Share& share : flow.ports) {
    const double load = share.load * flow.offer;
    Port& port = ports_[share.link];
    port.load += times * fixed(load);
    port.weighted_size += times * fixed(load * flow.log_bytes);
    if (port.changed) continue;
    port.changed = true;
    changed_ports_.push_back(share.link);
  }
}

void Contention::change(std::uint32_t activity, int by) {
  Flow& flow = flow_of(activity);
  const bool first = flow.running == 0, last = flow.running + by == 0;
  if (first) flow.offer = offer_of(flow);
  flow.running += by;
  add(flow, by);
  for (const Share& share : flow.sources) {
    Source& source = sources_[share.link];
    const Fixed before = source.demand;
    source.demand += by * fixed(share.load);
    if (first) source.flows.push_back(activity);
    if (last) std::erase(source.flows, activity);
    if (source.changed || std::max(before, source.demand) <= fixed(1)) continue;
    source.changed = true;
    changed_sources_.push_back(share.link);
  }
}

void Contention::change_routes(std::uint32_t detour) {
  detour_ = detour;
  for (std::size_t a = 0; a < flows_.size(); ++a)
    if (!system_.activities[a].detours.empty()) flows_[a] = {};
}

void Contention::scale(std::uint32_t link, double factor) {
  ports_[link].factor = factor;
  if (!std::exchange(ports_[link].changed, true)) changed_ports_.push_back(link);
}

void Contention::count_crowd(const Port& port, SimTime now) {
  CrowdedPort& each = crowds_[port.crowd];
  // A failed link is another matter: nothing is on the way to it.
  const double load = port.factor > 0 ? static_cast<double>(port.load) / kOne / port.factor : 0;
  if (load < (port.factor < 1 ? Crowd::kSlowed : Crowd::kLoad)) {
    if (each.since) each.crowd.time += now - *each.since;
    each.since.reset();
    return;
  }
  if (!each.since) each.since = now;
  each.crowd.load = std::max(each.crowd.load, load);
}

std::vector<std::uint32_t> Contention::overfull() const {
  constexpr double kMore = 1.001;  // loads are sums of rounded coefficients
  std::vector<std::uint32_t> links;
  for (std::uint32_t l = 0; l < ports_.size(); ++l) {
    const Port& port = ports_[l];
    if (port.crowd != kNone && port.factor > 0 && static_cast<double>(port.load) / kOne > kMore * port.factor)
      links.push_back(l);
  }
  return links;
}

std::optional<Crowd> Contention::longest_crowd(SimTime end) const {
  std::optional<Crowd> longest;
  for (const CrowdedPort& each : crowds_) {
    Crowd crowd = each.crowd;
    if (each.since) crowd.time += std::max(end - *each.since, Duration{});
    if (crowd.time > (longest ? longest->time : Duration{})) longest = crowd;
  }
  return longest;
}

void Contention::settle(network::Network& network, SimTime now) {
  for (const std::uint32_t link : changed_sources_) {
    sources_[link].changed = false;
    for (const std::uint32_t activity : sources_[link].flows) {
      if (flows_[activity].concerned) continue;
      flows_[activity].concerned = true;
      concerned_.push_back(activity);
    }
  }
  changed_sources_.clear();
  for (const std::uint32_t activity : concerned_) {
    Flow& flow = flows_[activity];
    flow.concerned = false;
    const double offer = offer_of(flow);
    if (offer == flow.offer) continue;
    add(flow, -flow.running);
    flow.offer = offer;
    add(flow, flow.running);
  }
  concerned_.clear();
  for (const std::uint32_t link : changed_ports_) {
    Port& port = ports_[link];
    port.changed = false;
    if (port.crowd != kNone) count_crowd(port, now);
    const double efficiency = efficiency_of(port);
    const double capacity = port.capacity * port.factor * efficiency;
    least_ = std::min(least_, efficiency);
    if (capacity == port.given) continue;
    port.given = capacity;
    network.set_capacity(link, capacity, now);
  }
  changed_ports_.clear();
}
}  // namespace topsim::executor
