// What the packet model can be told; the scenario section `network.packet` fills it.
// Every default has its source beside it: [HPCC] alibaba-edu/High-Precision-Congestion-Control simulation,
// [SimAI] SimAI.conf, [DCQCN] Zhu et al. SIGCOMM 2015, [ConnectX] mlxconfig defaults, [IRN] Mittal et al.
// SIGCOMM 2018, [IBTA] InfiniBand Architecture Specification vol. 1, [Gran] Gran et al. IPDPS 2010. An unset
// optional scales with the port or follows from the fabric, as its comment says.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "sim/base/units.hpp"

namespace topsim::network::packet {

inline constexpr std::size_t kMaxClasses = 16;  // control, and VL0-14 or PFC priorities

enum class FlowControl : std::uint8_t {
  none,   // switches drop when their buffer is full
  pfc,    // IEEE 802.1Qbb pause per priority
  credit  // InfiniBand credits per virtual lane; PCIe and NVLink work alike
};

enum class PathChoice : std::uint8_t {
  flow_hash,    // ECMP: one path a queue pair, by seeded hash
  destination,  // one path a destination (InfiniBand linear forwarding table, destination modulo)
  flowlet,      // hash anew after a gap
  spray,        // a random shortest path for every packet
  adaptive      // least-loaded shortest path for every packet
};

enum class Recovery : std::uint8_t { go_back_n, selective_repeat };
enum class CongestionControlKind : std::uint8_t { none, dcqcn, hpcc, timely, dctcp, infiniband };

// Bytes around a payload. RoCEv2: Ethernet 14, IPv4 20, UDP 8, BTH 12, ICRC 4, FCS 4 = 62, then preamble 8
// and gap 12; InfiniBand: LRH 8, BTH 12, ICRC 4, VCRC 2 = 26. (IBTA vol. 1 and annex A17.)
struct Framing {
  Bytes mtu{4096};      // payload of a full packet; RDMA path MTU: 256, 512, 1024, 2048 or 4096
  Bytes header{62};     // stored in buffers and sent
  Bytes gap{20};        // sent, never stored
  Bytes ack{66};        // whole ACK or NACK as stored: 62 + AETH 4
  Bytes cnp{78};        // whole CNP as stored: 62 + 16 reserved
  Bytes pause{64};      // whole PFC frame as stored
  Bytes telemetry{42};  // HPCC only, on data and ACK: 5 hops x 8 + 2 [HPCC]
  // Of a full packet on the wire.
  [[nodiscard]] constexpr double payload_share() const {
    return static_cast<double>(mtu.value()) / static_cast<double>((mtu + header + gap).value());
  }
  static constexpr Framing roce() { return {}; }
  static constexpr Framing infiniband() {
    return {Bytes(4096), Bytes(26), Bytes(0), Bytes(30), Bytes(42), Bytes(0), Bytes(0)};
  }
};

// Shared buffer of an Ethernet switch, admission as [HPCC] switch-mmu: per (port, priority) ingress
// accounting.
struct SwitchBuffer {
  // Unset: what the catalogue says of the switch's model, kUsual where it does not.
  static constexpr Bytes kUsual{32'000'000};  // [SimAI], [HPCC]
  std::optional<Bytes> total;
  Bytes reserve{4096};  // per port, before the shared pool is touched [HPCC]
  // Per (port, priority); unset: 3 x rate x one-way link delay [HPCC], at least 2 MTU frames.
  std::optional<Bytes> headroom;
  bool cut_through = true;  // false: store and forward (what ns-3 does)
};

struct Pfc {
  bool enabled = true;
  // Dynamic threshold: pause when an ingress uses more than alpha x (free shared bytes); alpha = 1/8 for a
  // port of NIC speed, doubled for every doubling of the port's speed [HPCC].
  double alpha = 0.125;
  std::optional<Bytes> xoff;  // static threshold instead of the dynamic one
  Bytes resume_offset{3072};  // resume when the ingress is this far below the threshold [HPCC]
  // A port paused without a break this long starts a search for a cycle.
  Duration deadlock_after = std::chrono::milliseconds(1);
};

// Marking probability at dequeue: 0 up to kmin, pmax (q - kmin) / (kmax - kmin) up to kmax, 1 above.
struct Ecn {
  bool enabled = true;
  // Unset: 100 KB and 400 KB x rate / 25 Gbit/s; DCTCP: both 30 KB x rate / 10 Gbit/s [HPCC]. Where one is
  // set on the other's wrong side, both are that one.
  std::optional<Bytes> kmin, kmax;
  double pmax = 0.2;  // [HPCC]; [DCQCN] 0.01; DCTCP marks all above kmin
};

// Rates that are unset scale with the NIC: value a 25 Gbit/s NIC would use x rate / 25 Gbit/s [HPCC run.py].
// The members' values are those of a ConnectX, [ConnectX]: mlxconfig dump (dce_tcp_g 1019/1024,
// rpg_byte_reset 32767, min_dec_fac 50 %, alpha 1023/1024). Its 5, 50 and 1 Mbit/s of increase and least rate
// date from 25 Gbit/s NICs: at 400 Gbit/s a flow would need tens of milliseconds to come back and could wait
// 33 ms for one packet. Here they scale as the vendor has them scale in [HPCC] run.py (5 and 50 Mbit/s x
// rate / 25G, least 1000 Mbit/s).
struct Dcqcn {
  enum class Rules : std::uint8_t { paper, connectx };
  Rules rules = Rules::connectx;
  // Whose figures the parameters are where nothing else is said of them.
  enum class Parameters : std::uint8_t { connectx, paper, hpcc_vendor, simai };
  Parameters parameters = Parameters::connectx;
  double g = 1 - 1019.0 / 1024;
  // connectx: alpha update; paper: decay when no CNP came (55 us).
  Duration alpha_period = std::chrono::microseconds(1);
  Duration decrease_period = std::chrono::microseconds(4);    // connectx alone: a cut at most this often
  Duration increase_period = std::chrono::microseconds(300);  // timer T of rate increase
  Bytes byte_counter{32767};                                  // B of rate increase; 0: none
  int threshold = 1;                                          // F: fast-recovery stages
  std::optional<BytesPerSecond> additive_increase;            // unset: 5 Mbit/s x rate / 25G
  std::optional<BytesPerSecond> hyper_increase;               // unset: 50 Mbit/s x rate / 25G
  BytesPerSecond min_rate{125e6};                             // 1000 Mbit/s
  double initial_alpha = 1023.0 / 1024;
  double max_cut = 0.5;  // min_dec_fac: a cut never takes more than this share of the rate
  // Receiver: at most one CNP per queue pair in this time; [DCQCN] 50 us.
  Duration cnp_interval = std::chrono::microseconds(4);
  bool cnp_in_ack = false;  // true: mark every ACK of a marked packet instead, as the ns-3 models do
  bool window = false;      // cap bytes in flight at rate x base RTT [SimAI]

  // [DCQCN] table; CNP pacing by the receiver.
  static Dcqcn paper() {
    using namespace literals;
    Dcqcn p = of_the_paper(Parameters::paper);
    p.rules = Rules::paper, p.alpha_period = 55_us, p.decrease_period = 50_us, p.increase_period = 55_us;
    p.byte_counter = Bytes(10'000'000), p.threshold = 5, p.cnp_interval = 50_us;
    p.additive_increase = BytesPerSecond(5e6), p.hyper_increase = BytesPerSecond(50e6),
    p.min_rate = BytesPerSecond(1.25e6);
    return p;
  }
  // [HPCC] run.py "dcqcn" (vendor): marks in every ACK.
  static Dcqcn hpcc_vendor() {
    Dcqcn p = of_the_paper(Parameters::hpcc_vendor);
    p.cnp_in_ack = true;
    return p;
  }
  static Dcqcn simai() {
    using namespace literals;
    Dcqcn p = of_the_paper(Parameters::simai);
    p.increase_period = 900_us, p.additive_increase = BytesPerSecond(6.25e6),
    p.hyper_increase = BytesPerSecond(12.5e6);
    p.min_rate = BytesPerSecond(12.5e6), p.cnp_in_ack = true, p.window = true;
    return p;
  }
  static Dcqcn of(Parameters parameters) {
    switch (parameters) {
      case Parameters::connectx:
        return {};
      case Parameters::paper:
        return paper();
      case Parameters::hpcc_vendor:
        return hpcc_vendor();
      case Parameters::simai:
        return simai();
    }
    return {};
  }

 private:
  // [DCQCN]: alpha's gain 1/256, alpha begins at 1, cuts have no bound; no byte counter in [HPCC] and
  // [SimAI].
  static Dcqcn of_the_paper(Parameters parameters) {
    Dcqcn p;
    p.parameters = parameters;
    p.g = 1.0 / 256, p.byte_counter = Bytes(0), p.initial_alpha = 1, p.max_cut = 1;
    return p;
  }
};

struct Hpcc {  // [HPCC]
  double target_utilisation = 0.95;
  int max_stage = 0;
  std::optional<BytesPerSecond> additive_increase;  // unset: 10 Mbit/s x rate / 25G
  BytesPerSecond min_rate{125e6};
};

struct Timely {  // [HPCC] run.py
  double alpha = 0.875, beta = 0.8;
  Duration t_low = std::chrono::microseconds(50), t_high = std::chrono::microseconds(500);
  Duration min_rtt = std::chrono::microseconds(20);
  std::optional<BytesPerSecond> additive_increase;  // unset: 10 Mbit/s x rate / 10G
  std::optional<BytesPerSecond> hyper_increase;     // unset: 50 Mbit/s x rate / 10G
  BytesPerSecond min_rate{125e6};
};

struct Dctcp {  // [HPCC]
  double g = 1.0 / 16;
  BytesPerSecond additive_increase{615e6 / 8};
  BytesPerSecond min_rate{125e6};
};

// InfiniBand congestion control, annex A10. Subnet managers leave it alone unless told otherwise: OpenSM's
// congestion_control is FALSE, NVIDIA's mlnx_congestion_control 0 ("ignore"), both under "experimental" in
// the file that `opensm -c` writes, so that nothing on InfiniBand is slowed by default. Who switches it on
// gets the defaults of Mellanox's manager of it, [CCM] MLNX_OFED user manual, "Congestion Control Manager";
// that says of the timer only that it follows from the size of the fabric, and [Gran] found 150 units best;
// [LLNL] ib-cc-tester tries 150 to 6000. Ports that wait for credits are victims, not where congestion
// begins, and do not mark: Victim_Mask is 0 in OpenSM.
struct InfinibandCc {
  int threshold = 15;                                  // 0..15; 15 marks earliest [CCM]
  int marking_rate = 10;                               // packets between two marks [CCM]
  int increase = 1;                                    // CCTI += this on a BECN [CCM]
  int limit = 127;                                     // highest CCTI: tables have 128 entries [LLNL]
  Duration timer = std::chrono::nanoseconds(153'600);  // 150 x 1.024 us: CCTI -= 1 [Gran]
  // Packet times between two packets at index i: Mellanox's table as [LLNL] (opensm-cc-conf-gen) writes it.
  [[nodiscard]] static int delay(int index) {
    return static_cast<int>(7.0 * index * index / (95.0 * 95.0) / 0.218);
  }
};

struct CongestionControl {
  // Unset: DCQCN on RoCE, none on InfiniBand (often disabled in practice).
  std::optional<CongestionControlKind> kind;
  Dcqcn dcqcn;
  Hpcc hpcc;
  Timely timely;
  Dctcp dctcp;
  InfinibandCc infiniband;
};

struct VirtualLanes {
  int count = 1;  // data lanes (of VL0-14)
  // Per (port, lane), in 64-byte blocks, at most 2047 of which can be advertised [IBTA 7.9]. Unset: what
  // keeps the link at full rate, rate x round trip plus sixteen packets.
  std::optional<Bytes> buffer;
  std::vector<int> weight;  // low table, by lane, in 64-byte units [IBTA]; 64 where it says nothing
  int high_priority = 0;    // bit mask of lanes in the high table
  // x 4 KiB that the high table may send before one low packet; 0: one packet, 255: no limit [IBTA]
  int high_limit = 255;
};

// Bytes of such a buffer. Times in seconds; packet: with its header.
[[nodiscard]] constexpr double usual_lane(double rate, double round_trip, double packet) {
  return rate * round_trip + 16 * packet;
}

struct Loss {
  double probability = 0;  // each data packet on each fabric link
  // Go-back-N: one NACK an expected sequence in this time [HPCC].
  Duration nack_interval = std::chrono::microseconds(500);
  // RTO_high, and RTO_low below three packets in flight [IRN].
  Duration timeout = std::chrono::microseconds(320), timeout_low = std::chrono::microseconds(100);
  // Selective repeat: packets overtaken before a gap counts as a loss. Unset: 3 on one path, the timer alone
  // on several.
  std::optional<int> reorder_window;
};

struct PacketSpec {
  std::optional<Framing> framing;  // unset: Framing::roce() or Framing::infiniband() as the fabric is
  std::optional<FlowControl> flow_control;  // unset: pfc on Ethernet, credit on InfiniBand
  SwitchBuffer buffer;
  Pfc pfc;
  Ecn ecn;
  CongestionControl congestion_control;
  VirtualLanes lanes;
  Loss loss;
  std::optional<PathChoice> path;    // unset: as topology::Topology::routing says
  std::optional<Recovery> recovery;  // unset: go-back-N where packets keep their order, else selective repeat
  Duration flowlet_gap = std::chrono::microseconds(50);
  int queue_pairs = 1;  // per connection; a message is cut into this many (NCCL_IB_QPS_PER_CONNECTION)
  int ack_every = 1;    // packets an ACK; 0: one a message. Window-based congestion control has one a packet
  // ACK, CNP in a strict-priority class of their own; unset: RoCE yes, InfiniBand no.
  std::optional<bool> control_first;
  std::uint64_t seed = 1;

  // What runs, where it is left open too.
  [[nodiscard]] FlowControl flow_control_on(bool infiniband) const {
    const FlowControl ethernet = pfc.enabled ? FlowControl::pfc : FlowControl::none;
    return flow_control.value_or(infiniband ? FlowControl::credit : ethernet);
  }
  [[nodiscard]] CongestionControlKind congestion_on(bool infiniband) const {
    return congestion_control.kind.value_or(infiniband ? CongestionControlKind::none
                                                       : CongestionControlKind::dcqcn);
  }
  // Packets that choose their paths one by one overtake each other.
  [[nodiscard]] static bool reorders(PathChoice chosen) {
    return chosen == PathChoice::spray || chosen == PathChoice::adaptive;
  }
  [[nodiscard]] Recovery recovery_on(PathChoice chosen) const {
    return recovery.value_or(reorders(chosen) ? Recovery::selective_repeat : Recovery::go_back_n);
  }
};
}  // namespace topsim::network::packet
