// Messages between two ports: what perftest prints, and what a communication library sees.
#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>

#include "sim/base/error.hpp"
#include "sim/collective/sockets.hpp"
#include "sim/scenario/bench/testbed.hpp"
#include "sim/scenario/bench/traffic.hpp"
#include "sim/scenario/findings/cable_findings.hpp"
#include "topology/build.hpp"
#include "topology/catalogue/device_entries.hpp"
#include "topology/catalogue/link_entry.hpp"

namespace topsim::scenario {
namespace {
using namespace topsim::literals;
using topology::DeviceKind;
using topology::LinkKind;
using topology::Topology;

DeviceId device_named(const Topology& topology, const std::string& name) {
  if (const auto found = topology.find_device(name)) return *found;
  throw ConfigError("there is no device \"" + name + '"',
                    "topsim topo show prints their names: node0/nic0, node1/gpu3");
}
// The scenario with perftest's latencies: NICs as measured back to back with a small message, every switch
// with its port-to-port time, and 5 ns per metre of cable. nullopt: not known for these parts, or overridden
// by the scenario.
std::optional<Scenario> as_perftest_sees(const Scenario& scenario, const topology::Catalogue& catalogue,
                                         const Topology& topology, DeviceId from, DeviceId to) {
  Scenario verbs = scenario;
  topology::FabricSpec& fabric = verbs.topology.fabric;
  const bool of_catalogue = !scenario.topology.node.use.empty();  // a file of devices names its own parts
  if (!of_catalogue || fabric.nic_latency) return std::nullopt;
  const auto nic_of = [&](DeviceId id) -> const topology::NicEntry* {
    const topology::Device& device = topology.device(id);
    return device.kind == DeviceKind::nic ? &catalogue.nic(topology.models()[device.model]) : nullptr;
  };
  const topology::NicEntry *a = nic_of(from), *b = nic_of(to);
  if (a == nullptr || b == nullptr || a->small_message == Duration{} || b->small_message == Duration{})
    return std::nullopt;
  for (const topology::Device& device : topology.devices())
    if (device.kind == DeviceKind::fabric_switch && !fabric.link.latency &&
        catalogue.network_switch(topology.models()[device.model]).port_to_port == Duration{})
      return std::nullopt;
  fabric.nic_latency = (a->small_message + b->small_message) / 2;
  const topology::FabricSpec resolved = topology::resolve_fabric(fabric, catalogue);
  // A link latency given by the scenario covers a whole hop, so nothing is added.
  if (fabric.length.empty() && fabric.kind != topology::FabricKind::direct && !fabric.link.latency)
    fabric.length = {resolved.cable_length(0), resolved.cable_length(1), resolved.cable_length(2)};
  return verbs;
}

// Unless a message is sent inline with the request, the NIC reads it from memory and writes it to memory at
// the far end. The first 4 KiB cross the bus on either side before anything is on the wire: at MTU 256 as at
// 4096 (Potter).
Duration host_part(const topology::Catalogue& catalogue, const Topology& topology, DeviceId from, DeviceId to,
                   Bytes size, Verb verb) {
  // perftest's defaults for reliable connections (perftest_parameters.h, DEF_INLINE_SEND_RC_UC and _WRITE).
  const Bytes sent_inline = verb == Verb::send ? 236_B : 220_B;
  if (size <= sent_inline) return {};
  Duration part{};
  for (const DeviceId nic : {from, to}) {
    const std::string& slot = catalogue.nic(topology.models()[topology.device(nic).model]).pcie;
    if (slot.empty()) continue;
    const topology::LinkEntry& bus = catalogue.link(slot);
    part += std::min(size, Bytes(4_KiB)) / topology::payload_capacity(bus);
    if (nic == from) part += bus.read_round_trip;
  }
  return part;
}

bool listed(const topology::Catalogue& catalogue, std::string_view category, const std::string& id) {
  const auto known = catalogue.entries();
  return std::any_of(known.begin(), known.end(),
                     [&](const auto& entry) { return entry.category == category && entry.id == id; });
}

// Time from one message of a queue pair to the next: perftest's bandwidth tests post messages one by one from
// one core, TX depth 128, so this and not the NIC (215 million messages a second from many queue pairs:
// ConnectX-6 brief) limits the rate of small messages. The slower end's figure; where the catalogue has none,
// the median of thirteen published sweeps of ib_write_bw at 40 to 400 Gbit/s: 5.5 million a second at 64 B
// (2.6 to 8.7). Accelerators send through the NICs on their path; 0: there are none.
Duration between_messages(const topology::Catalogue& catalogue, const Topology& topology,
                          const topology::Route& route) {
  Duration longest{};
  std::set<DeviceId> ends;
  for (const auto& share : route.links)
    for (const DeviceId end : {topology.link(share.link).from, topology.link(share.link).to})
      ends.insert(end);
  for (const DeviceId end : ends) {
    if (topology.device(end).kind != DeviceKind::nic) continue;
    const std::string& model = topology.model_of(end);  // of a file of devices it may be any
    const Duration own = listed(catalogue, "nic", model) ? catalogue.nic(model).message_interval : Duration{};
    longest = std::max(longest, own > Duration{} ? own : 183_ns);
  }
  return longest;
}

// How a message goes between two accelerators that need no NIC: a kernel writes to the other's memory
// (p2pBandwidthLatencyTest times one after another, and what one writes arrives a latency later), or, where
// peers cannot, copies are staged in host memory.
struct Copies {
  std::string over;                            // "" where there are none
  const topology::LinkEntry* entry = nullptr;  // null: not in the catalogue
  bool staged = false;
  [[nodiscard]] Duration each() const {
    return entry == nullptr ? Duration{} : staged ? entry->staged_copy : entry->copy_kernel;
  }
  [[nodiscard]] double most() const { return entry != nullptr && staged ? entry->staged_rate.value() : 0; }
};

const topology::LinkEntry* entry_of(const topology::Catalogue& catalogue, const Topology& topology,
                                    DeviceId accelerator, LinkId link) {
  std::string id = topology.type_of(link).id;
  if (const std::string& model = topology.model_of(accelerator);
      topology.link(link).kind == LinkKind::nvlink && listed(catalogue, "accelerator", model))
    id = catalogue.accelerator(model).scale_up_link;
  return listed(catalogue, "link", id) ? &catalogue.link(id) : nullptr;
}

Copies copies_between(const topology::Catalogue& catalogue, const Topology& topology, DeviceId from,
                      DeviceId to, const topology::Route& route) {
  const auto accelerator = [&](DeviceId id) { return topology.device(id).kind == DeviceKind::accelerator; };
  if (!accelerator(from) || !accelerator(to) || route.crosses_fabric || route.links.empty()) return {};
  std::set<LinkKind> kinds;
  for (const auto& share : route.links) kinds.insert(topology.link(share.link).kind);
  const LinkId first = route.links.front().link;
  Copies copies{{}, entry_of(catalogue, topology, from, first), false};
  if (kinds == std::set{LinkKind::nvlink}) {
    copies.over = "NVLink";
  } else if (kinds == std::set{LinkKind::infinity_fabric}) {
    copies.over = "Infinity Fabric";
  } else if (topology.link(first).kind == LinkKind::pcie) {
    copies.staged = !topology.peer_to_peer || kinds.contains(LinkKind::socket);
    copies.over = copies.staged ? "PCIe and host memory" : "PCIe";
  }
  return copies.over.empty() ? Copies{} : copies;
}

Duration one_message(Testbed& testbed, DeviceId from, DeviceId to, Bytes size, double rate) {
  Duration end{};
  testbed.renew();
  testbed.send(from, to, size, 0, rate);
  testbed.run([&](std::uint64_t, Duration time) { end = std::max(end, time); });
  return end;
}

struct TwoEnds {
  DeviceId from, to;
};

TwoEnds ends_to_use(const Topology& topology, const TrafficOptions& options) {
  const Ends ends = ends_of(topology);
  const auto& first = ends.of_node.front();
  if (first.empty() || (ends.of_node.size() == 1 && first.size() < 2))
    throw ConfigError("there is nobody to send to", "give the topology a second node or accelerator");
  const DeviceId from = options.from.empty() ? first[0] : device_named(topology, options.from);
  const DeviceId to = !options.to.empty()       ? device_named(topology, options.to)
                      : ends.of_node.size() > 1 ? ends.of_node[1].front()
                                                : first[1];
  if (from == to)
    throw ConfigError(topology.name(from) + " would send to itself",
                      "--from and --to name two accelerators or NICs");
  return {from, to};
}

// PCIe slots of the ends that are slower than their cables.
struct Slots {
  double rate = 0;  // bytes/s; 0: none are slower
  std::string names;
};

Slots slots_of(const Testbed& testbed, TwoEnds pair) {
  const Topology& topology = testbed.topology();
  Slots slots;
  for (const DeviceId end : {pair.from, pair.to}) {
    const auto slot = testbed.tight_slot(end, end == pair.from);
    if (!slot) continue;
    slots.rate = slots.rate > 0 ? std::min(slots.rate, slot->capacity) : slot->capacity;
    slots.names += fmt::format("{}{} ({}, {:.4g} GB/s)", slots.names.empty() ? "" : ", ", topology.name(end),
                               topology.type_of(slot->link).label, slot->capacity * 1e-9);
  }
  return slots;
}

// Two ends, and everything that their messages have in common.
struct Connection {
  const topology::Catalogue& catalogue;
  Testbed& testbed;  // as libraries see it
  Testbed* bare;     // as perftest does; null: not known
  TwoEnds pair;
  Verb verb;
  bool tcp;
  Copies copies;
  double rate;        // bytes/s, the limit of slots and copies; 0: only links
  Duration interval;  // from one message of a queue pair to the next
};

// States what the figures are, if they are not perftest's.
std::string note_of(bool tcp, bool copied, bool as_perftest) {
  if (tcp)
    return fmt::format("TCP has no verbs: one stream, which a core of either host copies at {:.4g} GB/s",
                       collective::kSocketReceive * 1e-9);
  if (copied || as_perftest) return "";
  return "the latency is the library's: what perftest would print needs two NICs and switches whose own "
         "times the catalogue holds (small_message, port_to_port), and a scenario that leaves them as they "
         "are";
}

// nullopt: the run was stopped.
std::optional<PointToPointRow> row_of(const Connection& connection, Bytes size) {
  const auto [from, to] = connection.pair;
  PointToPointRow row;
  row.size = size;
  const Duration wire = one_message(connection.testbed, from, to, size, connection.rate);
  row.library = row.latency = wire;
  row.latency += connection.copies.each();
  const Duration library = connection.copies.entry == nullptr ? Duration{} : connection.copies.entry->library;
  row.library += library > Duration{} ? library : connection.copies.each();
  if (connection.bare != nullptr)
    row.latency =
        one_message(*connection.bare, from, to, size, connection.rate) +
        host_part(connection.catalogue, connection.testbed.topology(), from, to, size, connection.verb);
  row.library = std::max(row.library, row.latency);  // a library sends as perftest does, with its own work
  // perftest posts 5000 messages; after a few round trips' worth of bytes the rate no longer changes.
  constexpr std::int64_t kEnough = 32 << 20;
  row.iterations =
      static_cast<int>(std::clamp<std::int64_t>(kEnough / std::max<std::int64_t>(size.value(), 1), 20, 5000));
  connection.testbed.renew();
  for (int i = 0; i < row.iterations; ++i)
    connection.testbed.send(from, to, size, static_cast<std::uint64_t>(i));
  Duration end{};
  connection.testbed.run([&](std::uint64_t, Duration time) { end = std::max(end, time); });
  if (connection.testbed.stopped()) return std::nullopt;
  // Counted from the first delivery: the time before is latency.
  const double took = seconds(end - wire);
  // Where messages do not share a link (analytic), each gets the full rate.
  row.message_rate = took > 0 ? (row.iterations - 1) / took : 1 / seconds(wire);
  if (connection.interval > Duration{})
    row.message_rate = std::min(row.message_rate, 1 / seconds(connection.interval));
  for (const double most : {connection.tcp ? collective::kSocketReceive : 0, connection.copies.most()})
    if (most > 0) row.message_rate = std::min(row.message_rate, most / static_cast<double>(size.value()));
  row.bandwidth = row.message_rate * static_cast<double>(size.value());
  return row;
}

PointToPoint messages_between(const Scenario& scenario, const topology::Catalogue& catalogue,
                              const TrafficOptions& options, const std::atomic<bool>* stop) {
  Testbed testbed(scenario, catalogue, stop);
  const Topology& topology = testbed.topology();
  const TwoEnds pair = ends_to_use(topology, options);
  const auto [from, to] = pair;
  PointToPoint result;
  result.from = topology.name(from), result.to = topology.name(to);
  result.verb = options.verb;
  const topology::Route route = testbed.route(from, to);
  const auto all_links = [&](const auto& is) {
    return std::all_of(route.links.begin(), route.links.end(),
                       [&](const auto& share) { return is(share.link); });
  };
  const bool tcp = !all_links([&](LinkId link) { return topology.type_of(link).transport != "tcp"; });
  const Copies copies = copies_between(catalogue, topology, from, to, route);
  result.over = copies.over;
  const std::optional<Scenario> verbs =
      tcp ? std::nullopt : as_perftest_sees(scenario, catalogue, topology, from, to);
  std::optional<Testbed> bare;
  if (verbs) bare.emplace(*verbs, catalogue, stop);
  result.note = note_of(tcp, !copies.over.empty(), verbs.has_value());
  const Slots slots = slots_of(testbed, pair);
  Connection connection{catalogue,  testbed, bare ? &*bare : nullptr, pair, options.verb, tcp, copies,
                        slots.rate, {}};
  for (const double most : {tcp ? collective::kSocketReceive : 0, copies.most()})
    if (most > 0) connection.rate = connection.rate > 0 ? std::min(connection.rate, most) : most;
  connection.interval = copies.over.empty() ? between_messages(catalogue, topology, route) : copies.each();
  if (connection.interval == Duration{}) {  // a torus of chips, or a bus
    connection.interval = one_message(testbed, from, to, Bytes(1), connection.rate);
    result.without_nic = copies.over.empty();
    if (!copies.over.empty()) result.note = "what a copy kernel takes there is not known";
    result.note +=
        "; no NIC is on the way, and how many messages such ports take is not published: here "
        "one in the time of the smallest";
  }
  if (!slots.names.empty()) {
    if (!result.note.empty()) result.note += "; ";
    result.note += "from memory to memory by slots slower than the cables: " + slots.names;
  }
  for (const Bytes size : options.sizes) {
    const auto row = row_of(connection, size);
    result.complete = row.has_value();
    if (!row) break;
    result.rows.push_back(*row);
  }
  result.findings = cable_findings(scenario, topology, catalogue);
  return result;
}
}  // namespace

PointToPoint point_to_point(const Scenario& scenario, const topology::Catalogue& catalogue,
                            const TrafficOptions& options, const std::atomic<bool>* stop) {
  return with_places(scenario, [&] { return messages_between(scenario, catalogue, options, stop); });
}
}  // namespace topsim::scenario
