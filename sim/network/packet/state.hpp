// The rows that the packet model keeps: packets, ports, lanes, queue pairs, messages. Indices instead of
// pointers, pools that only grow; everything a hop touches fits two cache lines.
#pragma once

#include <cstdint>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

#include "sim/network/packet/paths.hpp"

namespace topsim::network::packet {

using Picoseconds = std::int64_t;
inline constexpr Picoseconds kForever = INT64_MAX;

// Rates are kept as what a byte takes: picoseconds in fixed point, with so many bits behind the point.
inline constexpr unsigned kPointBits = 20;
// At that many bytes/s, before it is rounded: ports to the nearest, queue pairs down.
[[nodiscard]] inline double time_of_byte(double rate) {
  return 1e12 * (1 << kPointBits) / rate;
}
[[nodiscard]] inline Picoseconds time_of(std::uint64_t bytes, std::uint64_t each) {
  return static_cast<Picoseconds>((bytes * each) >> kPointBits);
}

inline constexpr std::uint32_t kBlock = 64;  // bytes: what credits count [IBTA 7.9]
[[nodiscard]] inline std::uint32_t blocks_of(std::uint32_t bytes) {
  return (bytes + kBlock - 1) / kBlock;
}

enum class PacketKind : std::uint8_t { data, ack, nack, cnp, pause, resume };

// 32 bytes, so that a cache line holds two.
struct alignas(32) Packet {
  Picoseconds time;        // queued: earliest start; on a link: arrival at its far end
  std::uint32_t next;      // in a queue, on a link or in the free list
  std::uint32_t hop;       // where it is being sent, Paths
  std::uint32_t pair;      // queue pair; pause, resume: the class meant
  std::uint32_t sequence;  // data: its number; ack, nack: the next one expected
  std::uint32_t in_port;   // port it came by, whose buffer share it occupies; kNone: sent from here
  std::uint16_t bytes;     // as stored
  PacketKind kind;
  std::uint8_t lane : 4;  // class: queue of every port it passes
  bool marked : 1;        // ECN CE or FECN; ack: echo of it
  bool last : 1;          // data: last of its message
};
static_assert(sizeof(Packet) == 32);

struct List {
  std::uint32_t head = kNone, tail = kNone;
};

// Packets of one class that wait at one port.
struct Waiting {
  List list;
  std::uint32_t bytes = 0;
};

using ClassMask = std::uint16_t;
static_assert(kMaxClasses <= 16);

// Two cache lines: what every packet needs.
struct alignas(64) Port {
  Picoseconds free_at = 0;      // end of what is being sent
  Picoseconds wake = kForever;  // its pending event
  Picoseconds latency = 0;
  std::uint64_t cost = 0;  // of a byte, fixed point
  List flight;             // on the link, in order of arrival
  std::uint32_t from = 0, to = 0, reverse = 0;
  std::uint32_t injector = kNone;
  std::uint32_t waiting_bytes = 0;  // all classes
  ClassMask occupied = 0;           // classes with a packet waiting
  ClassMask ready = 0;              // classes with a queue pair ready to inject

  std::uint32_t mark_from = 0;  // kmin; ~0: never
  std::uint16_t gap = 0;        // sent, never stored
  std::uint16_t discount = 0;   // header bytes that are not sent here
  ClassMask paused = 0;         // classes stopped by PFC
  std::uint8_t turn = 0;        // class served last
  FlowControl flow_control = FlowControl::none;
  bool cut_through : 1 = false;  // the far end forwards before the last byte
  bool lossy : 1 = false;
  bool ahead : 1 = false;      // a packet's departure is known when it arrives (ahead.cpp)
  bool down : 1 = false;       // the link is: nothing starts
  bool syncing : 1 = false;    // inside sync()
  float alpha = 0;             // dynamic threshold of what comes by this port, at its far end
  std::uint32_t headroom = 0;  // bytes there, a class
  std::uint32_t most_waiting = 0;
  std::uint64_t wire_bytes = 0, payload_bytes = 0;  // sent so far
  Picoseconds busy = 0;
  std::uint32_t block_time = 0;  // the least that a block of credits takes to send
};
static_assert(sizeof(Port) == 128);

// What reports ask of a port beyond its row.
struct PortRecord {
  std::uint32_t pauses = 0;  // XOFF received
  std::uint32_t drops = 0;   // at the far end, for want of buffer, or lost on the link
  Picoseconds paused_time = 0, paused_since = 0;
};

// Buffer share of one (incoming port, class) under PFC.
struct Ingress {
  std::uint32_t used = 0;  // reserve and shared
  std::uint32_t headroom = 0;
  bool pausing = false;  // XOFF sent, no XON since
  // Of it, what is not the port's own.
  [[nodiscard]] std::uint32_t shared(std::uint32_t reserve) const {
    return used > reserve ? used - reserve : 0;
  }
};

// Credits on their way back to a sender, by time of arrival. Side by side, so that a look at them is one row
// of the cache.
class Returns {
 public:
  struct Row {
    Picoseconds time;
    std::uint32_t blocks;
  };
  [[nodiscard]] bool empty() const { return first_ == rows_.size(); }
  [[nodiscard]] std::span<const Row> rows() const { return {rows_.data() + first_, rows_.size() - first_}; }
  [[nodiscard]] const Row& front() const { return rows_[first_]; }
  void pop() {
    if (++first_ == rows_.size()) clear();
  }
  void clear() {
    rows_.clear();
    first_ = 0;
  }
  void prefetch() const { __builtin_prefetch(rows_.data() + rows_.size()); }
  // Usually behind all others: a port that is looked at late, or sends ahead, frees out of turn.
  void insert(const Row& row) {
    if (first_ > 0 && rows_.size() == rows_.capacity()) {
      rows_.erase(rows_.begin(), rows_.begin() + static_cast<std::ptrdiff_t>(first_));
      first_ = 0;
    }
    rows_.push_back(row);
    for (std::size_t at = rows_.size() - 1; at > first_ && rows_[at - 1].time > row.time; --at)
      std::swap(rows_[at - 1], rows_[at]);
  }

 private:
  std::vector<Row> rows_;
  std::size_t first_ = 0;
};

// Buffer of one (port, lane) at its far end as the sender knows it, in blocks. One cache line.
struct alignas(64) Credit {
  std::uint32_t limit = 0;    // FCCL: total blocks that may ever have been sent
  std::uint32_t sent = 0;     // FCTBS
  Picoseconds way_back = 0;   // from there to the sender
  Picoseconds last_back = 0;  // when the last of them will have come back
  Returns returning;          // on their way to the sender, who may come to wait for them
  bool starved = false;       // the sender waits for blocks
};
static_assert(sizeof(Credit) == 64);

struct Device {
  std::uint64_t shared_used = 0, shared_total = 0;
  std::uint64_t most_used = 0;  // so far
  std::uint32_t fullest = 0;    // the most that one ingress had, or asked for
  // Ingresses whose sender waits for departures here: they must happen at their own time.
  std::uint32_t exact = 0;
  std::uint32_t lazy = 0;  // ports that do not send ahead
};

// Queue pairs with data at the head of one port.
struct Injector {
  std::vector<List> ready;  // per class, served in turn
  // Heap by next send time, then by the order in which pairs first sent something; last the pair.
  std::vector<std::tuple<Picoseconds, std::uint32_t, std::uint32_t>> paced;
};

struct Message {
  std::uint64_t tag;
  std::uint32_t first, packets;  // numbers of its packets
  std::uint32_t last_payload;    // bytes of the last one
  std::uint32_t received;
  std::uint32_t next;
};

// Packet numbers above a base, as a ring of bits; grows with the furthest one seen.
class NumberSet {
 public:
  void insert(std::uint32_t number);
  [[nodiscard]] bool contains(std::uint32_t number) const;
  // Forgets everything below.
  void advance(std::uint32_t base);
  [[nodiscard]] std::uint32_t base() const { return base_; }

 private:
  std::uint32_t base_ = 0;
  std::vector<std::uint64_t> words_;
};

enum class SendState : std::uint8_t { idle, ready, paced };

// Sending half of a queue pair: what it has sent and may send.
struct Sender {
  std::uint32_t next = 0, unacknowledged = 0, posted = 0;  // packet numbers
  std::uint32_t sent = 0;                                  // one above the highest ever sent
  std::uint32_t send_message = kNone, oldest_message = kNone, newest_message = kNone;
  std::uint32_t ready_next = kNone;
  std::uint32_t rank = kNone;   // among pairs that have sent something, by order of the first time
  std::uint32_t last_wire = 0;  // bytes of the packet that went last, as sent
  Picoseconds next_send = 0, last_send = INT64_MIN / 2;  // whatever comes first begins a flowlet
  // When the oldest unacknowledged number last moved, or the packet that asks for its ACK was sent.
  Picoseconds progress_at = 0;
  std::uint32_t flowlet = 0;
  SendState state = SendState::idle;
  bool timer = false;  // a retransmission timer is pending
  bool moved = false;  // to another way: what still comes to a port that stopped is lost
};

// Receiving half.
struct Receiver {
  std::uint32_t expected = 0, since_ack = 0, receive_message = kNone;
  std::uint32_t refused = kNone;  // number last answered with a NACK
  Picoseconds refused_at = 0, notified_at = INT64_MIN / 2;
};

// Where both halves are, the way between them, and how fast it may be used.
struct Connected {
  std::uint32_t port = kNone;
  std::uint32_t first_hop = 0, first_count = 0;  // one of so many alternatives
  std::uint32_t back_hop = 0, back_count = 0, back_port = 0;
  DeviceIndex from = 0, to = 0;
  std::uint32_t hash = 0;
  std::uint8_t lane = 0, ack_lane = 0;
  std::uint32_t window = 0;    // packets in flight; 0: no limit
  std::uint64_t pace = 0;      // of a byte, fixed point; 0: as fast as the port
  std::uint64_t pace_cap = 0;  // pace of the connection's own limit
  Picoseconds path_latency = 0;
};

struct QueuePair : Sender, Receiver, Connected {
  // As if nothing had been sent yet.
  void begin_anew() {
    static_cast<Sender&>(*this) = {};
    static_cast<Receiver&>(*this) = {};
  }
};

// Selective repeat only.
struct Selective {
  NumberSet received, acknowledged;
  std::uint32_t repeat = 0;      // next number to consider for repetition
  std::uint32_t highest = 0;     // one above the highest number acknowledged
  std::uint32_t lost_below = 0;  // after a timeout: everything below counts as lost
};
}  // namespace topsim::network::packet
