// Ports that send ahead of time. A queue is predictable if it has one lane under credits, no marks, no loss,
// and all its packets came in under credits: the time at which a packet leaves is then known when it arrives,
// as long as the credits for it will be back by then. It is put on the link at once, with that time; its
// buffer space is known to be free from then on, and the upstream sender is told so. Packets wait in the
// queue only while it is not known when credits come. So departures need neither events nor later updates.
#include <algorithm>

#include "sim/base/error.hpp"
#include "sim/network/packet/hop.hpp"

namespace topsim::network::packet {
namespace {
constexpr unsigned kLane = kOnlyLane;
constexpr std::uint32_t kClasses = kClassesAhead;
}  // namespace

void Core::find_ports_ahead() {
  const bool can = settings.classes == kClasses && !settings.control_first && !settings.lossy &&
                   spec.loss.probability == 0 && settings.congestion != CongestionControlKind::hpcc;
  std::vector<char> without_credits(graph.devices, 0);  // into the device
  for (Device& device : devices_) device.lazy = 0;
  for (const Port& port : ports) {
    if (port.flow_control != FlowControl::credit) without_credits[port.to] = 1;
  }
  for (Port& port : ports) {
    port.ahead = can && port.flow_control == FlowControl::credit && port.mark_from == kMarksNever &&
                 without_credits[port.from] == 0;
    if (!port.ahead) ++devices_[port.from].lazy;
  }
}

// A queue pair sends from this port: pairs that wait for their turn are not a queue.
void Core::no_longer_ahead(PortIndex p) {
  if (!ports[p].ahead) return;
  ports[p].ahead = false;
  ++devices_[ports[p].from].lazy;
  update(p);
}

// The packet waits behind others, or for credits, at least until `start`.
void Core::wait_ahead(PortIndex p, std::uint32_t packet, Picoseconds start) {
  Port& port = ports[p];
  Waiting& waiting = waiting_[p * kClasses + kLane];
  const std::uint32_t bytes = packets_[packet].bytes;
  const bool first = port.occupied == 0;
  waiting.bytes += bytes;
  port.waiting_bytes += bytes;
  note_waiting(port, port.waiting_bytes, start);
  port.occupied = 1U << kLane;
  append(waiting.list, packet);
  if (first) arm(p, send_ahead(p));
}

// Sends everything for which credits are known; returns when the next credits come, as far as known.
Picoseconds Core::send_ahead(PortIndex p) {
  Port& port = ports[p];
  Waiting& waiting = waiting_[p * kClasses + kLane];
  Credit& credit = credits_[p * kClasses + kLane];
  while (port.occupied != 0 && !port.down) {
    const std::uint32_t packet = waiting.list.head;
    const std::uint32_t bytes = packets_[packet].bytes;
    const Picoseconds start = std::max({port.free_at, packets_[packet].time, now});
    if (!has_credits(credit, blocks_of(bytes), start)) {
      if (!credit.starved) {
        starve(p, credit, start);
        continue;  // departures at the far end may have become known
      }
      return credits_at(credit, blocks_of(bytes));
    }
    wait_no_longer(p, kLane, start);
    waiting.list.head = packets_[packet].next;
    waiting.bytes -= bytes;
    port.waiting_bytes -= bytes;
    if (waiting.list.head == kNone) port.occupied = 0;
    leave_ahead(p, credit, packet, start);
  }
  return kForever;
}

// When that many blocks will be back: 0 if they are, kForever if it is not known.
Picoseconds Core::credits_at(const Credit& credit, std::uint32_t blocks) const {
  std::uint32_t have = credit.limit - credit.sent;
  if (have >= blocks) return 0;
  for (const Returns::Row& row : credit.returning.rows()) {
    have += row.blocks;
    if (have >= blocks) return row.time;
  }
  return kForever;
}

// The network changes at `now`: packets that were to leave later go back to their queues. Credits are
// recomputed from where every packet is; returning credits that a sender had counted on are granted at once,
// a link's latency early.
void Core::recall() {
  std::vector<std::uint32_t> used(ports.size(), 0);  // blocks of the buffer behind the port
  for (PortIndex p = 0; p < ports.size(); ++p) {
    if (ports[p].ahead) recall(p);
    for (std::uint32_t k = ports[p].flight.head; k != kNone; k = packets_[k].next)
      if (packets_[k].lane == kLane) used[p] += blocks_of(packets_[k].bytes);
  }
  for (PortIndex p = 0; p < ports.size(); ++p) {
    if (ports[p].occupied == 0) continue;
    for (std::uint32_t k = waiting_[p * settings.classes + kLane].list.head; k != kNone; k = packets_[k].next)
      if (packets_[k].in_port != kNone) used[packets_[k].in_port] += blocks_of(packets_[k].bytes);
  }
  for (PortIndex p = 0; p < ports.size(); ++p) {
    if (ports[p].flow_control != FlowControl::credit) continue;
    Credit& credit = credits_[p * settings.classes + kLane];
    Returns kept;
    for (const Returns::Row& row : credit.returning.rows()) {
      if (row.time - credit.way_back > now) continue;
      used[p] += row.blocks;
      kept.insert(row);
    }
    credit.returning = std::move(kept);
    credit.limit = credit.sent + credit_total_[p] - used[p];
  }
}

void Core::recall(PortIndex p) {
  Port& port = ports[p];
  std::uint32_t last = kNone, packet = port.flight.head;
  const auto start_of = [&](const Packet& row) {
    const bool whole = !port.cut_through || paths_[row.hop].count == 0;
    return row.time - port.latency - (whole ? time_on(port, row) : 0);
  };
  while (packet != kNone && start_of(packets_[packet]) <= now) {
    last = packet;
    packet = packets_[packet].next;
  }
  port.free_at =
      last == kNone ? std::min(port.free_at, now) : start_of(packets_[last]) + time_on(port, packets_[last]);
  if (packet == kNone) return;
  (last == kNone ? port.flight.head : packets_[last].next) = kNone;
  const std::uint32_t tail = port.flight.tail;
  port.flight.tail = last;
  Waiting& waiting = waiting_[p * settings.classes + kLane];
  packets_[tail].next = port.occupied != 0 ? waiting.list.head : kNone;
  if (port.occupied == 0) waiting.list.tail = tail;
  waiting.list.head = packet;
  port.occupied = 1U << kLane;
  for (std::uint32_t k = packet;; k = packets_[k].next) {
    Packet& row = packets_[k];
    const Picoseconds duration = time_on(port, row);
    port.busy -= duration;
    port.wire_bytes -= row.bytes + std::uint64_t{port.gap};
    if (row.kind == PacketKind::data) port.payload_bytes -= row.bytes - settings.header;
    --counters.hops;
    credits_[p * settings.classes + kLane].sent -= blocks_of(row.bytes);
    waiting.bytes += row.bytes;
    port.waiting_bytes += row.bytes;
    row.time = now;
    if (k == tail) break;
  }
}
}  // namespace topsim::network::packet
