#include "sim/scenario/bench/testbed.hpp"

#include <algorithm>
#include <limits>

#include "sim/base/error.hpp"
#include "sim/scenario/cluster/faults.hpp"
#include "sim/scenario/cluster/load_topology.hpp"
#include "topology/build.hpp"

namespace topsim::scenario {
namespace {
using topology::Topology;

Topology with_switches_apart(const Scenario& scenario, const topology::Catalogue& catalogue) {
  topology::BuildOptions options = build_options(scenario);
  options.merge_switches_above = std::numeric_limits<int>::max();
  Topology topology = topology::build(scenario.topology, catalogue, options);
  as_packets_choose(scenario, topology);
  return topology;
}
}  // namespace

Testbed::Testbed(const Scenario& scenario, const topology::Catalogue& catalogue,
                 const std::atomic<bool>* stop)
    : scenario_(scenario),
      stop_(stop),
      topology_(with_switches_apart(scenario, catalogue)),
      faults_(faults()),
      router_(topology_, scenario.run.seed, faults_.dead, scenario.network.packet.queue_pairs(),
              faults_.slow) {}

Testbed::Faulty Testbed::faults() const {
  executor::RunOptions changed;
  AppliedFaults applied = apply_faults(scenario_, topology_, changed, holds_throughout);
  return {std::move(applied.dead), std::move(applied.slow), std::move(changed.capacity_changes)};
}

bool Testbed::cut_off(DeviceId port) const {
  if (faults_.dead.empty()) return false;
  // A NIC also has links to its accelerators, which do not count.
  const bool nic = topology_.device(port).kind == topology::DeviceKind::nic;
  const auto links = topology_.links_from(port);
  return std::all_of(links.begin(), links.end(), [&](LinkId link) {
    const topology::DeviceKind kind = topology_.device(topology_.link(link).to).kind;
    const bool counts =
        !nic || kind == topology::DeviceKind::fabric_switch || kind == topology::DeviceKind::nic;
    return !counts || std::find(faults_.dead.begin(), faults_.dead.end(), link) != faults_.dead.end();
  });
}

double Testbed::capacity(LinkId link) const {
  double capacity = topology_.link(link).capacity.value();
  for (const executor::CapacityChange& change : faults_.slower)
    if (change.link == link) capacity *= change.factor;
  return capacity;
}

std::optional<Testbed::Slot> Testbed::tight_slot(DeviceId end, bool sends) const {
  using topology::DeviceKind;
  if (topology_.device(end).kind != DeviceKind::nic) return {};
  double cables = 0;
  std::optional<Slot> slot;  // the widest, if there are several
  for (const LinkId out : topology_.links_from(end)) {
    const DeviceId other = topology_.link(out).to;
    const DeviceKind kind = topology_.device(other).kind;
    if (kind == DeviceKind::fabric_switch || kind == DeviceKind::nic)
      cables += capacity(out);
    else if (!slot || capacity(out) > slot->capacity)
      slot = {out, other, capacity(out)};
  }
  if (slot && sends)
    for (const LinkId in : topology_.links_from(slot->behind))
      if (topology_.link(in).to == end) slot = {in, slot->behind, capacity(in)};
  return slot && slot->capacity < cables ? slot : std::nullopt;
}

void Testbed::renew() {
  network_ = idle_network(scenario_, router_, faults_.slower);
  sent_ = arrived_ = 0;
  contention_.reset();
}

void Testbed::renew_with_contention() {
  renew();
  flows_.clear();
  if (scenario_.network.calibrated()) contention_.emplace(scenario_, topology_, faults_.slower);
}

// Traffic between two NICs uses their cables, also within one node if the fabric connects them.
void Testbed::find_route(DeviceId from, DeviceId to, topology::RouteQuery& query,
                         topology::Route& out) const {
  const auto is_nic = [&](DeviceId id) { return topology_.device(id).kind == topology::DeviceKind::nic; };
  query = {.from = from, .to = to};
  if (is_nic(from) && is_nic(to)) query.from_nic = from, query.to_nic = to;
  router_.route(query, out);
  if (!out.reachable()) {
    query = {.from = from, .to = to};
    router_.route(query, out);
  }
  if (!out.reachable()) throw ConfigError(router_.why_unreachable(query));
}

topology::Route Testbed::route(DeviceId from, DeviceId to) const {
  topology::RouteQuery query;
  topology::Route route;
  find_route(from, to, query, route);
  return route;
}

void Testbed::send(DeviceId from, DeviceId to, Bytes bytes, std::uint64_t tag, double rate) {
  topology::RouteQuery query;
  find_route(from, to, query, route_);
  const Duration latency = route_.latency;
  if (rate == 0 && query.from_nic.valid()) {
    const std::optional<Slot> out = tight_slot(from, true), in = tight_slot(to, false);
    if (out) query.from = out->behind;
    if (in) query.to = in->behind;
    if (out || in) router_.route(query, route_);
    if (!route_.reachable()) throw ConfigError(router_.why_unreachable(query));
  }
  usage_.clear();
  for (const topology::LinkShare& share : route_.links) usage_.push_back({share.link.value, share.share});
  network::Transfer transfer;
  transfer.bytes = static_cast<double>(bytes.value());
  transfer.usage = usage_;
  transfer.rate_cap = rate;
  transfer.latency = latency;
  transfer.tag = tag;
  transfer.from = query.from, transfer.to = query.to;
  transfer.from_nic = query.from_nic, transfer.to_nic = query.to_nic;
  network_.network->start(transfer, SimTime{});
  if (contention_) flows_.push_back({usage_, bytes, latency});
  ++sent_;
}

Ends ends_of(const Topology& topology) {
  Ends ends;
  ends.of_node.resize(topology.nodes());
  // Host NICs take no part if the chips have a torus between them.
  const auto cabled = [&](DeviceId nic) {
    const auto links = topology.links_from(nic);
    return std::any_of(links.begin(), links.end(), [&](LinkId link) {
      const topology::DeviceKind kind = topology.device(topology.link(link).to).kind;
      return kind == topology::DeviceKind::fabric_switch || kind == topology::DeviceKind::nic;
    });
  };
  bool nics = topology.nodes() > 1;
  for (std::uint32_t n = 0; n < topology.nodes(); ++n) {
    const auto of_node = topology.nics_of_node(n);
    nics = nics && std::any_of(of_node.begin(), of_node.end(), cabled);
  }
  for (std::uint32_t n = 0; n < topology.nodes(); ++n) {
    if (nics) ends.of_node[n].assign(topology.nics_of_node(n).begin(), topology.nics_of_node(n).end());
  }
  if (!nics) {
    for (const DeviceId gpu : topology.accelerators()) ends.of_node[topology.device(gpu).node].push_back(gpu);
  }
  ends.rails = nics && topology::traits(topology.fabric_kind).rails != topology::Rails::none;
  return ends;
}
}  // namespace topsim::scenario
