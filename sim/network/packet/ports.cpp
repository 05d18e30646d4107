// Queues and links: what happens to a packet between the two queue pairs.
#include <algorithm>
#include <bit>

#include "sim/base/mix.hpp"
#include "sim/network/packet/hop.hpp"

namespace topsim::network::packet {
namespace {
std::uint32_t pop(List& list, const std::vector<Packet>& packets) {
  const std::uint32_t packet = list.head;
  list.head = packets[packet].next;
  return packet;
}
// Whether every packet takes the same time on both.
bool as_fast(const Port& a, const Port& b) {
  return a.cost == b.cost && a.gap == b.gap && a.discount == b.discount;
}
}  // namespace

std::uint32_t Core::new_packet(PacketKind kind, unsigned lane, std::uint32_t bytes) {
  ++live_;
  std::uint32_t packet = free_;
  if (packet != kNone) {
    free_ = packets_[packet].next;
  } else {
    packet = static_cast<std::uint32_t>(packets_.size());
    packets_.emplace_back();
    if (settings.congestion == CongestionControlKind::hpcc) telemetry_.emplace_back();
    if (settings.congestion == CongestionControlKind::timely) stamps_.emplace_back();
    if (settings.recovery == Recovery::selective_repeat || settings.path == PathChoice::flowlet) {
      echoes_.emplace_back();
    }
  }
  Packet& row = packets_[packet];
  row.time = now;
  row.in_port = kNone;
  row.bytes = static_cast<std::uint16_t>(bytes);
  row.kind = kind;
  row.lane = static_cast<std::uint8_t>(lane & 15U);
  row.marked = row.last = false;
  return packet;
}

void Core::free_packet(std::uint32_t packet) {
  --live_;
  packets_[packet].next = free_;
  free_ = packet;
}

Picoseconds Core::sync(PortIndex p) {
  Port& port = ports[p];
  if (port.ahead) return send_ahead(p);
  if (port.down) return kForever;
  if (port.syncing) return kForever;  // a call further up the stack goes on with it
  port.syncing = true;
  Picoseconds next = kForever;
  for (;;) {
    if (port.injector != kNone) {
      promote(port);
      if (may_finish_early_ && port.ready != 0) drop_finished(p);
    }
    const unsigned eligible =
        static_cast<unsigned>(port.occupied | port.ready) & ~static_cast<unsigned>(port.paused);
    if (eligible == 0) {
      if (port.injector == kNone || injectors_[port.injector].paced.empty()) break;
      const Picoseconds due = std::max(port.free_at, std::get<0>(injectors_[port.injector].paced.front()));
      next = due;
      if (due > now) break;
      port.free_at = due;
      continue;
    }
    next = port.free_at;
    if (next > now) break;
    unsigned lane = static_cast<unsigned>(std::countr_zero(eligible));
    if ((eligible & (eligible - 1)) == 0) {
      next = earliest(p, lane);
    } else {
      std::tie(next, lane) = arbitrate(p, eligible);
    }
    if (next > now) break;
    transmit(p, lane, next);
    next = kForever;
  }
  port.syncing = false;
  return next;
}

void Core::interrupt(PortIndex p) {
  arm(p, sync(p));
  Port& port = ports[p];
  if (port.free_at < now) port.free_at = now;
}

void Core::enqueue(PortIndex p, std::uint32_t packet) {
  Port& port = ports[p];
  if (port.ahead) {
    enqueue_ahead(p, packet);
    return;
  }
  if ((port.occupied | port.ready) != 0 || port.injector != kNone) sync(p);
  if (port.free_at < now) port.free_at = now;
  Packet& row = packets_[packet];
  const unsigned lane = row.lane;
  const std::uint32_t bytes = row.bytes;
  const bool alone =
      ((port.occupied | port.ready) == 0) && !port.down && (port.paused >> lane & 1U) == 0 && !port.syncing;
  if (alone && (port.flow_control != FlowControl::credit || lane == 0) &&
      std::max(port.free_at, row.time) <= now) {
    port.most_waiting = std::max(port.most_waiting, bytes);
    const bool armed = port.flight.head != kNone;
    put_on_link(p, packet, lane, now);
    if (!armed) arm(p, kForever);
    if (port.injector != kNone) update(p);
    return;
  }
  Waiting& waiting = waiting_[p * settings.classes + lane];
  waiting.bytes += bytes;
  port.waiting_bytes += bytes;
  port.occupied |= static_cast<ClassMask>(1U << lane);
  append(waiting.list, packet);
  port.most_waiting = std::max(port.most_waiting, port.waiting_bytes);
  if (port.free_at <= now) {
    update(p);
  } else if (port.flight.head == kNone || devices_[port.from].exact != 0) {
    arm(p, port.free_at);  // else the pending event (the arrival of what is on the link) comes in time
  }
}

Picoseconds Core::earliest(PortIndex p, unsigned lane) {
  const Port& port = ports[p];
  Picoseconds start = port.free_at;
  std::uint32_t bytes = 0;
  if ((port.occupied >> lane & 1U) != 0) {
    const Packet& head = packets_[waiting_[p * settings.classes + lane].list.head];
    start = std::max(start, head.time);
    bytes = head.bytes;
  } else {
    bytes = next_bytes(port, lane);
  }
  if (port.flow_control == FlowControl::credit && lane != 0) return credit_time(p, lane, bytes, start);
  return start;
}

// Among the lanes that could start first: lane 0 (control), then lanes of the high table, then by weight.
std::pair<Picoseconds, unsigned> Core::arbitrate(PortIndex p, unsigned eligible) {
  Picoseconds first = kForever;
  unsigned candidates = 0;
  for (unsigned lanes = eligible; lanes != 0; lanes &= lanes - 1) {
    const auto lane = static_cast<unsigned>(std::countr_zero(lanes));
    const Picoseconds start = earliest(p, lane);
    if (start < first) first = start, candidates = 0;
    if (start == first) candidates |= 1U << lane;
    if (lane == 0 && start == ports[p].free_at) return {start, 0};
  }
  if (first > now || (candidates & 1U) != 0) return {first, 0};
  Port& port = ports[p];
  const unsigned high = candidates & (static_cast<unsigned>(spec.lanes.high_priority) << 1U);
  // The entry of class 0, which has no weight, counts the bytes that the high table sent since the last low
  // packet. With a limit of 0 one packet goes before the low table has its turn.
  std::int64_t& spent = arbiter_[p * settings.classes];
  const std::int64_t limit = std::max(spec.lanes.high_limit * std::int64_t{4096}, std::int64_t{1});
  const bool allowed = spec.lanes.high_limit == 255 || spent < limit;
  if (high != 0 && (allowed || high == candidates)) {
    candidates = high;
  } else {
    candidates &= ~high;
    spent = 0;
  }
  // Weighted round robin: the current lane while its weight lasts, then the next one that has a packet.
  unsigned lane = port.turn;
  std::int64_t* left = &arbiter_[p * settings.classes];
  if ((candidates >> lane & 1U) == 0 || left[lane] <= 0) {
    const unsigned above = candidates & ~((2U << lane) - 1);
    lane = static_cast<unsigned>(std::countr_zero(above != 0 ? above : candidates));
    left[lane] = settings.weight[lane];
  }
  return {first, lane};
}

void Core::transmit(PortIndex p, unsigned lane, Picoseconds start) {
  Port& port = ports[p];
  if ((port.occupied >> lane & 1U) != 0) {
    Waiting& waiting = waiting_[p * settings.classes + lane];
    const std::uint32_t packet = pop(waiting.list, packets_);
    waiting.bytes -= packets_[packet].bytes;
    port.waiting_bytes -= packets_[packet].bytes;
    if (waiting.list.head == kNone) port.occupied &= static_cast<ClassMask>(~(1U << lane));
    put_on_link(p, packet, lane, start);
  } else {
    const std::uint32_t packet = inject(p, lane, start);
    const PairIndex pair = packets_[packet].pair;
    put_on_link(p, packet, lane, start);
    put_back(pair, port.free_at);
  }
}

void Core::put_on_link(PortIndex p, std::uint32_t packet, unsigned lane, Picoseconds start) {
  Port& port = ports[p];
  Packet& row = packets_[packet];
  const std::uint32_t bytes = row.bytes;
  const PortIndex in = row.in_port;
  const Picoseconds duration = occupy(port, row, lane, start);
  if (lane != 0) {
    if (port.flow_control == FlowControl::credit) {
      credits_[p * settings.classes + lane].sent += blocks_of(bytes);
    }
    if (settings.classes > 2) {
      arbiter_[p * settings.classes + lane] -= bytes;
      if ((spec.lanes.high_priority >> (lane - 1) & 1U) != 0) {
        arbiter_[p * settings.classes] += bytes;
      }
    }
  }
  bool vanished = false;
  if (row.kind == PacketKind::data) {
    if (port.mark_from != kMarksNever) mark(port, p, row, lane, start);
    if (settings.congestion == CongestionControlKind::hpcc) stamp(packet, p, start);
    if (port.lossy && draw(p) < spec.loss.probability) vanished = true;
  }
  if (vanished) {
    ++records[p].drops;
    ++counters.drops;
    free_packet(packet);
    if (port.flow_control == FlowControl::credit) give_back(p, lane, bytes, port.free_at + port.latency);
  } else {
    fly(port, packet, start, duration);
  }
  if (in != kNone) release(in, lane, bytes, start);
}

double Core::draw(PortIndex p) {
  ++counters.draws;
  const std::uint64_t drawn = mix(random_[p]);
  random_[p] += kGoldenGamma;
  return static_cast<double>(drawn >> 11U) * 0x1p-53;
}

// ECN marks by the RED curve on what is left in the queue; FECN on a lane above its threshold.
void Core::mark(Port& port, PortIndex p, Packet& packet, unsigned lane, Picoseconds start) {
  const std::uint32_t waiting = waiting_[p * settings.classes + lane].bytes;
  if (waiting <= port.mark_from) return;
  if (settings.congestion == CongestionControlKind::infiniband) {
    // Without credits for another packet the port is a victim of congestion further on.
    Credit& credit = credits_[p * settings.classes + lane];
    if (port.flow_control == FlowControl::credit && !has_credits(credit, most_blocks_, start)) {
      settle(port.to);
      if (!has_credits(credit, most_blocks_, start)) return;
    }
    if (++unmarked_[p] <= static_cast<std::uint32_t>(spec.congestion_control.infiniband.marking_rate)) return;
    unmarked_[p] = 0;
  } else if (waiting <= mark_to_[p]) {
    const double share =
        static_cast<double>(waiting - port.mark_from) / static_cast<double>(mark_to_[p] - port.mark_from);
    if (draw(p) >= spec.ecn.pmax * share) return;
  }
  packet.marked = true;
  ++counters.marks;
}

void Core::stamp(std::uint32_t packet, PortIndex p, Picoseconds start) {
  Telemetry& row = telemetry_[packet];
  if (packets_[packet].in_port == kNone || row.hops == Telemetry::kMost)
    return;  // only switches add telemetry
  row.entry[row.hops++] = {start, ports[p].wire_bytes, ports[p].waiting_bytes, p, rate_[p]};
}

[[gnu::always_inline]] inline void Core::forward(std::uint32_t packet, PortIndex p) {
  const Port& in = ports[p];
  if (in.flow_control != FlowControl::credit && !admit(packet, p)) {
    ++records[p].drops;
    ++counters.drops;
    if (packets_[packet].kind == PacketKind::data && !settings.lossy) {
      start_timer(packets_[packet].pair, now + spec.loss.timeout.count());
    }
    free_packet(packet);
    return;
  }
  const Hop& at = paths_[packets_[packet].hop];
  const std::uint32_t hop = at.count == 1 ? at.next : choose(at, packet);
  Packet& row = packets_[packet];
  row.in_port = p;
  row.hop = hop;
  const PortIndex out = paths_[hop].port;
  // Cut-through: the last byte arrives a packet's time later, and a faster port must not overtake it.
  row.time = now;
  if (in.cut_through && !as_fast(in, ports[out]))
    row.time = std::max(now, now + time_on(in, row) - time_on(ports[out], row));
  const unsigned lane = row.lane;
  if (ports[out].down && pairs_[row.pair].moved) {
    start_timer(row.pair, now + spec.loss.timeout.count());
    drop(packet, out, now);
    return;
  }
  if (ports[out].ahead) return enqueue_ahead(out, packet);
  enqueue(out, packet);
  if (in.flow_control == FlowControl::pfc && lane != 0) pause_if_full(p, lane);
}

[[gnu::always_inline]] inline void Core::arrive(std::uint32_t packet, PortIndex p) {
  const Packet& row = packets_[packet];
  if (row.kind >= PacketKind::pause) {
    const auto lane = row.pair;
    const bool stop = row.kind == PacketKind::pause;
    free_packet(packet);
    hear_pause(ports[p].reverse, lane, stop);
  } else if (paths_[row.hop].count == 0) {
    receive(packet, p);
  } else {
    forward(packet, p);
  }
}

void Core::wake(PortIndex p) {
  Port& port = ports[p];
  if (port.wake != now) return;  // another event for this port came first
  port.wake = kForever;
  while (port.flight.head != kNone && packets_[port.flight.head].time <= now) {
    arrive(pop(port.flight, packets_), p);
  }
  if ((port.occupied | port.ready) == 0 && port.injector == kNone) {
    arm(p, kForever);
  } else {
    update(p);
  }
}

std::uint32_t Core::choose(const Hop& hop, std::uint32_t packet) {
  // What is hashed: the queue pair; with flowlets also the flowlet; where every packet has its own path also
  // the packet's number.
  const Packet& row = packets_[packet];
  std::uint64_t salt = pairs_[row.pair].hash;
  if (settings.path == PathChoice::destination) {
    const QueuePair& pair = pairs_[row.pair];
    salt = mix(row.kind == PacketKind::data ? pair.to : pair.from);
  } else if (settings.path == PathChoice::flowlet) {
    salt ^= mix(echoes_[packet]);
  } else if (settings.path != PathChoice::flow_hash) {
    salt ^= mix(std::uint64_t{row.sequence} << 3U | static_cast<std::uint64_t>(row.kind));
  }
  const std::uint64_t place = std::uint64_t{paths_[hop.next].port} << 32U;  // each device hashes differently
  const auto offset = static_cast<std::uint32_t>(mix(salt ^ place) % hop.count);
  if (settings.path != PathChoice::adaptive) return hop.next + offset;
  std::uint32_t best = hop.next + offset;
  Picoseconds least = kForever;  // grade
  for (std::uint32_t i = 0; i < hop.count; ++i) {
    const std::uint32_t candidate = hop.next + (offset + i) % hop.count;
    const PortIndex p = paths_[candidate].port;
    if (ports[p].occupied != 0 && !ports[p].ahead) update(p);
    const Port& port = ports[p];
    if (port.down) continue;
    const Picoseconds backlog =
        std::max<Picoseconds>(port.free_at - now, 0) + time_of(port.waiting_bytes, port.cost);
    if (backlog / grade_[p] < least) least = backlog / grade_[p], best = candidate;
  }
  return best;
}
}  // namespace topsim::network::packet
