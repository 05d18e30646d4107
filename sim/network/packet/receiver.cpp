// The receiving half of queue pairs: order, acknowledgements, completion of messages.
#include <algorithm>

#include "sim/network/packet/hop.hpp"

namespace topsim::network::packet {

void NumberSet::insert(std::uint32_t number) {
  const std::size_t needed = (number - (base_ & ~63U)) / 64 + 1;
  if (needed > words_.size()) {  // a ring: unroll it into a longer one
    std::vector<std::uint64_t> longer(std::max(needed, 2 * words_.size()), 0);
    for (std::size_t i = 0; i < words_.size(); ++i) {
      const std::size_t word = base_ / 64 + i;
      longer[word % longer.size()] = words_[word % words_.size()];
    }
    words_ = std::move(longer);
  }
  words_[(number / 64) % words_.size()] |= std::uint64_t{1} << (number % 64);
}

bool NumberSet::contains(std::uint32_t number) const {
  if (number < base_ || words_.empty() || (number - (base_ & ~63U)) / 64 >= words_.size()) return false;
  return (words_[(number / 64) % words_.size()] >> (number % 64) & 1U) != 0;
}

void NumberSet::advance(std::uint32_t base) {
  if (base <= base_) return;
  if (!words_.empty()) {
    const std::uint32_t steps =
        std::min<std::uint32_t>(base / 64 - base_ / 64, static_cast<std::uint32_t>(words_.size()));
    for (std::uint32_t i = 0; i < steps; ++i) words_[(base_ / 64 + i) % words_.size()] = 0;
  }
  base_ = base;
}

void Core::receive(std::uint32_t packet, PortIndex p) {
  const Packet& row = packets_[packet];
  if (row.lane != 0 && ports[p].flow_control == FlowControl::credit) give_back(p, row.lane, row.bytes, now);
  if (row.kind == PacketKind::data) {
    take_data(packet);
  } else {
    hear_ack(packet);
  }
  free_packet(packet);
}

void Core::take_data(std::uint32_t packet) {
  const Packet row = packets_[packet];
  QueuePair& q = pairs_[row.pair];
  if (row.marked && settings.notifies && now - q.notified_at >= settings.notification_interval) {
    q.notified_at = now;
    answer(row.pair, row, packet, PacketKind::cnp);
  }
  bool fresh = true, filled = false;  // filled: a gap has closed; the sender waits for that acknowledgement
  if (row.sequence == q.expected) {
    count(q, row.sequence);
    ++q.expected;
    if (settings.recovery == Recovery::selective_repeat) {
      NumberSet& received = selective_[row.pair].received;
      while (received.contains(q.expected)) ++q.expected, filled = true;
      received.advance(q.expected);
    }
  } else if (row.sequence < q.expected) {
    fresh = false;  // a needless repetition; the sender must learn so
  } else if (settings.recovery == Recovery::selective_repeat) {
    NumberSet& received = selective_[row.pair].received;
    if (!received.contains(row.sequence)) {
      received.insert(row.sequence);
      count(q, row.sequence);
    }
    answer(row.pair, row, packet, PacketKind::ack);
    return;
  } else {
    if (q.refused != q.expected || now - q.refused_at >= spec.loss.nack_interval.count()) {
      q.refused = q.expected;
      q.refused_at = now;
      answer(row.pair, row, packet, PacketKind::nack);
    }
    return;
  }
  ++q.since_ack;
  const bool due = settings.ack_every > 0 && q.since_ack >= settings.ack_every;
  if (due || row.last || !fresh || filled || (row.marked && settings.echoes_marks)) {
    q.since_ack = 0;
    answer(row.pair, row, packet, PacketKind::ack);
  }
}

// Counts one more packet of its message; the last one completes it.
void Core::count(QueuePair& q, std::uint32_t number) {
  std::uint32_t row = q.receive_message;
  while (number - messages_[row].first >= messages_[row].packets) row = messages_[row].next;
  Message& message = messages_[row];
  if (++message.received < message.packets) return;
  delivered.push_back({message.tag, SimTime(Duration(now))});
  // The row itself is freed when the sender has the acknowledgement; later messages may have completed
  // before.
  while (q.receive_message != kNone &&
         messages_[q.receive_message].received == messages_[q.receive_message].packets) {
    q.receive_message = messages_[q.receive_message].next;
  }
}

void Core::answer(PairIndex pair, const Packet& cause, std::uint32_t cause_index, PacketKind kind) {
  const QueuePair& q = pairs_[pair];
  const std::uint32_t packet =
      new_packet(kind, q.ack_lane, kind == PacketKind::cnp ? settings.cnp : settings.ack);
  Packet& row = packets_[packet];
  row.hop = q.back_hop;
  row.pair = pair;
  row.sequence = q.expected;
  row.marked = cause.marked;
  if (!echoes_.empty()) echoes_[packet] = cause.sequence;
  if (settings.congestion == CongestionControlKind::hpcc) telemetry_[packet] = telemetry_[cause_index];
  if (settings.congestion == CongestionControlKind::timely) stamps_[packet] = stamps_[cause_index];
  ++counters.acks;
  enqueue(q.back_port, packet);
}
}  // namespace topsim::network::packet
