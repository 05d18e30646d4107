// The implementation of Engine, split by concern: ports.cpp (queues and links), ahead.cpp (queues with
// nothing to wait for), hop.hpp (what every hop does), buffers.cpp (PFC, shared buffers, credits), sender.cpp
// and receiver.cpp (queue pairs), congestion.cpp (rates and windows), deadlock.cpp.
//
// Departures are lazy. A port's queue is served first come first served, so the time at which each waiting
// packet leaves is known unless something interferes; sync(port, now) performs all departures due by now. It
// is called before anything that interferes (a new packet, a pause, an acknowledgement that opens a window)
// and whenever the first packet on the port's link arrives, which is the only event of a hop. Where a sender
// waits for a departure (XOFF was sent, credits are missing), the device is `exact` and its ports have an
// event for each departure as well.
#pragma once

#include <array>
#include <functional>
#include <span>
#include <vector>

#include "sim/network/packet/congestion.hpp"
#include "sim/network/packet/engine.hpp"
#include "sim/network/packet/event_queue.hpp"
#include "sim/network/packet/state.hpp"

namespace topsim::network::packet {

// The spec with values for its unset members.
struct Settings {
  Framing framing;
  CongestionControlKind congestion = CongestionControlKind::none;
  PathChoice path = PathChoice::flow_hash;
  Recovery recovery = Recovery::go_back_n;
  std::uint32_t classes = 2;  // 0: pause frames and, when control_first, ACK and CNP; then the lanes
  std::array<int, kMaxClasses> weight{};  // of a lane in the low table, bytes
  std::uint32_t mtu = 4096, header = 62, ack = 66, cnp = 78;
  std::uint32_t ack_every = 1;  // 0: one per message
  bool control_first = true;
  bool notifies = false;      // receivers send CNP (BECN) for marked packets
  bool echoes_marks = false;  // acknowledgements carry the mark, and go out at once for a marked packet
  Picoseconds notification_interval = 0;
  std::uint32_t reorder_window = 3;
  bool lossy = false;  // packets can be lost by intention: senders keep a timer
};
[[nodiscard]] Settings settle_spec(const Graph& graph, const PacketSpec& spec);

// Queue length in bytes from which a port marks, and from which it marks all; kMarksNever: no ECN.
struct MarkLevels {
  std::uint32_t from, all;
};
inline constexpr std::uint32_t kMarksNever = ~0U;
[[nodiscard]] MarkLevels ecn_levels(const PortSpec& port, const PacketSpec& spec,
                                    CongestionControlKind congestion);

// Hidden: its functions cannot be replaced from outside, so they can be inlined in a shared library as well.
class __attribute__((visibility("hidden"))) Core {
 public:
  Core(const Graph& graph, const PacketSpec& spec);

  PairIndex connect(const Connection& connection);
  void send(PairIndex pair, Bytes bytes, SimTime start, std::uint64_t tag);
  void move(PairIndex pair, const Connection& connection, Picoseconds now);
  void run_until(Picoseconds limit, bool stop_at_delivery = false);
  [[nodiscard]] std::string leak() const;
  [[nodiscard]] bool is_quiet() const;           // no packet anywhere, no pending sends
  [[nodiscard]] Picoseconds rests_from() const;  // kForever: not before something happens
  void rest();
  bool ways(PairIndex pair, std::vector<PortIndex>& there, std::vector<PortIndex>& back) const;
  void set_rate(PortIndex port, BytesPerSecond rate, Picoseconds now);

  const Graph& graph;
  const PacketSpec spec;
  const Settings settings;
  EventQueue events;
  Picoseconds now = 0, last_event = 0;
  std::vector<Completion> delivered, acknowledged;
  std::vector<Deadlock> deadlocks;
  Counters counters;
  std::vector<Port> ports;
  std::vector<PortRecord> records;
  std::function<bool()> cancelled;  // may be empty

  [[nodiscard]] std::size_t bytes() const;
  [[nodiscard]] const std::vector<QueuePair>& pairs() const { return pairs_; }
  [[nodiscard]] const Device& device(DeviceIndex d) const { return devices_[d]; }
  BufferUse forget_use(DeviceIndex d) {
    return {std::exchange(devices_[d].most_used, 0), std::exchange(devices_[d].fullest, 0)};
  }

 private:
  enum Target : std::uint32_t { kPort = 0, kTimer = 1U << 30, kStart = 2U << 30 };
  struct Start {
    PairIndex pair;
    std::int64_t bytes;
    std::uint64_t tag;
  };

  // ports.cpp
  void wake(PortIndex p);
  Picoseconds sync(PortIndex p);  // returns when the port could next start a packet, as far as known
  void arm(PortIndex p, Picoseconds next_start);
  void update(PortIndex p) { arm(p, sync(p)); }
  void interrupt(PortIndex p);  // before a change at `now`: departures so far, then nothing starts before now
  void enqueue(PortIndex p, std::uint32_t packet);
  void transmit(PortIndex p, unsigned lane, Picoseconds start);
  void put_on_link(PortIndex p, std::uint32_t packet, unsigned lane, Picoseconds start);
  Picoseconds occupy(Port& port, const Packet& packet, unsigned lane, Picoseconds start);
  void fly(Port& port, std::uint32_t packet, Picoseconds start, Picoseconds duration);
  [[nodiscard]] Picoseconds earliest(PortIndex p, unsigned lane);
  [[nodiscard]] std::pair<Picoseconds, unsigned> arbitrate(PortIndex p, unsigned eligible);
  void arrive(std::uint32_t packet, PortIndex p);
  void forward(std::uint32_t packet, PortIndex p);
  [[nodiscard]] std::uint32_t choose(const Hop& hop, std::uint32_t packet);
  void prefetch();
  void prefetch_packet() const;
  [[nodiscard]] Picoseconds time_on(const Port& port, const Packet& packet) const;
  void mark(Port& port, PortIndex p, Packet& packet, unsigned lane, Picoseconds start);
  [[nodiscard]] double draw(PortIndex p);  // evenly from [0, 1)
  void stamp(std::uint32_t packet, PortIndex p, Picoseconds start);
  std::uint32_t new_packet(PacketKind kind, unsigned lane, std::uint32_t bytes);
  void free_packet(std::uint32_t packet);

  // buffers.cpp
  bool admit(std::uint32_t packet, PortIndex in);
  void pause_if_full(PortIndex in, unsigned lane);
  void release(PortIndex in, unsigned lane, std::uint32_t bytes, Picoseconds time);
  void settle(DeviceIndex device);
  void expect_exactly(DeviceIndex device);
  [[nodiscard]] std::uint32_t threshold(PortIndex in, std::uint32_t shared) const;
  void signal(PortIndex in, unsigned lane, PacketKind kind);
  void hear_pause(PortIndex p, unsigned lane, bool stop);
  void give_back(PortIndex p, unsigned lane, std::uint32_t bytes, Picoseconds time);
  void return_later(PortIndex p, unsigned lane, const Returns::Row& row);
  void time_blocks(PortIndex p);
  [[nodiscard]] Picoseconds credit_time(PortIndex p, unsigned lane, std::uint32_t bytes, Picoseconds start);
  void wait_no_longer(PortIndex p, unsigned lane, Picoseconds since);
  void set_up_buffers();
  void check_parts(const std::vector<std::uint32_t>& count) const;
  void check_room(PortIndex p) const;
  void begin_random();
  [[nodiscard]] Picoseconds quiet_since() const;  // last event, last departure, last credit back
  void set_up_port(PortIndex p);
  void list_ports();       // of each device
  void mark_by_credits();  // InfiniBand: where FECN begins

  void starve(PortIndex p, Credit& credit, Picoseconds since);
  [[nodiscard]] bool has_credits(Credit& credit, std::uint32_t blocks,
                                 Picoseconds by);  // known to be back by then
  static void take_first(Credit& credit);
  void append(List& list, std::uint32_t packet);

  // ahead.cpp
  void find_ports_ahead();
  void no_longer_ahead(PortIndex p);
  void enqueue_ahead(PortIndex p, std::uint32_t packet);
  void wait_ahead(PortIndex p, std::uint32_t packet, Picoseconds start);
  void note_waiting(Port& port, std::uint32_t bytes, Picoseconds start) const;
  void leave_ahead(PortIndex p, Credit& credit, std::uint32_t packet, Picoseconds start);
  Picoseconds send_ahead(PortIndex p);
  [[nodiscard]] Picoseconds credits_at(const Credit& credit, std::uint32_t blocks) const;
  void recall();
  void recall(PortIndex p);

  // sender.cpp
  void post(PairIndex pair, std::int64_t bytes, std::uint64_t tag);
  void activate(PairIndex pair);
  [[nodiscard]] bool can_send(const QueuePair& q, PairIndex pair) const;
  std::uint32_t inject(PortIndex p, unsigned lane, Picoseconds start);
  void put_back(PairIndex pair, Picoseconds port_free);
  void promote(Port& port);
  [[nodiscard]] std::uint32_t next_bytes(const Port& port, unsigned lane) const;
  void hear_ack(std::uint32_t packet);
  [[nodiscard]] std::uint32_t asks(const QueuePair& q) const;  // REQUIRES: something is not acknowledged
  // To be sent again: all that is in flight; else, under selective repeat, the first packet and what others
  // have overtaken [IRN], because what follows may still be on its way.
  void count_as_lost(PairIndex pair, bool all);
  void expire(PairIndex pair);
  void start_timer(PairIndex pair, Picoseconds at);
  [[nodiscard]] Picoseconds timeout(const QueuePair& q) const;
  [[nodiscard]] std::uint32_t next_number(const QueuePair& q, PairIndex pair) const;
  [[nodiscard]] std::uint32_t payload_of(const QueuePair& q, std::uint32_t number, bool& last) const;
  [[nodiscard]] std::uint32_t message_of(const QueuePair& q, std::uint32_t number) const;
  void drop_finished(PortIndex p);

  // detour.cpp
  void find_way(QueuePair& q, const Connection& connection);
  void take_out(PairIndex pair);
  void drop_waiting(PortIndex p, PairIndex pair);
  void drop(std::uint32_t packet, PortIndex p, Picoseconds time);

  // receiver.cpp
  void receive(std::uint32_t packet, PortIndex p);
  void take_data(std::uint32_t packet);
  void count(QueuePair& q, std::uint32_t number);
  void answer(PairIndex pair, const Packet& cause, std::uint32_t cause_index, PacketKind kind);

  // deadlock.cpp
  void watch_for_deadlock();
  void check_deadlock();
  [[nodiscard]] bool is_stopped(PortIndex p) const;
  [[nodiscard]] std::vector<PortIndex> find_cycle() const;

  Way way(const Connection& connection, bool forward_way, std::uint64_t hash);
  bool ports_from(std::uint32_t first, std::uint32_t count, std::vector<PortIndex>& ports) const;
  bool is_walk(std::span<const PortIndex> path, DeviceIndex from, DeviceIndex to) const;

  Paths paths_;
  std::vector<Packet> packets_;
  std::vector<Telemetry> telemetry_;  // HPCC: beside packets_
  std::vector<Picoseconds> stamps_;   // TIMELY: beside packets_
  // Beside packets_: flowlet of data; the number an ACK of selective repeat answers.
  std::vector<std::uint32_t> echoes_;
  std::uint32_t free_ = kNone;
  std::uint32_t live_ = 0;
  std::vector<Waiting> waiting_;  // port x class
  std::vector<Ingress> ingress_;  // port x class
  std::vector<Credit> credits_;   // port x class
  std::vector<std::uint32_t> credit_total_;
  std::uint32_t most_blocks_ = 0;        // of a packet
  std::vector<double> rate_;             // per port, bytes/s
  std::vector<std::uint32_t> mark_to_;   // kmax per port
  std::vector<Picoseconds> grade_;       // by port: the step by which adaptive routing grades queues
  std::vector<std::uint32_t> unmarked_;  // InfiniBand: packets since the last mark, per port
  std::vector<std::int64_t> arbiter_;    // port x class: what is left of a lane's weight, bytes
  std::vector<Device> devices_;
  std::vector<std::uint32_t> out_begin_;
  std::vector<PortIndex> out_;
  std::vector<Injector> injectors_;
  std::vector<QueuePair> pairs_;
  std::vector<Selective> selective_;  // beside pairs_, selective repeat only
  std::vector<Message> messages_;
  std::uint32_t free_message_ = kNone;
  std::vector<Start> starts_;
  std::vector<std::uint32_t> free_starts_;
  Congestion congestion_;
  std::vector<std::uint64_t> random_;  // per port, independent splitmix64 sequences
  bool wide_ = false;                  // more ports than a near cache holds
  std::uint32_t posted_pairs_ = 0;     // since the last rest
  // Not an event: once nothing else happens, either nothing waits or everything waits for ever.
  Picoseconds deadlock_check_at_ = kForever;
  bool may_finish_early_ = false;  // a pair in a port's turn may have nothing left to send: after repetitions
};
}  // namespace topsim::network::packet
