// Queue pairs that change their path: the fabric has found another one around a part that failed, or the part
// is back. As in a NIC, the pair stays, packet numbers continue, and what was on a stopped path is sent again
// (go-back-N from the oldest number not acknowledged, for any kind of recovery).
#include <algorithm>

#include "sim/base/error.hpp"
#include "sim/base/mix.hpp"
#include "sim/network/packet/hop.hpp"

namespace topsim::network::packet {

// The ports and hops of a connection, both directions.
void Core::find_way(QueuePair& q, const Connection& connection) {
  const std::uint64_t hash = mix(
      mix(spec.seed) ^ mix((std::uint64_t{connection.from} << 32U) | connection.to) ^ mix(connection.number));
  const Way there = way(connection, true, hash), back = way(connection, false, hash);
  if (there.count == 0 || back.count == 0) {
    throw ConfigError("device " + std::to_string(connection.from) + " cannot reach device " +
                      std::to_string(connection.to));
  }
  q.from = connection.from, q.to = connection.to;
  q.first_hop = there.first + static_cast<std::uint32_t>(hash % there.count);
  q.first_count = there.count, q.back_count = back.count;
  q.back_hop = back.first + static_cast<std::uint32_t>(hash % back.count);
  q.port = paths_[q.first_hop].port;
  q.back_port = paths_[q.back_hop].port;
  q.hash = static_cast<std::uint32_t>(hash);
  q.path_latency = 0;
  for (std::uint32_t hop = q.first_hop;; hop = paths_[hop].next) {
    q.path_latency += ports[paths_[hop].port].latency;
    if (paths_[hop].count == 0) break;
  }
  Port& port = ports[q.port];
  if (port.injector != kNone) return;
  port.injector = static_cast<std::uint32_t>(injectors_.size());
  injectors_.emplace_back();
  injectors_.back().ready.resize(settings.classes);
}

void Core::move(PairIndex pair, const Connection& connection, Picoseconds time) {
  now = std::max(now, time);
  QueuePair& q = pairs_[pair];
  interrupt(q.port);
  recall();
  std::vector<PortIndex> before;
  ports_from(q.first_hop, q.first_count, before);
  ports_from(q.back_hop, q.back_count, before);
  const bool stopped = std::any_of(before.begin(), before.end(), [&](PortIndex p) { return ports[p].down; });
  take_out(pair);
  find_way(q, connection);
  if (q.rank != kNone) no_longer_ahead(q.port);
  q.moved = true;
  if (stopped) {
    for (const PortIndex p : before)
      if (ports[p].down) drop_waiting(p, pair);
    count_as_lost(pair, true);
  }
  may_finish_early_ = true;
  for (PortIndex p = 0; p < ports.size(); ++p)
    if (ports[p].ahead) update(p);
  activate(pair);
}

// The pair no longer waits for its turn or its send time.
void Core::take_out(PairIndex pair) {
  QueuePair& q = pairs_[pair];
  Port& port = ports[q.port];
  Injector& injector = injectors_[port.injector];
  if (q.state == SendState::ready) {
    List& ready = injector.ready[q.lane];
    std::uint32_t before = kNone;
    for (std::uint32_t at = ready.head; at != pair; at = pairs_[at].ready_next) before = at;
    (before == kNone ? ready.head : pairs_[before].ready_next) = q.ready_next;
    if (ready.tail == pair) ready.tail = before;
    if (ready.head == kNone) {
      port.ready &= static_cast<ClassMask>(~(1U << q.lane));
      if ((port.occupied >> q.lane & 1U) == 0) wait_no_longer(q.port, q.lane, now);
    }
  } else if (q.state == SendState::paced) {
    std::erase_if(injector.paced, [&](const auto& row) { return std::get<2>(row) == pair; });
    std::make_heap(injector.paced.begin(), injector.paced.end(), std::greater<>());
  }
  q.state = SendState::idle;
}

// Drops the packets of one pair from the queues of a port that has stopped.
void Core::drop_waiting(PortIndex p, PairIndex pair) {
  Port& port = ports[p];
  for (std::uint32_t lane = 0; lane < settings.classes; ++lane) {
    if ((port.occupied >> lane & 1U) == 0) continue;
    Waiting& waiting = waiting_[p * settings.classes + lane];
    List kept;
    for (std::uint32_t packet = waiting.list.head, next = kNone; packet != kNone; packet = next) {
      next = packets_[packet].next;
      if (packets_[packet].kind >= PacketKind::pause || packets_[packet].pair != pair) {
        append(kept, packet);
        continue;
      }
      waiting.bytes -= packets_[packet].bytes;
      port.waiting_bytes -= packets_[packet].bytes;
      drop(packet, p, now);
    }
    waiting.list = kept;
    if (kept.head != kNone) continue;
    port.occupied &= static_cast<ClassMask>(~(1U << lane));
    if (lane != 0 && port.flow_control == FlowControl::credit && (port.ready >> lane & 1U) == 0)
      wait_no_longer(p, lane, now);
  }
}

// The packet is lost at `p`; its buffer space is free.
void Core::drop(std::uint32_t packet, PortIndex p, Picoseconds time) {
  const Packet row = packets_[packet];
  ++records[p].drops;
  ++counters.drops;
  free_packet(packet);
  if (row.in_port != kNone) release(row.in_port, row.lane, row.bytes, time);
}
}  // namespace topsim::network::packet
