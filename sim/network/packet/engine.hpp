// The packet model on a graph of ports: queue pairs, messages, and their outcome.
//
//   Fabric fabric = star(3, {.rate = 12.5_GBps, .latency = 1_us});
//   Engine engine(fabric.graph, PacketSpec{});
//   auto pair = engine.connect({fabric.hosts[0], fabric.hosts[2]});
//   engine.send(pair, 10_MiB, SimTime{}, 7);
//   engine.run();                                   engine.delivered()[0].time
//
// Events: one per hop where queues are served in order of arrival; a second one only at a switch with an
// upstream port that waits for buffer (PFC pause, missing credits), because departures then need events of
// their own.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "sim/network/network.hpp"
#include "sim/network/packet/paths.hpp"
#include "sim/network/packet/spec.hpp"

namespace topsim::network::packet {

using PairIndex = std::uint32_t;

struct Connection {
  DeviceIndex from = 0, to = 0;
  std::uint64_t number = 0;   // what ECMP hashes beside the two ends
  int lane = 0;               // priority or virtual lane, 0 ... lanes.count - 1
  BytesPerSecond rate_cap{};  // the sender never goes faster; 0: no limit
  // Unset: shortest in the graph. Several parallel ports: a choice for every packet.
  std::vector<PortIndex> path = {}, back = {};
};

struct Counters {
  std::uint64_t events = 0, hops = 0, data_packets = 0, acks = 0, notifications = 0;
  std::uint64_t pauses = 0, drops = 0, repeats = 0, timeouts = 0, marks = 0;
  std::uint64_t draws = 0;  // random numbers
  Counters& operator+=(const Counters& o) { return each(o, 1); }
  Counters& operator-=(const Counters& o) { return each(o, ~std::uint64_t{0}); }  // times -1

 private:
  Counters& each(const Counters& o, std::uint64_t sign) {
    events += sign * o.events, hops += sign * o.hops, data_packets += sign * o.data_packets;
    acks += sign * o.acks, notifications += sign * o.notifications, pauses += sign * o.pauses;
    drops += sign * o.drops, repeats += sign * o.repeats, timeouts += sign * o.timeouts;
    marks += sign * o.marks, draws += sign * o.draws;
    return *this;
  }
};

// The most bytes that were in a device's shared buffer, and of one ingress.
struct BufferUse {
  std::uint64_t used = 0;
  std::uint32_t fullest = 0;
};

// Totals of ports and counters (episodes.hpp).
struct Tally {
  struct Row {
    PortIndex port = 0;
    std::uint32_t pauses = 0, drops = 0, most_waiting = 0;
    std::uint64_t wire_bytes = 0, payload_bytes = 0;
    Duration busy{}, paused{};
  };
  std::vector<Row> ports;                                  // those that did anything, ascending
  std::vector<std::pair<DeviceIndex, BufferUse>> buffers;  // of those that held anything
  Counters counters;
};

// Ports that wait for each other in a cycle: none will ever send again.
struct Deadlock {
  SimTime found{};
  std::vector<PortIndex> cycle;
};

class Core;

// The record of a port that sent so much payload in so much time. A port always sends at its rate, so the
// peak is that rate's payload.
[[nodiscard]] LinkRecord link_record(std::uint64_t payload_bytes, Duration busy);

class Engine {
 public:
  // REQUIRES: `graph` outlives the engine. Throws ConfigError where the spec contradicts itself.
  Engine(const Graph& graph, const PacketSpec& spec);
  ~Engine();
  Engine(Engine&&) noexcept;

  // A queue pair. Throws ConfigError when there is no path from one end to the other.
  PairIndex connect(const Connection& connection);
  // From `now` on the pair takes the connection's path. Where its old path has stopped (set_rate), what waits
  // there is lost and everything not acknowledged is sent again. REQUIRES: the same receiver.
  void move(PairIndex pair, const Connection& connection, SimTime now);
  // Queues a message behind the pair's earlier ones. REQUIRES: start >= the time of the last event.
  void send(PairIndex pair, Bytes bytes, SimTime start, std::uint64_t tag);

  [[nodiscard]] SimTime next_event() const;  // kNever: nothing left to happen
  void run_until(SimTime time);              // handles every event at or before
  void run() { run_until(kNever); }
  void run_to_delivery(SimTime limit);  // the same, but stops after the event that completes a message
  // Polled every 65,536 events. Once it returns true the engine stops.
  void stop_when(std::function<bool()> stopped);

  // Last byte at the receiver; last acknowledgement at the sender (what ns-3 calls flow completion). In order
  // of time.
  [[nodiscard]] std::vector<Completion>& delivered();
  [[nodiscard]] std::vector<Completion>& acknowledged();

  [[nodiscard]] LinkRecord record(PortIndex port) const;   // up to the last event
  [[nodiscard]] Bytes most_waiting(PortIndex port) const;  // longest queue so far, all classes
  [[nodiscard]] Duration paused(PortIndex port) const;     // stopped by PFC or for want of credits
  [[nodiscard]] std::uint64_t drops(PortIndex port) const;
  [[nodiscard]] Duration path_latency(PairIndex pair) const;  // sum over the links of one path
  // In order at the receiver so far, in whole packets.
  [[nodiscard]] Bytes received(PairIndex pair) const;
  [[nodiscard]] const Counters& counters() const;
  [[nodiscard]] const std::vector<Deadlock>& deadlocks() const;
  void set_rate(PortIndex port, BytesPerSecond rate, SimTime now);  // 0: the link is down

  [[nodiscard]] SimTime now() const;  // nothing can be sent before

  // For episodes.hpp. At rest: nothing in flight, every credit back, every queue pair at full rate again.
  // kNever: not before something happens, or never (loss, a deadlock).
  [[nodiscard]] SimTime rests_from() const;
  // Resets packet numbers, turns and random sequences. REQUIRES: rests_from() has passed.
  void rest();
  [[nodiscard]] Tally::Row tally(PortIndex port) const;
  Tally take();                                                  // and everything counts from zero again
  [[nodiscard]] Bytes shared_buffer(DeviceIndex device) const;   // without reserves and headroom
  [[nodiscard]] Bytes largest_packet() const;                    // as buffers count it
  [[nodiscard]] BufferUse buffer_use(DeviceIndex device) const;  // so far
  // Ports that the pair's packets and replies may use, in order; returns whether there is one path each.
  bool ways(PairIndex pair, std::vector<PortIndex>& there, std::vector<PortIndex>& back) const;
  // Conservation, for tests: an idle network has every buffer byte and every credit back. Returns the error,
  // or nothing.
  [[nodiscard]] std::string leak() const;
  [[nodiscard]] std::size_t bytes() const;  // memory held

 private:
  std::unique_ptr<Core> core_;
};
}  // namespace topsim::network::packet
