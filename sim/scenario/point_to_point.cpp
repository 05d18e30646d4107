// One pair of ports: what perftest prints, and what a communication library sees.
#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>

#include "sim/base/error.hpp"
#include "sim/collective/sockets.hpp"
#include "sim/scenario/traffic.hpp"
#include "sim/scenario/traffic_ground.hpp"
#include "topology/build.hpp"
#include "topology/catalogue/device_entries.hpp"
#include "topology/catalogue/link_entry.hpp"

namespace topsim::scenario {
namespace {
using namespace topsim::literals;
using topology::DeviceKind;
using topology::Topology;

DeviceId device_named(const Topology& topology, const std::string& name) {
  if (const auto found = topology.find_device(name)) return *found;
  throw ConfigError("there is no device \"" + name + '"',
                    "topsim topo show prints their names: node0/nic0, node1/gpu3");
}
// What perftest times is the NICs: a small message by their own measurement back to back, every switch by its
// port-to-port time and 5 ns a metre. nullopt: not known of these parts, or told otherwise by the scenario.
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
  // A latency that the scenario gives the link is a hop's, everything included: there is nothing to add up.
  if (fabric.length.empty() && fabric.kind != "direct" && !fabric.link.latency)
    fabric.length = {resolved.cable_length(0), resolved.cable_length(1), resolved.cable_length(2)};
  return verbs;
}

// Beyond what goes along inline with the request, the NIC fetches the message from memory and writes it to
// memory at the far end. The first 4 KiB are on the bus of either side while nothing is on the wire: at MTU
// 256 as at 4096 (Potter).
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

// From one message of a queue pair to the next: perftest's bandwidth tests post one by one from one core, TX
// depth 128, so that this and not the NIC (215 million messages a second of many queue pairs: ConnectX-6
// brief) bounds the rate of small messages. The slower end's figure; where the catalogue has none, the median
// of thirteen published sweeps of ib_write_bw at 40 to 400 Gbit/s: 5.5 million a second at 64 B (2.6 to 8.7).
// A file of devices names its own parts. Accelerators send by the NICs on their way; 0: there are none.
Duration between_messages(const Scenario& scenario, const topology::Catalogue& catalogue,
                          const Topology& topology, const topology::Route& route) {
  const bool of_catalogue = !scenario.topology.node.use.empty();
  Duration longest{};
  std::set<DeviceId> ends;
  for (const auto& share : route.links)
    for (const DeviceId end : {topology.link(share.link).from, topology.link(share.link).to})
      ends.insert(end);
  for (const DeviceId end : ends) {
    if (topology.device(end).kind != DeviceKind::nic) continue;
    const Duration own = of_catalogue
                             ? catalogue.nic(topology.models()[topology.device(end).model]).message_interval
                             : Duration{};
    longest = std::max(longest, own > Duration{} ? own : 183_ns);
  }
  return longest;
}

// What is known of NVLink between accelerators: p2pBandwidthLatencyTest times one copy kernel after another,
// and what a kernel writes is there one way later; a library adds its own. Null: of none in the catalogue.
const topology::LinkEntry* nvlink_of(const topology::Catalogue& catalogue, const Topology& topology,
                                     DeviceId accelerator, LinkId link) {
  const auto known = catalogue.entries();
  const auto has = [&](std::string_view category, const std::string& id) {
    return std::any_of(known.begin(), known.end(),
                       [&](const auto& entry) { return entry.category == category && entry.id == id; });
  };
  std::string id = topology.type_of(link).id;
  if (const std::string& model = topology.model_of(accelerator); has("accelerator", model))
    id = catalogue.accelerator(model).scale_up_link;
  return has("link", id) ? &catalogue.link(id) : nullptr;
}

Duration one_message(Ground& ground, DeviceId from, DeviceId to, Bytes size, double rate) {
  Duration end{};
  ground.renew();
  ground.send(from, to, size, 0, rate);
  ground.run([&](std::uint64_t, Duration time) { end = std::max(end, time); });
  return end;
}
}  // namespace

PointToPoint point_to_point(const Scenario& scenario, const topology::Catalogue& catalogue,
                            const TrafficOptions& options, const std::atomic<bool>* stop) {
  return with_places(scenario, [&] {
    Ground ground(scenario, catalogue, stop);
    const Topology& topology = ground.topology();
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
    PointToPoint result;
    result.from = topology.name(from), result.to = topology.name(to);
    result.verb = options.verb;
    const topology::Route route = ground.route(from, to);
    const bool tcp = std::any_of(route.links.begin(), route.links.end(), [&](const auto& share) {
      return topology.type_of(share.link).transport == "tcp";
    });
    const std::optional<Scenario> verbs =
        tcp ? std::nullopt : as_perftest_sees(scenario, catalogue, topology, from, to);
    result.over_nvlink = topology.device(from).kind == DeviceKind::accelerator &&
                         topology.device(to).kind == DeviceKind::accelerator &&
                         std::all_of(route.links.begin(), route.links.end(), [&](const auto& share) {
                           return topology.link(share.link).kind == topology::LinkKind::nvlink;
                         });
    const topology::LinkEntry* nvlink =
        result.over_nvlink ? nvlink_of(catalogue, topology, from, route.links.front().link) : nullptr;
    const Duration kernel = nvlink != nullptr ? nvlink->copy_kernel : Duration{};
    double rate = 0;  // what slots leave
    std::string slots;
    for (const DeviceId end : {from, to}) {
      const auto slot = ground.tight_slot(end, end == from);
      if (!slot) continue;
      rate = rate > 0 ? std::min(rate, slot->capacity) : slot->capacity;
      slots += fmt::format("{}{} ({}, {:.4g} GB/s)", slots.empty() ? "" : ", ", topology.name(end),
                           topology.type_of(slot->link).label, slot->capacity * 1e-9);
    }
    if (tcp) rate = rate > 0 ? std::min(rate, collective::kSocketReceive) : collective::kSocketReceive;
    std::optional<Ground> bare;
    if (verbs) {
      bare.emplace(*verbs, catalogue, stop);
    } else if (tcp) {
      result.note =
          fmt::format("TCP has no verbs: one stream, which a core of either host copies at {:.4g} GB/s",
                      collective::kSocketReceive * 1e-9);
    } else if (!result.over_nvlink) {
      result.note =
          "the latency is the library's: what perftest would print needs two NICs and switches whose own "
          "times "
          "the catalogue holds (small_message, port_to_port), and a scenario that leaves them as they are";
    }
    Duration interval = result.over_nvlink ? kernel : between_messages(scenario, catalogue, topology, route);
    if (interval == Duration{}) {  // a torus of chips, or a bus
      interval = one_message(ground, from, to, Bytes(1), rate);
      if (result.over_nvlink) result.note = "what a copy kernel takes there is not known";
      result.note +=
          "; no NIC is on the way, and how many messages such ports take is not published: here "
          "one in the time of the smallest";
    }
    if (!slots.empty()) {
      if (!result.note.empty()) result.note += "; ";
      result.note += "from memory to memory by slots slower than the cables: " + slots;
    }
    for (const Bytes size : options.sizes) {
      PointToPointRow row;
      row.size = size;
      const Duration wire = one_message(ground, from, to, size, rate);
      row.library = row.latency = wire;
      row.latency += kernel;
      if (nvlink != nullptr) row.library += nvlink->library;
      if (bare)
        row.latency = one_message(*bare, from, to, size, rate) +
                      host_part(catalogue, topology, from, to, size, options.verb);
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
      result.complete = !ground.stopped();
      if (!result.complete) break;
      // From the first delivery on: what comes before it is latency.
      const double took = seconds(end - wire);
      // Where messages do not share a link (analytic), each has all of it.
      row.message_rate = took > 0 ? (row.iterations - 1) / took : 1 / seconds(wire);
      if (interval > Duration{}) row.message_rate = std::min(row.message_rate, 1 / seconds(interval));
      if (tcp)
        row.message_rate =
            std::min(row.message_rate, collective::kSocketReceive / static_cast<double>(size.value()));
      row.bandwidth = row.message_rate * static_cast<double>(size.value());
      result.rows.push_back(row);
    }
    return result;
  });
}
}  // namespace topsim::scenario
