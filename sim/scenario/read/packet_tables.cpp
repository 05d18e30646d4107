// `network.packet`: the keys of sim/network/packet/spec.hpp, where every default has its source.
#include <fmt/format.h>

#include "sim/scenario/read/tables.hpp"

namespace topsim::network::packet {
using config::between;
using config::default_text;
using config::positive;

namespace {
constexpr double kMostLoss = 0.5;  // with more loss a long message hardly ever arrives whole

// Bytes in a switch: counted in 32 bits.
config::Range in_a_buffer() {
  return between(0, 2e9);
}
// A packet counts its bytes in 16 bits, of which the payload takes the most.
config::Range beside_the_payload() {
  return between(0, 4096);
}

config::CodecPtr<Dcqcn::Parameters> parameter_names() {
  using Of = Dcqcn::Parameters;
  return config::names<Of>({{"connectx", Of::connectx, "a ConnectX as it is shipped"},
                            {"paper", Of::paper, "Zhu et al. 2015"},
                            {"hpcc-vendor", Of::hpcc_vendor, "the vendor's, as the HPCC authors ran it"},
                            {"simai", Of::simai, "SimAI's configuration"}});
}

// Omitted keys take the values of the `parameters` chosen, which are therefore read first.
class DcqcnCodec final : public config::Codec<Dcqcn> {
 public:
  bool accepts(config::Kind kind) const override { return fields_->accepts(kind); }
  void read(const config::Node& node, Dcqcn& out, config::Reader& reader) const override {
    const config::Node rules = node.find("rules"), owner = node.find("parameters");
    if (rules && rules.kind() == config::Kind::string && rules.text() == "paper")
      out = Dcqcn::of(Dcqcn::Parameters::paper);
    if (owner && owner.kind() == config::Kind::string) {
      Dcqcn::Parameters parameters = out.parameters;
      parameter_names()->read(owner, parameters, reader);
      out = Dcqcn::of(parameters);
    }
    fields_->read(node, out, reader);
  }
  config::Value write(const Dcqcn& value) const override { return fields_->write(value); }
  config::Value schema(config::Definitions& definitions) const override {
    return fields_->schema(definitions);
  }
  std::string expects() const override { return fields_->expects(); }

 private:
  config::CodecPtr<Dcqcn> fields_ = config::codec_for<Dcqcn>();
};
}  // namespace

const config::Object<SwitchBuffer>& table(config::Type<SwitchBuffer>) {
  static const auto object =
      config::Object<SwitchBuffer>("switch buffer", "Shared buffer of an Ethernet switch")
          .field("total", &SwitchBuffer::total, "Whole buffer of every switch",
                 default_text("the switch's own in configs/hardware/switches.json, 32 MB where it has none"))
          .field("reserve", &SwitchBuffer::reserve, "Per port and priority, before the shared pool",
                 in_a_buffer())
          .field("headroom", &SwitchBuffer::headroom, "Per port and priority, for what PFC finds under way",
                 default_text("3 x rate x link delay, at least 2 frames"), in_a_buffer())
          .field("cut_through", &SwitchBuffer::cut_through, "Forward before the frame is complete")
          .shorthand("total");
  return object;
}
const config::Object<Pfc>& table(config::Type<Pfc>) {
  static const auto object =
      config::Object<Pfc>("pfc", "Priority flow control (IEEE 802.1Qbb)")
          .field("enabled", &Pfc::enabled, "Pause instead of drop")
          .field("alpha", &Pfc::alpha, "Dynamic threshold: share of the free shared buffer", positive())
          .field("xoff", &Pfc::xoff, "Static threshold instead of the dynamic one")
          .field("resume_offset", &Pfc::resume_offset, "Resume this far below the threshold", in_a_buffer())
          .field("deadlock_after", &Pfc::deadlock_after, "Look for a cycle after a pause this long");
  return object;
}
const config::Object<Ecn>& table(config::Type<Ecn>) {
  static const auto object =
      config::Object<Ecn>("ecn", "Marking: 0 up to kmin, pmax at kmax, all above")
          .field("enabled", &Ecn::enabled, "Mark packets")
          .field("kmin", &Ecn::kmin, "Queue where marking begins",
                 default_text("100 KB x rate / 25 Gbit/s, kmax where that is less"), in_a_buffer())
          .field("kmax", &Ecn::kmax, "Queue where every packet is marked",
                 default_text("400 KB x rate / 25 Gbit/s, kmin where that is more"), in_a_buffer())
          .field("pmax", &Ecn::pmax, "Probability at kmax", between(0, 1))
          .check([](const Ecn& ecn, const config::Node& node, config::Reader& reader) {
            if (ecn.kmin && ecn.kmax && *ecn.kmin > *ecn.kmax)
              reader.problem(node.find("kmin"), "kmin is above kmax",
                             "marking begins at kmin and is certain at kmax");
          });
  return object;
}
const config::Object<Dcqcn>& table(config::Type<Dcqcn>) {
  static const auto object =
      config::Object<Dcqcn>("dcqcn", "Data Center QCN (Zhu et al. 2015)")
          .field("rules", &Dcqcn::rules, "Whose update rules",
                 default_text("as the parameters' owner has them"),
                 config::names<Dcqcn::Rules>(
                     {{"paper", Dcqcn::Rules::paper}, {"connectx", Dcqcn::Rules::connectx}}))
          .field("parameters", &Dcqcn::parameters, "Whose figures hold for what is left out here",
                 default_text("paper with its rules, else connectx"), parameter_names())
          .field("g", &Dcqcn::g, "Gain of alpha", between(0, 1))
          .field("alpha_period", &Dcqcn::alpha_period, "Between updates of alpha", positive())
          .field("decrease_period", &Dcqcn::decrease_period,
                 "Under connectx' rules: shortest time between two cuts", positive())
          .field("increase_period", &Dcqcn::increase_period, "Timer of rate increase", positive())
          .field("byte_counter", &Dcqcn::byte_counter, "Bytes between rate increases; 0: none")
          .field("threshold", &Dcqcn::threshold, "Fast-recovery stages")
          .field("additive_increase", &Dcqcn::additive_increase, "Step", default_text("scales with the port"))
          .field("hyper_increase", &Dcqcn::hyper_increase, "Large step", default_text("scales with the port"))
          .field("min_rate", &Dcqcn::min_rate, "Slowest sender")
          .field("initial_alpha", &Dcqcn::initial_alpha, "Alpha before the first mark", between(0, 1))
          .field("max_cut", &Dcqcn::max_cut, "Largest share of the rate one cut takes", between(0, 1))
          .field("cnp_interval", &Dcqcn::cnp_interval, "At most one CNP per queue pair in this time")
          .field("cnp_in_ack", &Dcqcn::cnp_in_ack, "Mark every ACK instead of sending CNPs")
          .field("window", &Dcqcn::window, "Cap bytes in flight at rate x base round trip");
  return object;
}
const config::Object<Hpcc>& table(config::Type<Hpcc>) {
  static const auto object =
      config::Object<Hpcc>("hpcc", "High-precision congestion control (Li et al. 2019)")
          .field("target_utilisation", &Hpcc::target_utilisation, "Of every link", between(0, 1))
          .field("max_stage", &Hpcc::max_stage, "Additive stages before a multiplicative one")
          .field("additive_increase", &Hpcc::additive_increase, "Step", default_text("scales with the port"))
          .field("min_rate", &Hpcc::min_rate, "Slowest sender");
  return object;
}
const config::Object<Timely>& table(config::Type<Timely>) {
  static const auto object =
      config::Object<Timely>("timely", "Round-trip gradients (Mittal et al. 2015)")
          .field("alpha", &Timely::alpha, "Weight of the newest round trip", between(0, 1))
          .field("beta", &Timely::beta, "Decrease factor", between(0, 1))
          .field("t_low", &Timely::t_low, "Below: increase whatever the gradient")
          .field("t_high", &Timely::t_high, "Above: decrease whatever the gradient")
          .field("min_rtt", &Timely::min_rtt, "Round trip of an empty path", positive())
          .field("additive_increase", &Timely::additive_increase, "Step",
                 default_text("scales with the port"))
          .field("hyper_increase", &Timely::hyper_increase, "Large step",
                 default_text("scales with the port"))
          .field("min_rate", &Timely::min_rate, "Slowest sender", positive());
  return object;
}
const config::Object<Dctcp>& table(config::Type<Dctcp>) {
  static const auto object = config::Object<Dctcp>("dctcp", "Data Center TCP (Alizadeh et al. 2010)")
                                 .field("g", &Dctcp::g, "Gain of alpha", between(0, 1))
                                 .field("additive_increase", &Dctcp::additive_increase, "Step")
                                 .field("min_rate", &Dctcp::min_rate, "Slowest sender");
  return object;
}
const config::Object<InfinibandCc>& table(config::Type<InfinibandCc>) {
  static const auto object =
      config::Object<InfinibandCc>("infiniband congestion control", "IBTA annex A10")
          .field("threshold", &InfinibandCc::threshold, "15 marks earliest", between(0, 15))
          .field("marking_rate", &InfinibandCc::marking_rate, "Packets between two marks")
          .field("increase", &InfinibandCc::increase, "Table steps per mark")
          .field("limit", &InfinibandCc::limit, "Last step of the table")
          .field("timer", &InfinibandCc::timer, "Between two steps back", positive());
  return object;
}
const config::Object<CongestionControl>& table(config::Type<CongestionControl>) {
  using Kind = CongestionControlKind;
  static const auto object = config::Object<CongestionControl>("congestion control", "How senders slow down")
                                 .field("name", &CongestionControl::kind, "Algorithm",
                                        default_text("dcqcn on Ethernet, none on InfiniBand"),
                                        config::names<Kind>({{"none", Kind::none},
                                                             {"dcqcn", Kind::dcqcn},
                                                             {"hpcc", Kind::hpcc},
                                                             {"timely", Kind::timely},
                                                             {"dctcp", Kind::dctcp},
                                                             {"infiniband", Kind::infiniband}}))
                                 .field("dcqcn", &CongestionControl::dcqcn, "Its parameters",
                                        config::CodecPtr<Dcqcn>(std::make_shared<DcqcnCodec>()))
                                 .field("hpcc", &CongestionControl::hpcc, "Its parameters")
                                 .field("timely", &CongestionControl::timely, "Its parameters")
                                 .field("dctcp", &CongestionControl::dctcp, "Its parameters")
                                 .field("infiniband", &CongestionControl::infiniband, "Its parameters")
                                 .shorthand("name");
  return object;
}
const config::Object<VirtualLanes>& table(config::Type<VirtualLanes>) {
  static const auto object =
      config::Object<VirtualLanes>("virtual lanes", "InfiniBand data lanes")
          .field("count", &VirtualLanes::count, "Data lanes",
                 between(1, static_cast<double>(kMaxClasses) - 1))
          .field("buffer", &VirtualLanes::buffer,
                 "Per port and lane, of which credits advertise 2047 x 64 B at most",
                 default_text("what keeps the link busy over its round trip"))
          .field("weight", &VirtualLanes::weight,
                 "Of each lane, from the first, in the low table: x 64 B before the next one's turn",
                 default_text("64"), config::list_of(config::codec_for<int>(between(1, 255))))
          .field("high_priority", &VirtualLanes::high_priority, "Bit mask of the lanes in the high table")
          .field("high_limit", &VirtualLanes::high_limit,
                 "x 4 KiB of the high table before one low packet; 0: one packet, 255: no limit",
                 between(0, 255))
          .shorthand("count", config::Kind::integer)
          .check([](const VirtualLanes& lanes, const config::Node& node, config::Reader& reader) {
            if (lanes.weight.size() > static_cast<std::size_t>(lanes.count))
              reader.problem(node.find("weight"), "there are more weights than lanes",
                             fmt::format("\"count\": {} lanes; one weight a lane", lanes.count));
            if (lanes.count < static_cast<int>(kMaxClasses) && (lanes.high_priority >> lanes.count) != 0)
              reader.problem(node.find("high_priority"), "the mask names lanes that there are not",
                             fmt::format("\"count\": {} lanes; bit 0 is the first: {} at most", lanes.count,
                                         (1 << lanes.count) - 1));
          });
  return object;
}
const config::Object<Loss>& table(config::Type<Loss>) {
  static const auto object =
      config::Object<Loss>("loss", "Packets lost on the wire, and how senders notice")
          .field("probability", &Loss::probability, "Of each data packet on each fabric link",
                 between(0, kMostLoss))
          .field("nack_interval", &Loss::nack_interval, "Go-back-N: one NACK an expected packet in this time")
          .field("timeout", &Loss::timeout, "Retransmission timeout", positive())
          .field("timeout_low", &Loss::timeout_low, "The same with few packets in flight", positive())
          .field("reorder_window", &Loss::reorder_window, "Packets overtaken before a gap counts as a loss");
  return object;
}
}  // namespace topsim::network::packet

namespace topsim::scenario {
namespace packet = network::packet;

const config::Object<PacketSection>& table(config::Type<PacketSection>) {
  static const auto object =
      config::Object<PacketSection>("packet", "Settings of the packet model")
          .field("mtu", &PacketSection::mtu, "Payload of a full packet, on every model",
                 config::default_text("4096 B"), config::between(256, 65536))
          .field("header_bytes", &PacketSection::header,
                 "Around the payload, stored and sent, on every model",
                 config::default_text("62 B on Ethernet and a gap of 20 B, 26 B on InfiniBand"),
                 packet::beside_the_payload())
          .field("gap_bytes", &PacketSection::gap, "Preamble and gap: sent, never stored",
                 config::default_text("20 B on Ethernet; 0 B beside header_bytes and on InfiniBand"),
                 packet::beside_the_payload())
          .field("ack_bytes", &PacketSection::ack, "Whole acknowledgement as stored",
                 config::default_text("66 B on Ethernet, 30 B on InfiniBand"), packet::beside_the_payload())
          .field("cnp_bytes", &PacketSection::cnp, "Whole congestion notification as stored",
                 config::default_text("78 B on Ethernet, 42 B on InfiniBand"), packet::beside_the_payload())
          .field("telemetry_bytes", &PacketSection::telemetry, "HPCC alone: on data and acknowledgements",
                 config::default_text("42 B: five hops of 8 B and 2 B"), packet::beside_the_payload())
          .field(
              "flow_control", [](auto& s) -> auto& { return s.spec.flow_control; }, "What a full buffer does",
              config::default_text("pfc on Ethernet, credit on InfiniBand"),
              config::names<packet::FlowControl>({{"none", packet::FlowControl::none, "drops"},
                                                  {"pfc", packet::FlowControl::pfc},
                                                  {"credit", packet::FlowControl::credit}}))
          .field(
              "switch_buffer", [](auto& s) -> auto& { return s.spec.buffer; }, "Shared buffer of a switch")
          .field(
              "pfc", [](auto& s) -> auto& { return s.spec.pfc; }, "Priority flow control")
          .field(
              "ecn", [](auto& s) -> auto& { return s.spec.ecn; }, "Congestion marks")
          .field(
              "congestion_control", [](auto& s) -> auto& { return s.spec.congestion_control; },
              "How senders slow down")
          .field(
              "virtual_lanes", [](auto& s) -> auto& { return s.spec.lanes; }, "InfiniBand data lanes")
          .field(
              "loss", [](auto& s) -> auto& { return s.spec.loss; }, "Packets lost on the wire")
          .field(
              "path", [](auto& s) -> auto& { return s.spec.path; }, "Which of the equal paths a packet takes",
              config::default_text("as topology.fabric.routing says"),
              config::names<packet::PathChoice>({{"flow-hash", packet::PathChoice::flow_hash},
                                                 {"destination", packet::PathChoice::destination},
                                                 {"flowlet", packet::PathChoice::flowlet},
                                                 {"spray", packet::PathChoice::spray},
                                                 {"adaptive", packet::PathChoice::adaptive}}))
          .field(
              "recovery", [](auto& s) -> auto& { return s.spec.recovery; }, "What a gap causes",
              config::default_text("go-back-n where packets keep their order"),
              config::names<packet::Recovery>({{"go-back-n", packet::Recovery::go_back_n},
                                               {"selective-repeat", packet::Recovery::selective_repeat}}))
          .field(
              "flowlet_gap", [](auto& s) -> auto& { return s.spec.flowlet_gap; },
              "Pause that begins a flowlet")
          .field(
              "queue_pairs", [](auto& s) -> auto& { return s.spec.queue_pairs; },
              "Per connection (NCCL_IB_QPS_PER_CONNECTION)", config::between(1, 256))
          .field(
              "ack_every", [](auto& s) -> auto& { return s.spec.ack_every; },
              "Packets an ACK; 0: one a message")
          .field(
              "control_first", [](auto& s) -> auto& { return s.spec.control_first; },
              "ACK and CNP in a class of their own, before all others",
              config::default_text("true on Ethernet, false on InfiniBand"));
  return object;
}

packet::PacketSpec PacketSection::resolved(bool infiniband) const {
  packet::PacketSpec result = spec;
  packet::Framing framing = infiniband ? packet::Framing::infiniband() : packet::Framing::roce();
  framing.mtu = mtu.value_or(framing.mtu);
  framing.gap = gap.value_or(header ? Bytes{} : framing.gap);
  framing.header = header.value_or(framing.header);
  framing.ack = ack.value_or(framing.ack);
  framing.cnp = cnp.value_or(framing.cnp);
  framing.telemetry = telemetry.value_or(framing.telemetry);
  result.framing = framing;
  return result;
}
}  // namespace topsim::scenario
