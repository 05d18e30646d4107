// What every hop does, inline: a packet takes a port and crosses its link, credits come and go, the next
// event is set. For ports that send ahead (ahead.cpp) there is nothing else.
#pragma once

#include <algorithm>

#include "sim/network/packet/core.hpp"

namespace topsim::network::packet {

// Of a port that sends ahead: one lane beside the class of control.
inline constexpr unsigned kOnlyLane = 1;
inline constexpr std::uint32_t kClassesAhead = 2;

inline void Core::append(List& list, std::uint32_t packet) {
  packets_[packet].next = kNone;
  if (list.head == kNone) {
    list.head = packet;
  } else {
    packets_[list.tail].next = packet;
  }
  list.tail = packet;
}

inline Picoseconds Core::time_on(const Port& port, const Packet& packet) const {
  constexpr std::uint64_t kHalf = 1U << (kPointBits - 1);  // to the nearest picosecond
  std::uint64_t bytes = std::uint64_t{packet.bytes} + port.gap;
  if (packet.kind == PacketKind::data) bytes -= port.discount;
  return static_cast<Picoseconds>((bytes * port.cost + kHalf) >> kPointBits);
}

// Blocks freed at the far end of `p` at `time` reach its sender after the way back. Where the sender cannot
// need them before, whatever it sends, it gets them at once: that makes no difference and needs no record.
inline void Core::give_back(PortIndex p, unsigned lane, std::uint32_t bytes, Picoseconds time) {
  Credit& credit = credits_[p * settings.classes + lane];
  const Picoseconds due = time + credit.way_back;
  const std::uint32_t blocks = blocks_of(bytes);
  credit.last_back = std::max(credit.last_back, due);
  const std::int64_t spare = std::int64_t{credit.limit - credit.sent} - most_blocks_;
  if (!credit.starved && spare * ports[p].block_time >= due - ports[p].free_at) {
    credit.limit += blocks;
  } else {
    return_later(p, lane, {due, blocks});
  }
}

// The wire carries both counters modulo 4096; the difference is what decides, so full counters do the same.
// What has come back is looked at only where it is needed.
inline bool Core::has_credits(Credit& credit, std::uint32_t blocks, Picoseconds by) {
  while (credit.limit - credit.sent < blocks) {
    if (credit.returning.empty() || credit.returning.front().time > by) return false;
    take_first(credit);
  }
  return true;
}

inline void Core::take_first(Credit& credit) {
  credit.limit += credit.returning.front().blocks;
  credit.returning.pop();
}

// The port sends the packet from `start` on; for how long.
inline Picoseconds Core::occupy(Port& port, const Packet& packet, unsigned lane, Picoseconds start) {
  const Picoseconds duration = time_on(port, packet);
  port.free_at = start + duration;
  port.turn = static_cast<std::uint8_t>(lane);
  port.busy += duration;
  port.wire_bytes += packet.bytes + std::uint64_t{port.gap};
  if (packet.kind == PacketKind::data) port.payload_bytes += packet.bytes - settings.header;
  ++counters.hops;
  return duration;
}

// On the link: it arrives with its first byte where it goes on, with its last where it ends.
inline void Core::fly(Port& port, std::uint32_t packet, Picoseconds start, Picoseconds duration) {
  Packet& row = packets_[packet];
  const bool whole = !port.cut_through || row.hop == kNone || paths_[row.hop].count == 0;
  row.time = start + port.latency + (whole ? duration : 0);
  append(port.flight, packet);
}

inline void Core::arm(PortIndex p, Picoseconds next_start) {
  Port& port = ports[p];
  Picoseconds want = kForever;
  if (port.flight.head != kNone) want = packets_[port.flight.head].time;
  if (want == kForever || port.ahead || devices_[port.from].exact != 0) want = std::min(want, next_start);
  if (want < port.wake) {
    port.wake = want;
    events.push(want, kPort | p);
  }
}

// The longest queue so far: `bytes` and what has until `start` to leave and is still there. It is divided
// only where it is longer: floor(a / b) > c exactly where a >= (c + 1) b.
inline void Core::note_waiting(Port& port, std::uint32_t bytes, Picoseconds start) const {
  const std::uint64_t before = start > now ? static_cast<std::uint64_t>(start - now) << kPointBits : 0;
  if (bytes <= port.most_waiting && before < (port.most_waiting - bytes + std::uint64_t{1}) * port.cost)
    return;
  const auto waiting = static_cast<std::uint32_t>(before / std::max<std::uint64_t>(port.cost, 1)) + bytes;
  port.most_waiting = std::max(port.most_waiting, waiting);
}

// put_on_link() where nothing is marked, lost or weighed against other lanes.
[[gnu::always_inline]] inline void Core::leave_ahead(PortIndex p, Credit& credit, std::uint32_t packet,
                                                     Picoseconds start) {
  Port& port = ports[p];
  const Packet& row = packets_[packet];
  const std::uint32_t bytes = row.bytes;
  const PortIndex in = row.in_port;
  const Picoseconds duration = occupy(port, row, kOnlyLane, start);
  credit.sent += blocks_of(bytes);
  fly(port, packet, start, duration);
  if (in != kNone) give_back(in, kOnlyLane, bytes, start);
}

inline void Core::enqueue_ahead(PortIndex p, std::uint32_t packet) {
  Port& port = ports[p];
  const Packet& row = packets_[packet];
  const Picoseconds start = std::max(port.free_at, row.time);
  Credit& credit = credits_[p * kClassesAhead + kOnlyLane];
  if (port.occupied != 0 || port.down || !has_credits(credit, blocks_of(row.bytes), start)) {
    wait_ahead(p, packet, start);
    return;
  }
  note_waiting(port, row.bytes, start);
  const bool armed = port.flight.head != kNone;
  leave_ahead(p, credit, packet, start);
  if (!armed) arm(p, kForever);
}
}  // namespace topsim::network::packet
