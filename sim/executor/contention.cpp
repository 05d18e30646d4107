#include "sim/executor/contention.hpp"

#include <algorithm>
#include <string>

namespace topsim::executor {
namespace {
using topology::DeviceKind;

// What congestion control runs there: cables of other kinds (Ethernet under TCP, Slingshot) have no rows.
std::string fabric_of(const std::string& link_type) {
  if (link_type.rfind("roce", 0) == 0) return "roce";
  return link_type.rfind("ib-", 0) == 0 ? "infiniband" : "";
}
}  // namespace

Contention::Contention(const fold::System& system, const topology::Topology& topology,
                       const RunOptions& options)
    : system_(system),
      ports_(system.links.size()),
      from_nic_(system.links.size(), 0),
      shares_(system.activities.size()),
      known_(system.activities.size(), 0) {
  const network::CongestionTable& table = *options.congestion;
  const std::string routing(topology::name_of(topology.routing));
  const int pairs = options.packet.queue_pairs;
  curves_.reserve(4);
  for (const char* fabric : {"roce", "infiniband"}) {
    curves_.push_back(table.between_switches(fabric, routing, pairs, options.congestion_bound));
    curves_.push_back(table.to_nic(fabric, pairs, options.congestion_bound));
  }
  for (std::size_t l = 0; l < ports_.size(); ++l) {
    const fold::LinkClass& link = system.links[l];
    if (link.members.empty()) continue;
    const topology::Link& one = topology.link(link.members.front());
    const std::string fabric = fabric_of(topology.type_of(link.members.front()).id);
    if (fabric.empty()) continue;
    const DeviceKind from = topology.device(one.from).kind, to = topology.device(one.to).kind;
    ports_[l].capacity = link.capacity.value();
    if (from == DeviceKind::nic && to == DeviceKind::fabric_switch) from_nic_[l] = link.capacity.value();
    if (from != DeviceKind::fabric_switch) continue;
    const std::size_t row = (fabric == "roce" ? 0U : 2U) + (to == DeviceKind::fabric_switch ? 0U : 1U);
    if (!curves_[row].empty()) ports_[l].curve = &curves_[row];
  }
}

const std::vector<Contention::Share>& Contention::shares_of(std::uint32_t activity) {
  auto& shares = shares_[activity];
  if (known_[activity] != 0) return shares;
  known_[activity] = 1;
  const fold::Activity& a = system_.activities[activity];
  // Seconds a byte of work keeps one of its own NIC ports busy.
  double own = 0;
  const fold::Activity::Detour* detour = a.on(detour_);
  const auto& own_usage = detour != nullptr ? detour->own_usage : a.own_usage;
  const auto& usage = detour != nullptr ? detour->usage : a.usage;
  for (const network::Usage& use : fold::Activity::view(own_usage)) {
    if (from_nic_[use.link] > 0) own = std::max(own, use.coefficient / from_nic_[use.link]);
  }
  if (own == 0) return shares;
  for (const network::Usage& use : fold::Activity::view(usage)) {
    const Port& port = ports_[use.link];
    if (port.curve != nullptr) shares.push_back({use.link, use.coefficient / port.capacity / own});
  }
  return shares;
}

double Contention::efficiency_of(const Port& port) {
  if (port.factor == 0) return 1;  // of nothing
  // Sums of many shares round: what is 1 but for the last digits meets nobody.
  return port.curve->at(std::max(port.load / port.factor - 1e-9, 0.0));
}

void Contention::change(std::uint32_t activity, int by, network::Network& network, SimTime now) {
  for (const Share& share : shares_of(activity)) {
    Port& port = ports_[share.link];
    port.activities += by;
    port.load = port.activities == 0 ? 0 : port.load + by * share.load;
    const double efficiency = efficiency_of(port);
    if (efficiency == port.efficiency) continue;
    port.efficiency = efficiency;
    least_ = std::min(least_, efficiency);
    network.set_capacity(share.link, port.capacity * port.factor * efficiency, now);
  }
}

void Contention::change_routes(std::uint32_t detour) {
  detour_ = detour;
  for (std::size_t a = 0; a < known_.size(); ++a) {
    if (system_.activities[a].detours.empty()) continue;
    known_[a] = 0;
    shares_[a].clear();
  }
}

void Contention::scale(std::uint32_t link, double factor, network::Network& network, SimTime now) {
  Port& port = ports_[link];
  port.factor = factor;
  port.efficiency = efficiency_of(port);
  least_ = std::min(least_, port.efficiency);
  network.set_capacity(link, port.capacity * factor * port.efficiency, now);
}

void Contention::started(std::uint32_t activity, network::Network& network, SimTime now) {
  change(activity, 1, network, now);
}

void Contention::ended(std::uint32_t activity, network::Network& network, SimTime now) {
  change(activity, -1, network, now);
}
}  // namespace topsim::executor
