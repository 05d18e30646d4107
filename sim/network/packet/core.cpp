#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "sim/base/error.hpp"
#include "sim/base/mix.hpp"
#include "sim/network/packet/hop.hpp"

namespace topsim::network::packet {
namespace {
// The state of that many ports (Port, two Credits, queues: some 400 bytes each) fills about half of a 1 MiB
// cache.
constexpr std::size_t kPortsInNearCache = 1'000;
// In blocks: 32 KiB. A shallower lane marks where one of this depth does.
constexpr std::uint32_t kLeastMarkedLane = 512;

double slowest_framed(const Graph& graph) {
  double slowest = 0;
  for (const PortSpec& port : graph.ports) {
    if (port.framed && (slowest == 0 || port.rate.value() < slowest)) slowest = port.rate.value();
  }
  return slowest;
}
std::uint64_t cost_of(BytesPerSecond rate) {
  return static_cast<std::uint64_t>(std::llround(time_of_byte(rate.value())));
}
// Busy ports have one event per packet time: some four events per bucket. The calendar spans a packet's time
// over any link, unless that is very long.
int bucket_bits(const Graph& graph, const Settings& settings) {
  double packet = 0, way = 0;
  for (const PortSpec& port : graph.ports) {
    const double time = 1e12 * (settings.mtu + settings.header) / port.rate.value();
    if (packet == 0 || time < packet) packet = time;
    way = std::max(way, 2 * time + static_cast<double>(port.latency.count()));
  }
  const double ports = std::max<double>(1, static_cast<double>(graph.ports.size()));
  const double width = std::max(32 * packet / ports, way / EventQueue::kBuckets);
  return static_cast<int>(std::clamp(std::log2(width), 6.0, 14.0));
}
}  // namespace

Core::Core(const Graph& graph_, const PacketSpec& spec_)
    : graph(graph_),
      spec(spec_),
      settings(settle_spec(graph_, spec_)),
      events(bucket_bits(graph_, settings)),
      ports(graph_.ports.size()),
      records(graph_.ports.size()),
      paths_(graph_),
      waiting_(graph_.ports.size() * settings.classes),
      ingress_(graph_.ports.size() * settings.classes),
      credits_(graph_.ports.size() * settings.classes),
      credit_total_(graph_.ports.size(), 0),
      mark_to_(graph_.ports.size(), 0),
      grade_(graph_.ports.size(), 1),
      unmarked_(graph_.ports.size(), 0),
      arbiter_(graph_.ports.size() * settings.classes, 0),
      devices_(graph_.devices),
      out_begin_(graph_.devices + 1, 0),
      out_(graph_.ports.size()),
      congestion_(settings.congestion, spec_.congestion_control, slowest_framed(graph_), settings.mtu,
                  spec_.loss.timeout.count()),
      random_(graph_.ports.size()) {
  for (PortIndex p = 0; p < ports.size(); ++p) set_up_port(p);
  list_ports();
  most_blocks_ = blocks_of(std::max({settings.mtu + settings.header, settings.ack, settings.cnp}));
  set_up_buffers();
  begin_random();
  may_finish_early_ = settings.lossy || settings.recovery == Recovery::selective_repeat;
  mark_by_credits();
  wide_ = ports.size() > kPortsInNearCache;
  find_ports_ahead();
}

void Core::set_up_port(PortIndex p) {
  const PortSpec& from = graph.ports[p];
  Port& port = ports[p];
  port.latency = from.latency.count();
  port.cost = cost_of(from.rate);
  rate_.push_back(from.rate.value());
  port.from = from.from, port.to = from.to, port.reverse = from.reverse;
  port.gap = from.framed ? static_cast<std::uint16_t>(settings.framing.gap.value()) : std::uint16_t{0};
  port.discount = from.framed ? std::uint16_t{0} : static_cast<std::uint16_t>(settings.header);
  port.flow_control = from.flow_control;
  port.cut_through = spec.buffer.cut_through;
  port.lossy = spec.loss.probability > 0 && from.marks;
  const MarkLevels marks = ecn_levels(from, spec, settings.congestion);
  port.mark_from = marks.from, mark_to_[p] = marks.all;
}

void Core::list_ports() {
  for (const Port& port : ports) ++out_begin_[port.from + 1];
  for (std::size_t d = 0; d < graph.devices; ++d) out_begin_[d + 1] += out_begin_[d];
  auto place = out_begin_;
  for (PortIndex p = 0; p < ports.size(); ++p) out_[place[ports[p].from]++] = p;
}

// Annex A10: of the thresholds 0 to 15 the highest marks earliest, at a sixteenth of the lane's buffer.
void Core::mark_by_credits() {
  const int threshold = spec.congestion_control.infiniband.threshold;
  if (settings.congestion != CongestionControlKind::infiniband || threshold <= 0) return;
  const auto sixteenths = static_cast<std::uint32_t>(16 - std::min(threshold, 15));
  for (PortIndex p = 0; p < ports.size(); ++p) {
    if (!graph.ports[p].marks) continue;
    ports[p].mark_from = std::max(credit_total_[p], kLeastMarkedLane) * kBlock / 16 * sixteenths;
  }
}

// Whether each port begins where the previous one ended: one path, in order.
bool Core::is_walk(std::span<const PortIndex> path, DeviceIndex from, DeviceIndex to) const {
  for (const PortIndex p : path) {
    if (graph.ports[p].from != from) return false;
    from = graph.ports[p].to;
  }
  return !path.empty() && from == to;
}

Way Core::way(const Connection& connection, bool forward_way, std::uint64_t hash) {
  const DeviceIndex from = forward_way ? connection.from : connection.to;
  const DeviceIndex to = forward_way ? connection.to : connection.from;
  const auto& given = forward_way ? connection.path : connection.back;
  const bool fixed = settings.path == PathChoice::flow_hash || settings.path == PathChoice::destination;
  // A single path may pass a device twice (through host memory and back); as a graph it would have a cycle.
  if (!given.empty() && is_walk(given, from, to)) return paths_.chain(given);
  if (const std::vector<PortIndex> turned(given.rbegin(), given.rend()); is_walk(turned, from, to)) {
    return paths_.chain(turned);
  }
  if (!given.empty()) return paths_.all_of(given, from, to);
  if (!fixed) return paths_.all_of(paths_.all_shortest(from, to), from, to);
  return paths_.chain(paths_.shortest(from, to, settings.path == PathChoice::destination ? mix(to) : hash));
}

PairIndex Core::connect(const Connection& connection) {
  const auto pair = static_cast<PairIndex>(pairs_.size());
  QueuePair q;
  q.lane = static_cast<std::uint8_t>(1 + std::clamp(connection.lane, 0, spec.lanes.count - 1));
  q.ack_lane = settings.control_first ? std::uint8_t{0} : q.lane;
  find_way(q, connection);
  // Round trip of one packet on the idle path; its acknowledgement has no size ([HPCC] pairRtt).
  Picoseconds trip = 0;
  double slowest = 0;
  for (std::uint32_t hop = q.first_hop;; hop = paths_[hop].next) {
    const Port& on = ports[paths_[hop].port];
    const BytesPerSecond whole = graph.ports[paths_[hop].port].rate;  // whether or not the port is slow now
    trip += on.latency + ports[on.reverse].latency + time_of(settings.mtu, cost_of(whole));
    const double rate = whole.value();
    if (slowest == 0 || rate < slowest) slowest = rate;
    if (paths_[hop].count == 0) break;
  }
  // Congestion control begins at the NIC's rate, however little the sender posts.
  if (connection.rate_cap.value() > 0 && connection.rate_cap.value() < slowest)
    q.pace = q.pace_cap = static_cast<std::uint64_t>(time_of_byte(connection.rate_cap.value()));
  congestion_.add(q, slowest, trip);
  pairs_.push_back(q);
  if (settings.recovery == Recovery::selective_repeat) selective_.emplace_back();
  return pair;
}

void Core::send(PairIndex pair, Bytes bytes, SimTime start, std::uint64_t tag) {
  std::uint32_t row = 0;
  if (free_starts_.empty()) {
    row = static_cast<std::uint32_t>(starts_.size());
    starts_.emplace_back();
  } else {
    row = free_starts_.back();
    free_starts_.pop_back();
  }
  starts_[row] = {pair, bytes.value(), tag};
  events.push(std::max(start.time_since_epoch().count(), now), kStart | row);
}

// Ports stay in the cache here, packets do not: fetches the packet that arrives with the next event.
inline void Core::prefetch_packet() const {
  const std::uint32_t target = events.ahead(0);
  if (target < kTimer && ports[target].flight.head != kNone)
    __builtin_prefetch(&packets_[ports[target].flight.head]);
}

void Core::run_until(Picoseconds limit, bool stop_at_delivery) {
  if (cancelled && cancelled()) return;
  const std::size_t before = delivered.size();
  constexpr std::uint64_t kBetweenLooks = 1U << 16U;  // events: some milliseconds
  EventQueue::Event event{};
  while (events.pop(limit, event)) {
    if (deadlock_check_at_ <= event.time) {
      now = deadlock_check_at_;
      check_deadlock();
    }
    if (wide_) {
      prefetch();
    } else {
      prefetch_packet();
    }
    now = last_event = event.time;
    ++counters.events;
    const std::uint32_t index = event.target & 0x3fffffffU;
    switch (event.target & 0xc0000000U) {
      case kPort:
        wake(index);
        break;
      case kTimer:
        expire(index);
        break;
      default: {
        const Start start = starts_[index];
        free_starts_.push_back(index);
        post(start.pair, start.bytes, start.tag);
      }
    }
    if (stop_at_delivery && delivered.size() > before) return;
    if (counters.events % kBetweenLooks == 0 && cancelled && cancelled()) return;
  }
  if (limit != kForever) now = std::max(now, limit);
  if (events.empty() && live_ > 0 && deadlocks.empty()) {  // nothing moves any more
    const auto cycle = find_cycle();
    if (!cycle.empty()) deadlocks.push_back({SimTime(Duration(now)), cycle});
  }
}

// In networks larger than the cache, fetches what the next events will touch while this one is handled: the
// port three events ahead, then the packet that arrives first on its link, then that packet's next hop.
void Core::prefetch() {
  std::uint32_t target = events.ahead(3);
  if (target < kTimer) {
    __builtin_prefetch(&ports[target]);
    __builtin_prefetch(reinterpret_cast<const char*>(&ports[target]) + 64);
  }
  target = events.ahead(2);
  if (target < kTimer && ports[target].flight.head != kNone)
    __builtin_prefetch(&packets_[ports[target].flight.head]);
  target = events.ahead(1);
  if (target < kTimer && ports[target].flight.head != kNone) {
    if (ports[target].flow_control == FlowControl::credit)
      __builtin_prefetch(&credits_[target * settings.classes + 1]);
    const std::uint32_t hop = packets_[ports[target].flight.head].hop;
    if (hop != kNone) paths_.prefetch(hop);
  }
  target = events.ahead(0);
  if (target < kTimer && ports[target].flight.head != kNone) {
    if (ports[target].flow_control == FlowControl::credit)
      credits_[target * settings.classes + 1].returning.prefetch();
    const std::uint32_t hop = packets_[ports[target].flight.head].hop;
    if (hop != kNone && paths_[hop].count == 1) {
      const PortIndex out = paths_[paths_[hop].next].port;
      __builtin_prefetch(&ports[out]);
      __builtin_prefetch(reinterpret_cast<const char*>(&ports[out]) + 64);
      if (ports[target].flow_control == FlowControl::credit) {
        __builtin_prefetch(&credits_[out * settings.classes + 1]);
      } else {
        __builtin_prefetch(&waiting_[out * settings.classes]);
      }
    }
  }
}

void Core::set_rate(PortIndex p, BytesPerSecond rate, Picoseconds time) {
  now = std::max(now, time);
  interrupt(p);
  recall();
  ports[p].down = rate.value() <= 0;
  if (!ports[p].down) {
    ports[p].cost = cost_of(rate);
    rate_[p] = rate.value();
    time_blocks(p);
  }
  for (PortIndex each = 0; each < ports.size(); ++each)
    if (each == p || ports[each].ahead) update(each);
}

std::string Core::leak() const {
  std::string text;
  const auto note = [&](std::string line) { text += std::move(line) + '\n'; };
  if (live_ != 0) note(fmt::format("{} packets are still somewhere", live_));
  for (PortIndex p = 0; p < ports.size(); ++p) {
    if (ports[p].waiting_bytes != 0)
      note(fmt::format("port {} still holds {} bytes", p, ports[p].waiting_bytes));
    for (std::uint32_t lane = 0; lane < settings.classes; ++lane) {
      const Ingress& share = ingress_[p * settings.classes + lane];
      if (share.used + share.headroom != 0)
        note(fmt::format("ingress {} still counts {} bytes", p, share.used));
      if (share.pausing) note(fmt::format("ingress {} still pauses its sender", p));
      if (ports[p].flow_control != FlowControl::credit || lane == 0) continue;
      const Credit& credit = credits_[p * settings.classes + lane];
      std::uint32_t free_blocks = credit.limit - credit.sent;
      for (const Returns::Row& row : credit.returning.rows()) free_blocks += row.blocks;
      if (free_blocks != credit_total_[p]) {
        note(fmt::format("lane {} of port {} has {} of {} blocks", lane, p, free_blocks, credit_total_[p]));
      }
    }
  }
  for (DeviceIndex d = 0; d < graph.devices; ++d) {
    if (devices_[d].shared_used != 0)
      note(fmt::format("device {} still counts {} bytes", d, devices_[d].shared_used));
    if (devices_[d].exact != 0)
      note(fmt::format("device {} still has {} waiting senders", d, devices_[d].exact));
  }
  return text;
}

bool Core::is_quiet() const {
  if (live_ != 0) return false;
  return std::all_of(injectors_.begin(), injectors_.end(), [](const Injector& injector) {
    return injector.paced.empty() && std::all_of(injector.ready.begin(), injector.ready.end(),
                                                 [](const List& list) { return list.head == kNone; });
  });
}

Picoseconds Core::quiet_since() const {
  Picoseconds since = last_event;
  for (PortIndex p = 0; p < ports.size(); ++p) {
    since = std::max(since, ports[p].free_at);
    if (ports[p].flow_control != FlowControl::credit) continue;
    for (std::uint32_t lane = 1; lane < settings.classes; ++lane) {
      since = std::max(since, credits_[p * settings.classes + lane].last_back);
    }
  }
  return since;
}

Picoseconds Core::rests_from() const {
  if (!events.empty() || spec.loss.probability > 0 || !is_quiet()) return kForever;
  Picoseconds since = quiet_since();
  for (PairIndex pair = 0; pair < pairs_.size(); ++pair) {
    const QueuePair& q = pairs_[pair];
    if (q.posted == 0) continue;
    if (q.state != SendState::idle || q.timer || q.unacknowledged != q.posted) return kForever;
    since = std::max(since, congestion_.recovers_at(pair));
  }
  return since;
}

void Core::rest() {
  for (PairIndex pair = 0; pair < pairs_.size(); ++pair) {
    QueuePair& q = pairs_[pair];
    if (q.posted == 0) continue;
    congestion_.renew(pair, q, 0);
    q.begin_anew();
    if (!selective_.empty()) selective_[pair] = {};
  }
  posted_pairs_ = 0;
  deadlock_check_at_ = kForever;
  for (Port& port : ports) port.turn = 0;
  std::fill(unmarked_.begin(), unmarked_.end(), 0U);
  std::fill(arbiter_.begin(), arbiter_.end(), 0);
  may_finish_early_ = settings.lossy || settings.recovery == Recovery::selective_repeat;
  begin_random();
  find_ports_ahead();
}

void Core::begin_random() {
  for (PortIndex p = 0; p < ports.size(); ++p) random_[p] = mix(mix(spec.seed) ^ p);
}

bool Core::ports_from(std::uint32_t first, std::uint32_t count, std::vector<PortIndex>& ports_used) const {
  bool one_path = true;
  std::vector<std::uint32_t> seen, open{first};
  while (!open.empty()) {
    const std::uint32_t hop = open.back();
    open.pop_back();
    if (std::find(seen.begin(), seen.end(), hop) != seen.end()) continue;
    seen.push_back(hop);
    ports_used.push_back(paths_[hop].port);
    one_path = one_path && paths_[hop].count <= 1;
    for (std::uint32_t n = 0; n < paths_[hop].count; ++n) open.push_back(paths_[hop].next + n);
  }
  return one_path && count == 1;
}

bool Core::ways(PairIndex pair, std::vector<PortIndex>& there, std::vector<PortIndex>& back) const {
  const QueuePair& q = pairs_[pair];
  const bool one = ports_from(q.first_hop, q.first_count, there);
  return ports_from(q.back_hop, q.back_count, back) && one;
}

std::size_t Core::bytes() const {
  return ports.capacity() * (sizeof(Port) + sizeof(PortRecord)) + packets_.capacity() * sizeof(Packet) +
         telemetry_.capacity() * sizeof(Telemetry) + pairs_.capacity() * sizeof(QueuePair) +
         messages_.capacity() * sizeof(Message) + paths_.bytes() +
         waiting_.capacity() * (sizeof(Waiting) + sizeof(Ingress) + sizeof(Credit));
}
}  // namespace topsim::network::packet
