#include "sim/network/packet/packet_network.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "sim/base/error.hpp"
#include "sim/config/quantity.hpp"
#include "topology/cables.hpp"
#include "topology/credits.hpp"

namespace topsim::network::packet {
namespace {
using topology::LinkKind;

const char* routing_of(PathChoice path) {
  switch (path) {
    case PathChoice::flow_hash:
    case PathChoice::flowlet:
      return "ecmp";
    case PathChoice::destination:
      return "static";
    case PathChoice::spray:
      return "spray";
    case PathChoice::adaptive:
      return "adaptive";
  }
  throw InternalError("unknown path choice");
}

// Where the topology's routes are single paths, packets cannot choose, and the routes are those of its
// routing.
void refuse_another_routing(const topology::Topology& topology, PathChoice path) {
  const bool single =
      topology.routing == topology::Routing::static_ || topology.routing == topology::Routing::ecmp;
  if (!single || path == usual_path(topology.routing)) return;
  const bool fixed = path == PathChoice::flow_hash || path == PathChoice::destination;
  Problem problem;
  problem.path = "network.packet.path";
  problem.message =
      fixed
          ? fmt::format(
                "packets take the paths of the fabric's routing, which is {}: one {}",
                name_of(topology.routing),
                topology.routing == topology::Routing::ecmp ? "a connection, by its hash" : "a destination")
          : fmt::format("packets cannot choose their path: the fabric's routing is {}, one path a connection",
                        name_of(topology.routing));
  problem.help = fmt::format("give topology.fabric.routing as {}, too", routing_of(path));
  throw ConfigError({problem});
}

PacketSpec for_topology(const topology::Topology& topology, PacketSpec spec) {
  if (spec.path) refuse_another_routing(topology, *spec.path);
  spec.path = spec.path.value_or(usual_path(topology.routing));
  return spec;
}

// Links of the route up to the accelerator that hands on to the NIC under PXN.
std::size_t links_to_proxy(const topology::Topology& topology, const topology::Route& route) {
  if (!route.proxied) return 0;
  const auto end_of = [&](std::size_t i) { return topology.link(route.links[i].link).to; };
  std::size_t first = 0;
  while (topology.device(end_of(first)).kind != topology::DeviceKind::accelerator) ++first;
  std::size_t count = first + 1;  // the last of parallel ones
  while (count < route.links.size() && end_of(count) == end_of(first)) ++count;
  return count;
}

std::vector<double> capacities_of(const topology::Topology& topology) {
  std::vector<double> capacities;
  for (const topology::Link& link : topology.links()) capacities.push_back(link.capacity.value());
  return capacities;
}
}  // namespace

PathChoice usual_path(topology::Routing routing) {
  switch (routing) {
    case topology::Routing::static_:
      return PathChoice::destination;
    case topology::Routing::ecmp:
      return PathChoice::flow_hash;
    case topology::Routing::adaptive:
      return PathChoice::adaptive;
    case topology::Routing::spray:
      return PathChoice::spray;
  }
  throw InternalError("unknown routing");
}

BytesPerSecond wire_rate(const topology::Link& link, const Framing& framing) {
  const BytesPerSecond bound = link.capacity * (1 / framing.payload_share());
  constexpr double kSame = 1 - 1e-9;  // the same figure, but for rounding
  return link.line_rate.value() > 0 && bound >= kSame * link.line_rate ? link.line_rate : bound;
}

Graph graph_of(const topology::Topology& topology, const PacketSpec& spec) {
  Graph graph;
  graph.devices = static_cast<std::uint32_t>(topology.devices().size());
  graph.infiniband = topology.fabric_is_infiniband;
  for (std::uint32_t d = 0; d < graph.devices; ++d)
    graph.buffers.push_back(topology.facts_of(DeviceId(d)).buffer);
  const auto links = topology.links();
  for (std::size_t i = 0; i < links.size(); ++i) {
    const topology::Link link = links[i];
    const std::optional<LinkId> back = topology::other_direction(topology, LinkId(i));
    if (!back) {
      throw ConfigError(fmt::format("the link from {} to {} has no way back, which the packet model needs",
                                    topology.name(link.from), topology.name(link.to)));
    }
    PortSpec port;
    port.from = link.from.value, port.to = link.to.value;
    port.reverse = static_cast<PortIndex>(back->index());
    port.framed = link.kind == LinkKind::ethernet || link.kind == LinkKind::infiniband;
    port.rate = link.capacity;
    port.marks = port.framed;
    port.cables = link.count;
    // The link's latency contains one figure per switch passed, as routes count it; the base latency of a
    // message contains what lies before and behind.
    if (port.framed) port.latency = link.latency;
    port.flow_control = FlowControl::credit;
    if (port.framed) port.flow_control = spec.flow_control_on(link.kind == LinkKind::infiniband);
    graph.ports.push_back(port);
  }
  const Framing framing = framing_of(graph, spec);
  for (std::size_t i = 0; i < links.size(); ++i) {
    PortSpec& port = graph.ports[i];
    if (!port.framed) continue;
    // Between waits for credits, which have events of their own, a port sends at its rate.
    const topology::Link link = links[i];
    const bool waits = port.flow_control == FlowControl::credit && link.line_rate.value() > 0 &&
                       topology::waits_for_credits(topology, link, links[port.reverse]);
    port.rate = waits ? link.line_rate : wire_rate(link, framing);
  }
  return graph;
}

PacketNetwork::PacketNetwork(const topology::Router& router, const PacketSpec& spec, bool skip_repeats)
    : router_(router),
      spec_(for_topology(router.topology(), spec)),
      graph_(graph_of(router.topology(), spec_)),
      messages_(std::make_unique<Episodes>(graph_, spec_, skip_repeats)),
      scale_up_(capacities_of(router.topology())) {
  if (router.queue_pairs() != static_cast<std::uint32_t>(std::max(spec.queue_pairs, 1)))
    throw InternalError("routes and packets differ in the queue pairs of a connection");
}

const topology::Router& PacketNetwork::routes() const {
  return detour_ < detours_.size() ? *detours_[detour_] : router_;
}

const PacketNetwork::Ends& PacketNetwork::ends_of(const Transfer& transfer) {
  const Key key{transfer.from,   transfer.to,        transfer.from_nic,
                transfer.to_nic, transfer.allow_pxn, transfer.connection,
                transfer.slot,   transfer.rate_cap,  {transfer.way.begin(), transfer.way.end()}};
  const auto known = ends_.find(key);
  if (known != ends_.end()) return known->second;
  Ends ends;
  if (!transfer.way.empty()) {
    open_way(transfer, ends);
    return ends_.emplace(key, std::move(ends)).first->second;
  }
  std::vector<Connection> connections;
  // Ends that no path connects for now wait on the path that they had.
  if (!find_ways(routes(), key, ends, connections) && !find_ways(router_, key, ends, connections))
    throw ConfigError(router_.why_unreachable({.from = transfer.from,
                                               .to = transfer.to,
                                               .connection = transfer.connection,
                                               .from_nic = transfer.from_nic,
                                               .to_nic = transfer.to_nic,
                                               .allow_pxn = transfer.allow_pxn}));
  if (!connections.empty()) ends.channel = &messages_->open(connections);
  return ends_.emplace(key, std::move(ends)).first->second;
}

bool PacketNetwork::find_ways(const topology::Router& router, const Key& key, Ends& ends,
                              std::vector<Connection>& connections) const {
  topology::Route route;
  const std::uint32_t queue_pairs = router.queue_pairs();
  connections.clear();
  ends.usage.clear();
  for (std::uint32_t k = 0; k < queue_pairs; ++k) {
    Connection connection{key.from.value, key.to.value, key.connection * queue_pairs + k, 0, {}, {}, {}};
    router.route({.from = key.from,
                  .to = key.to,
                  .connection = key.connection,
                  .from_nic = key.from_nic,
                  .to_nic = key.to_nic,
                  .allow_pxn = key.allow_pxn,
                  .one_port = true,
                  .queue_pair = k},
                 route);
    if (!route.reachable()) return false;
    ends.scale_up =
        std::all_of(route.links.begin(), route.links.end(), [&](const topology::LinkShare& share) {
          return router.topology().link(share.link).kind == LinkKind::nvlink;
        });
    if (ends.scale_up) {
      for (const topology::LinkShare& share : route.links)
        ends.usage.push_back({share.link.value, share.share});
      break;
    }
    const std::size_t to_proxy = links_to_proxy(router.topology(), route);
    for (std::size_t i = 0; i < route.links.size(); ++i) {
      const LinkIndex link = route.links[i].link.value;
      if (i < to_proxy) {
        if (k == 0) ends.usage.push_back({link, route.links[i].share});
        continue;
      }
      connection.path.push_back(link);
      connection.back.push_back(graph_.ports[link].reverse);
    }
    if (to_proxy > 0) {
      connection.from = graph_.ports[connection.path.front()].from;
      connection.number ^= std::uint64_t{key.from.value} << 32U;  // whose data it is: pairs of their own
    }
    connection.rate_cap = BytesPerSecond(key.rate_cap / static_cast<double>(queue_pairs));
    connections.push_back(std::move(connection));
    if (!route.crosses_fabric) break;  // queue pairs spread over a fabric; inside a node there is one path
  }
  return true;
}

void PacketNetwork::take_routes(std::uint32_t detour, SimTime now) {
  detour_ = detour;
  std::vector<Connection> connections;
  for (auto& [key, ends] : ends_) {
    if (ends.scale_up || ends.named) continue;
    Ends other;
    if (!find_ways(routes(), key, other, connections) || other.scale_up) continue;
    ends.usage = std::move(other.usage);
    messages_->move(*ends.channel, connections, now);
  }
  collect();
}

// One queue pair along the links that the message lists.
void PacketNetwork::open_way(const Transfer& transfer, Ends& ends) {
  ends.named = true;
  ends.scale_up = std::all_of(transfer.way.begin(), transfer.way.end(), [&](LinkIndex link) {
    return router_.topology().link(LinkId(link)).kind == LinkKind::nvlink;
  });
  if (ends.scale_up) {
    for (const LinkIndex link : transfer.way) ends.usage.push_back({link, 1});
    return;
  }
  Connection connection{transfer.from.value, transfer.to.value, transfer.connection, 0, {}, {}, {}};
  connection.path.assign(transfer.way.begin(), transfer.way.end());
  for (const LinkIndex link : transfer.way) connection.back.push_back(graph_.ports[link].reverse);
  connection.rate_cap = BytesPerSecond(transfer.rate_cap);
  ends.channel = &messages_->open({connection});
}

void PacketNetwork::start(const Transfer& transfer, SimTime now) {
  if (!transfer.from.valid() || !transfer.to.valid()) {
    throw InternalError("the packet network carries messages between two devices, not whole collectives");
  }
  const Ends& ends = ends_of(transfer);
  if (!ends.usage.empty()) {
    Transfer fluid = transfer;
    fluid.usage = ends.usage;
    scale_up_.start(fluid, now);
    if (ends.scale_up) return;
    halves_.emplace(transfer.tag, kNever);
  }
  messages_->start(*ends.channel, Bytes(static_cast<std::int64_t>(transfer.bytes + 0.5)),
                   std::max(transfer.latency - ends.channel->path_latency, Duration{}), transfer.tag,
                   started_++, now);
  collect();
}

void PacketNetwork::collect() {
  for (const Episodes::Done& done : messages_->done()) complete({done.time, done.order, done.tag});
  messages_->done().clear();
}

// A message in two parts, to the accelerator beside the NIC and on from there, ends with the later of them.
void PacketNetwork::complete(Pending done) {
  if (const auto half = halves_.find(done.tag); half != halves_.end()) {
    if (half->second == kNever) {
      half->second = done.time;
      return;
    }
    done.time = std::max(done.time, half->second);
    halves_.erase(half);
  }
  pending_.push(done);
}

SimTime PacketNetwork::next_event() {
  collect();
  const SimTime first = pending_.empty() ? kNever : pending_.top().time;
  return std::min({first, messages_->next_event(), scale_up_.next_event()});
}

SimTime PacketNetwork::next_event_before(SimTime horizon) {
  collect();
  const SimTime fluid = scale_up_.next_event();
  const auto known = [&] { return std::min(fluid, pending_.empty() ? kNever : pending_.top().time); };
  const SimTime until = messages_->run_ahead(std::min(known(), horizon));
  collect();
  return std::min(known(), std::max(until, messages_->next_event()));
}

void PacketNetwork::advance(SimTime now, std::vector<Completion>& completed) {
  messages_->advance(now);
  collect();
  completed_.clear();
  scale_up_.advance(now, completed_);
  for (const Completion& done : completed_) complete({done.time, started_++, done.tag});
  while (!pending_.empty() && pending_.top().time <= now) {
    completed.push_back({pending_.top().tag, pending_.top().time});
    pending_.pop();
  }
}

void PacketNetwork::set_capacity(LinkIndex link, double bytes_per_second, SimTime now) {
  // `bytes_per_second` is payload; the rate of a framed link includes headers.
  const topology::Link& row = router_.topology().link(LinkId(link));
  const double share = bytes_per_second / row.capacity.value();
  scale_up_.set_capacity(link, bytes_per_second, now);
  messages_->set_rate(link, BytesPerSecond(graph_.ports[link].rate.value() * share), now);
  collect();
}

const Episodes& PacketNetwork::messages() const {
  messages_->settle();
  return *messages_;
}

LinkRecord PacketNetwork::record(LinkIndex link) const {
  LinkRecord record = messages_->record(link);
  const LinkRecord fluid = scale_up_.record(link);
  record.bytes += fluid.bytes;
  record.busy += fluid.busy;
  record.peak_rate = std::max(record.peak_rate, fluid.peak_rate);
  // A port that waits for credits is not free: it carries its capacity on average, not the rate of its
  // packets.
  const auto links = router_.topology().links();
  const PortSpec& port = graph_.ports[link];
  const double most = links[link].capacity.value();
  if (port.framed && record.peak_rate > most * (1 + 1e-9) &&
      topology::waits_for_credits(router_.topology(), links[link], links[port.reverse])) {
    record.busy = from_seconds(seconds(record.busy) * record.peak_rate / most);
    record.peak_rate = most;
  }
  return record;
}

std::uint64_t PacketNetwork::events() const {
  return messages_->work() + scale_up_.events();  // for progress: nothing settled
}

std::uint64_t PacketNetwork::packets() const {
  return messages().counters().data_packets;
}

std::string PacketNetwork::buffers() const {
  const topology::Topology& topology = router_.topology();
  std::map<std::string, Bytes> models;
  for (std::uint32_t d = 0; d < graph_.devices; ++d)
    if (topology.device(DeviceId(d)).kind == topology::DeviceKind::fabric_switch)
      models[topology.model_of(DeviceId(d))] = graph_.buffer_of(d, spec_.buffer);
  std::string text;
  for (const auto& [model, bytes] : models)
    text += fmt::format("{}{} buffers {}", text.empty() ? "" : ", ", model, config::to_text(bytes));
  return text;
}

std::vector<std::string> PacketNetwork::findings() const {
  std::vector<std::string> found;
  const topology::Topology& topology = router_.topology();
  for (const Deadlock& deadlock : messages().deadlocks()) {
    std::string around;
    for (const PortIndex port : deadlock.cycle)
      around += (around.empty() ? "" : ", ") + topology.name(LinkId(port));
    found.push_back(fmt::format("deadlock at {:.1f} us: {} wait for one another",
                                microseconds(deadlock.found.time_since_epoch()), around));
  }
  const Counters counters = messages().counters();
  if (counters.drops > 0) {
    found.push_back(fmt::format("{} packets were lost or found no buffer, {} were sent again", counters.drops,
                                counters.repeats));
  }
  if (counters.pauses > 0)
    found.push_back(fmt::format("switches paused their senders {} times; {}", counters.pauses, buffers()));
  return found;
}
}  // namespace topsim::network::packet
