// The sending half of queue pairs: segmentation, windows and pacing, repetition of lost packets.
#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "sim/base/error.hpp"
#include "sim/network/packet/hop.hpp"

namespace topsim::network::packet {
namespace {
using Paced = std::tuple<Picoseconds, std::uint32_t, std::uint32_t>;
struct Later {
  bool operator()(const Paced& a, const Paced& b) const { return a > b; }
};
}  // namespace

void Core::post(PairIndex pair, std::int64_t bytes, std::uint64_t tag) {
  QueuePair& q = pairs_[pair];
  if (q.rank == kNone) {
    q.rank = posted_pairs_++;
    no_longer_ahead(q.port);
  }
  const std::int64_t mtu = settings.mtu;
  const std::int64_t packets = std::max<std::int64_t>((bytes + mtu - 1) / mtu, 1);
  if (packets >= std::int64_t{kNone} - q.posted)
    throw ConfigError(fmt::format("a queue pair has {} packets to send: the packet model numbers {}",
                                  q.posted + packets, kNone),
                      "smaller messages, a larger network.packet.mtu, or --network flow");
  const auto count = static_cast<std::uint32_t>(packets);
  std::uint32_t row = free_message_;
  if (row == kNone) {
    row = static_cast<std::uint32_t>(messages_.size());
    messages_.emplace_back();
  } else {
    free_message_ = messages_[row].next;
  }
  messages_[row] = {tag, q.posted, count, static_cast<std::uint32_t>(bytes - (count - 1) * mtu), 0, kNone};
  if (q.newest_message != kNone) messages_[q.newest_message].next = row;
  q.newest_message = row;
  if (q.oldest_message == kNone) q.oldest_message = row;
  if (q.send_message == kNone) q.send_message = row;
  if (q.receive_message == kNone) q.receive_message = row;
  q.posted += count;
  activate(pair);
}

// The number of the packet to send next: a repetition before a new packet. kNone: nothing to send.
std::uint32_t Core::next_number(const QueuePair& q, PairIndex pair) const {
  if (settings.recovery == Recovery::selective_repeat) {
    const Selective& s = selective_[pair];
    const std::uint32_t window = settings.reorder_window;
    const std::uint32_t end = std::max(s.lost_below, s.highest > window ? s.highest - window : 0);
    for (std::uint32_t n = std::max(s.repeat, q.unacknowledged); n < end; ++n) {
      if (!s.acknowledged.contains(n)) return n;
    }
  }
  return q.next < q.posted ? q.next : kNone;
}

bool Core::can_send(const QueuePair& q, PairIndex pair) const {
  if (q.window == 0 || q.next - q.unacknowledged < q.window)
    return q.next < q.posted || next_number(q, pair) != kNone;
  if (settings.recovery == Recovery::go_back_n) return false;
  const std::uint32_t number = next_number(q, pair);  // repetitions are in the window already
  return number != kNone && number < q.next;
}

// The pair may be able to send now: wakes its port.
void Core::activate(PairIndex pair) {
  QueuePair& q = pairs_[pair];
  if (q.state != SendState::idle || !can_send(q, pair)) return;
  interrupt(q.port);
  put_back(pair, ports[q.port].free_at);
  update(q.port);
}

// Puts a pair that may have more to send where it waits for its turn or its send time.
void Core::put_back(PairIndex pair, Picoseconds port_free) {
  QueuePair& q = pairs_[pair];
  q.state = SendState::idle;
  if (!can_send(q, pair)) return;
  Port& port = ports[q.port];
  Injector& injector = injectors_[port.injector];
  if (q.next_send > port_free) {
    q.state = SendState::paced;
    // If the rate of a slow sender rises meanwhile, it continues at the new rate, not at that of its last
    // packet.
    Picoseconds due = q.next_send;
    if (congestion_.active()) due = std::min(due, std::max(congestion_.next_rise(pair, q), port_free + 1));
    injector.paced.emplace_back(due, q.rank, pair);
    std::push_heap(injector.paced.begin(), injector.paced.end(), Later{});
    return;
  }
  q.state = SendState::ready;
  q.ready_next = kNone;
  List& ready = injector.ready[q.lane];
  if (ready.head == kNone) {
    ready.head = pair;
  } else {
    pairs_[ready.tail].ready_next = pair;
  }
  ready.tail = pair;
  port.ready |= static_cast<ClassMask>(1U << q.lane);
}

// Pairs whose send time has come now wait for their turn.
void Core::promote(Port& port) {
  auto& paced = injectors_[port.injector].paced;
  while (!paced.empty() && std::get<0>(paced.front()) <= port.free_at) {
    const auto [due, rank, pair] = paced.front();
    std::pop_heap(paced.begin(), paced.end(), Later{});
    paced.pop_back();
    QueuePair& q = pairs_[pair];
    if (due < q.next_send) {
      congestion_.review(pair, q, due);
      q.next_send = q.last_send + time_of(q.last_wire, q.pace);
    }
    put_back(pair, std::max(port.free_at, due));
  }
}

std::uint32_t Core::next_bytes(const Port& port, unsigned lane) const {
  const PairIndex pair = injectors_[port.injector].ready[lane].head;
  const QueuePair& q = pairs_[pair];
  const std::uint32_t number = next_number(q, pair);
  bool last = false;
  return payload_of(q, number, last) + settings.header;
}

// The message that contains a packet number, usually the one being sent; kNone: not posted yet.
std::uint32_t Core::message_of(const QueuePair& q, std::uint32_t number) const {
  std::uint32_t row = q.send_message;
  if (row == kNone || number < messages_[row].first) row = q.oldest_message;
  while (row != kNone && number - messages_[row].first >= messages_[row].packets) row = messages_[row].next;
  return row;
}

std::uint32_t Core::payload_of(const QueuePair& q, std::uint32_t number, bool& last) const {
  const Message& message = messages_[message_of(q, number)];
  last = number - message.first == message.packets - 1;
  return last ? message.last_payload : settings.mtu;
}

// A pair may have nothing left to send after waiting (what it was to repeat has been acknowledged).
void Core::drop_finished(PortIndex p) {
  Port& port = ports[p];
  for (unsigned lanes = port.ready; lanes != 0; lanes &= lanes - 1) {
    const auto lane = static_cast<unsigned>(std::countr_zero(lanes));
    List& ready = injectors_[port.injector].ready[lane];
    while (ready.head != kNone && next_number(pairs_[ready.head], ready.head) == kNone) {
      pairs_[ready.head].state = SendState::idle;
      ready.head = pairs_[ready.head].ready_next;
    }
    if (ready.head != kNone) continue;
    port.ready &= static_cast<ClassMask>(~(1U << lane));
    if ((port.occupied >> lane & 1U) == 0) wait_no_longer(p, lane, port.free_at);
  }
}

std::uint32_t Core::inject(PortIndex p, unsigned lane, Picoseconds start) {
  Port& port = ports[p];
  List& ready = injectors_[port.injector].ready[lane];
  const PairIndex pair = ready.head;
  QueuePair& q = pairs_[pair];
  ready.head = q.ready_next;
  if (ready.head == kNone) port.ready &= static_cast<ClassMask>(~(1U << lane));

  const std::uint32_t number = next_number(q, pair);
  bool last = false;
  const std::uint32_t bytes = payload_of(q, number, last) + settings.header;
  if (number <= asks(q)) q.progress_at = start;
  if (number == q.next) {
    ++q.next;
    if (last) q.send_message = messages_[message_of(q, number)].next;
  } else {
    selective_[pair].repeat = number + 1;
  }
  if (number < q.sent) {
    ++counters.repeats;
  } else {
    q.sent = number + 1;
  }

  if (settings.path == PathChoice::flowlet && start - q.last_send > spec.flowlet_gap.count()) ++q.flowlet;
  const std::uint32_t packet = new_packet(PacketKind::data, q.lane, bytes);
  Packet& row = packets_[packet];
  row.time = start;
  row.hop = q.first_hop;
  row.pair = pair;
  row.sequence = number;
  row.last = last;
  if (!echoes_.empty()) echoes_[packet] = q.flowlet;
  if (settings.congestion == CongestionControlKind::hpcc) telemetry_[packet].hops = 0;
  if (settings.congestion == CongestionControlKind::timely) stamps_[packet] = start;
  ++counters.data_packets;
  const std::uint32_t wire = bytes + static_cast<std::uint32_t>(settings.framing.gap.value());
  if (congestion_.active()) congestion_.before_send(pair, q, wire, start);
  if (q.pace != 0) q.next_send = start + time_of(wire, q.pace);
  q.last_send = start;
  q.last_wire = wire;
  if (settings.lossy && !q.timer) start_timer(pair, start + timeout(q));
  return packet;
}

void Core::hear_ack(std::uint32_t packet) {
  const Packet row = packets_[packet];
  const PairIndex pair = row.pair;
  QueuePair& q = pairs_[pair];
  const bool plain = row.kind == PacketKind::ack && !congestion_.active() && !may_finish_early_;
  if (!plain) interrupt(q.port);  // earlier departures were at the old rate and window
  if (row.kind == PacketKind::cnp) {
    ++counters.notifications;
    congestion_.notified(pair, q, now);
    activate(pair);
    return;
  }
  if (row.sequence > q.unacknowledged) {
    q.unacknowledged = row.sequence;
    q.progress_at = now;
    if (q.next < q.unacknowledged) {  // acknowledged while it was about to be repeated
      q.next = q.unacknowledged;
      q.send_message = message_of(q, q.next);
    }
  }
  if (settings.recovery == Recovery::selective_repeat) {
    Selective& s = selective_[pair];
    s.acknowledged.advance(q.unacknowledged);
    const std::uint32_t echo = echoes_[packet];
    if (echo >= q.unacknowledged) s.acknowledged.insert(echo);
    s.highest = std::max(s.highest, echo + 1);
  } else if (row.kind == PacketKind::nack && row.sequence >= q.unacknowledged) {
    q.next = row.sequence;
    q.send_message = message_of(q, q.next);
  }
  if (congestion_.active() && row.kind == PacketKind::ack) {
    Acknowledgement ack{row.sequence, row.marked, 0, nullptr};
    if (settings.congestion == CongestionControlKind::timely) ack.sent = stamps_[packet];
    if (settings.congestion == CongestionControlKind::hpcc) ack.telemetry = &telemetry_[packet];
    congestion_.acknowledged(pair, q, ack, now);
  }
  while (q.oldest_message != kNone) {
    Message& message = messages_[q.oldest_message];
    if (message.first + message.packets > q.unacknowledged) break;
    acknowledged.push_back({message.tag, SimTime(Duration(now))});
    const std::uint32_t done = q.oldest_message;
    q.oldest_message = message.next;
    if (q.send_message == done) q.send_message = message.next;
    if (q.newest_message == done) q.newest_message = kNone;
    message.next = free_message_;
    free_message_ = done;
  }
  activate(pair);
}

Picoseconds Core::timeout(const QueuePair& q) const {
  return (q.next - q.unacknowledged < 3 ? spec.loss.timeout_low : spec.loss.timeout).count();
}

void Core::start_timer(PairIndex pair, Picoseconds at) {
  if (pairs_[pair].timer) return;
  pairs_[pair].timer = true;
  may_finish_early_ = true;
  events.push(std::max(at, now), kTimer | pair);
}

// The packet whose arrival is acknowledged next: the first one, or with fewer ACKs the one that completes
// their number or its message.
std::uint32_t Core::asks(const QueuePair& q) const {
  if (settings.ack_every == 1) return q.unacknowledged;
  const Message& oldest = messages_[q.oldest_message];
  const std::uint32_t last = oldest.first + oldest.packets - 1;
  if (settings.ack_every == 0) return last;
  return std::min(q.unacknowledged + settings.ack_every - 1, last);
}

void Core::count_as_lost(PairIndex pair, bool all) {
  QueuePair& q = pairs_[pair];
  if (settings.recovery == Recovery::selective_repeat) {
    Selective& s = selective_[pair];
    s.repeat = q.unacknowledged;
    s.lost_below = all ? q.next : std::max(s.highest, q.unacknowledged + 1);
  } else {
    q.next = q.unacknowledged;
    q.send_message = q.oldest_message;
  }
}

// The timer runs from the sending of the packet that asks for the next acknowledgement, and anew from every
// acknowledgement of the first one that is missing (RFC 6298 5.1 to 5.3). Those of later ones do not count:
// they come for as long as there is more to send.
void Core::expire(PairIndex pair) {
  QueuePair& q = pairs_[pair];
  q.timer = false;
  if (q.unacknowledged == q.sent) return;
  interrupt(q.port);
  const Picoseconds due = (q.next > asks(q) ? q.progress_at : now) + timeout(q);
  if (due > now) {
    start_timer(pair, due);
    return;
  }
  ++counters.timeouts;
  q.progress_at = now;
  count_as_lost(pair, q.next == q.posted);
  start_timer(pair, now + spec.loss.timeout.count());
  activate(pair);
}
}  // namespace topsim::network::packet
