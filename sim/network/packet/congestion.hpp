// Congestion control of queue pairs: sets QueuePair::pace and ::window. Timers are evaluated when something
// asks for the rate (a packet is sent, an acknowledgement arrives), not by events: between two notifications
// they follow a known course. Rules: [DCQCN] SIGCOMM 2015, [HPCC] SIGCOMM 2019,
// [TIMELY] SIGCOMM 2015, [DCTCP] SIGCOMM 2010, InfiniBand annex A10.
#pragma once

#include <array>
#include <vector>

#include "sim/network/packet/state.hpp"

namespace topsim::network::packet {

// What HPCC switches write into a packet, hop by hop.
struct Telemetry {
  static constexpr std::size_t kMost = 10;
  struct Entry {
    Picoseconds time;
    std::uint64_t sent;   // bytes
    std::uint32_t queue;  // bytes
    PortIndex port;
    double rate;  // bytes/s
  };
  std::uint8_t hops = 0;
  std::array<Entry, kMost> entry;
};

struct Acknowledgement {
  std::uint32_t number;  // next one expected by the receiver
  bool marked;
  Picoseconds sent;            // when the packet it answers left (TIMELY)
  const Telemetry* telemetry;  // HPCC, else null
};

class Congestion {
 public:
  // `idle`: controls that keep windows and averages (HPCC, TIMELY, DCTCP) begin anew, as a new flow does,
  // with a packet that is sent so long after the last acknowledgement with nothing in flight (RFC 5681
  // section 4.1: a retransmission timeout).
  Congestion(CongestionControlKind kind, const CongestionControl& spec, double slowest_nic, std::uint32_t mtu,
             Picoseconds idle);

  void add(QueuePair& pair, double line_rate, Picoseconds base_round_trip);
  [[nodiscard]] bool active() const { return kind_ != CongestionControlKind::none; }
  // Before a packet leaves: the rate at that time. `bytes` on the wire.
  void before_send(std::uint32_t index, QueuePair& pair, std::uint32_t bytes, Picoseconds time);
  // A pair whose next packet waits longer than a timer's period: when its rate will next rise; else kForever,
  // and the packet waits at the rate of the last one, as in [HPCC].
  [[nodiscard]] Picoseconds next_rise(std::uint32_t index, const QueuePair& pair) const;
  // The rate at that time, without a packet.
  void review(std::uint32_t index, QueuePair& pair, Picoseconds time);
  // When an idle pair is again as if it had never been slowed. A rate limiter that is back at the line rate
  // is released (IEEE 802.1Qau 31.2). kForever: its rate does not come back by itself.
  [[nodiscard]] Picoseconds recovers_at(std::uint32_t index) const;
  // As if it had never been slowed; its next packet has that number.
  void renew(std::uint32_t index, QueuePair& pair, std::uint32_t next);
  void acknowledged(std::uint32_t index, QueuePair& pair, const Acknowledgement& ack, Picoseconds time);
  void notified(std::uint32_t index, QueuePair& pair, Picoseconds time);  // CNP or BECN

 private:
  struct State {
    double line, rate, target, minimum, additive, hyper;
    Picoseconds round_trip;
    double window;  // packets at line rate; 0: none
    double alpha = 1;
    // DCQCN
    bool congested = false;  // any CNP so far
    bool alpha_flag = false, cut_flag = false;
    Picoseconds alpha_at = 0, cut_at = 0, timer_at = 0;  // next expiry
    int timer_stage = 0, byte_stage = 0;
    double byte_count = 0;
    // windows of one round trip: HPCC, DCTCP, TIMELY
    std::uint32_t update_after = 0, marked = 0, batch = 0, reduced_until = 0;
    bool reduced = false;
    double current = 0, utilisation = 0;
    int stage = 0;
    std::uint32_t first = 0;   // number of the packet it began with
    Picoseconds heard_at = 0;  // last acknowledgement
    Telemetry last;
    double last_round_trip = 0, gradient = 0;
    // InfiniBand
    int index = 0;
    Picoseconds index_at = 0;
  };

  void set_rate(QueuePair& pair, State& s, double rate) const;
  void advance_dcqcn(State& s, Picoseconds time) const;
  void forget(QueuePair& pair, State& s, Picoseconds time) const;
  void raise(State& s) const;
  [[nodiscard]] bool rises(const State& s, int stage, double target) const;
  void cut(State& s, Picoseconds time) const;
  void hpcc(QueuePair& pair, State& s, const Acknowledgement& ack);
  void timely(QueuePair& pair, State& s, const Acknowledgement& ack, Picoseconds time);
  void dctcp(QueuePair& pair, State& s, const Acknowledgement& ack);

  [[nodiscard]] bool keeps_averages() const {
    return kind_ == CongestionControlKind::hpcc || kind_ == CongestionControlKind::timely ||
           kind_ == CongestionControlKind::dctcp;
  }

  CongestionControlKind kind_;
  CongestionControl spec_;
  double scale_;  // NIC rate / 25 Gbit/s
  std::uint32_t mtu_;
  Picoseconds idle_;
  std::vector<State> states_;
};
}  // namespace topsim::network::packet
