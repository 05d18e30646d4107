#include "sim/scenario/findings/packet_findings.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <set>
#include <string>

#include "sim/network/packet/packet_network.hpp"
#include "sim/scenario/read/read.hpp"

namespace topsim::scenario {
namespace {
namespace packet = network::packet;
using packet::CongestionControlKind;
using packet::FlowControl;
using topology::DeviceKind;
using topology::LinkKind;

const std::string kSection = "network.packet.";

class Check {
 public:
  Check(const Scenario& scenario, const topology::Topology& topology)
      : scenario_(scenario), topology_(topology), spec_(scenario.network.packet.spec) {
    infiniband_ = topology.fabric_is_infiniband;
    control_ = spec_.flow_control_on(infiniband_);
    congestion_ = spec_.congestion_on(infiniband_);
  }

  std::vector<report::Finding> all() {
    packet_size();
    if (!scenario_.network.traits().packets) {
      unused();
      return std::move(found_);
    }
    flow_control();
    congestion_control();
    recovery();
    other_transport();
    unknown_buffers();
    return std::move(found_);
  }

 private:
  // " at 14:9" if the file contains the key; "" if --set does; nullopt if neither does.
  [[nodiscard]] std::optional<std::string> place_of(const std::string& key) const {
    if (!scenario_.document) return {};
    const config::Node node = scenario_.document->root().at_path(kSection + key);
    if (!node) return {};
    const Place place = node.key_place();
    if (place.file != scenario_.document->name()) return std::string();
    return fmt::format(" at {}:{}", place.line, place.column);
  }
  void say(report::Severity severity, const std::string& key, const std::string& message,
           const std::string& remedy) {
    found_.push_back({severity, message, kSection + key, remedy});
  }
  void idle(const std::string& key, const std::string& why, const std::string& remedy) {
    if (const auto place = place_of(key))
      say(report::Severity::warning, key,
          fmt::format("{}{}{} changes nothing: {}", kSection, key, *place, why), remedy);
  }

  // The payload of a full RDMA packet is a path MTU (IBTA vol. 1, 7.7.8; RoCEv2 has InfiniBand's).
  void packet_size() {
    const auto mtu = scenario_.network.packet.mtu;
    constexpr std::array<std::int64_t, 5> kPathMtus = {256, 512, 1024, 2048, 4096};
    if (!mtu || std::find(kPathMtus.begin(), kPathMtus.end(), mtu->value()) != kPathMtus.end()) return;
    const auto place = place_of("mtu");
    if (!place) return;
    say(infiniband_ ? report::Severity::warning : report::Severity::note, "mtu",
        fmt::format("{}mtu{} is {} B, and {} packets carry 256, 512, 1024, 2048 or 4096 B at most", kSection,
                    *place, mtu->value(), infiniband_ ? "InfiniBand's" : "RDMA's"),
        "4096 B is what fabrics run with; leave it out");
  }

  // A result echoes its scenario with the defaults written out, which nobody said.
  [[nodiscard]] static bool is_default(const config::Node& given) {
    static const nlohmann::json defaults = nlohmann::json::parse(to_json(Scenario{}))["network"]["packet"];
    const auto usual = defaults.find(given.key());  // objects are equal in any order
    return usual != defaults.end() && *usual == nlohmann::json::parse(config::to_text(given.value(), 0));
  }

  // Under a model that shares links as fluids do. A file may hold them for whoever runs it with --network
  // packet; whoever sets one has been misunderstood.
  void unused() {
    if (!scenario_.document) return;
    const config::Node section = scenario_.document->root().at_path("network.packet");
    constexpr std::array<std::string_view, 4> kOfEveryModel = {"queue_pairs", "mtu", "header_bytes",
                                                               "gap_bytes"};
    // Where packets choose their path, the flow model's losses depend on when PFC stops senders.
    const bool chosen =
        topology_.routing == topology::Routing::adaptive || topology_.routing == topology::Routing::spray;
    const bool pauses = chosen && control_ == FlowControl::pfc && scenario_.network.calibrated();
    std::vector<std::string> keys;
    bool set = false;
    for (std::size_t i = 0; i < section.size(); ++i) {
      const std::string& key = section[i].key();
      if (config::is_remark(key) || key == "description" ||
          std::find(kOfEveryModel.begin(), kOfEveryModel.end(), key) != kOfEveryModel.end() ||
          (pauses && (key == "switch_buffer" || key == "pfc")))
        continue;
      if (is_default(section[i])) continue;
      keys.push_back(key);
      set = set || section[i].key_place().file == "--set";
    }
    if (keys.empty()) return;
    // configs/calibration was measured with what a fabric runs where nothing is said.
    const bool calibrated = std::find(keys.begin(), keys.end(), "congestion_control") != keys.end() &&
                            scenario_.network.calibrated();
    const std::string losses =
        !calibrated   ? ""
        : infiniband_ ? ", whose calibrated losses are those without congestion control"
                      : ", whose calibrated losses are those of DCQCN with its default parameters";
    say(set ? report::Severity::warning : report::Severity::note, keys.front(),
        fmt::format("{}{} change{} nothing: network.model is {}{}", kSection, fmt::join(keys, ", "),
                    keys.size() == 1 ? "s" : "", scenario_.network.model, losses),
        calibrated ? "--network packet simulates every packet; network.contention=ideal leaves the losses out"
                   : "--network packet simulates every packet");
  }

  void flow_control() {
    if (infiniband_ && control_ != FlowControl::credit)
      if (const auto place = place_of("flow_control"))
        say(report::Severity::warning, "flow_control",
            fmt::format("{}flow_control{}: InfiniBand has credits, and is simulated as if it had not",
                        kSection, *place),
            "leave it out, or give topology.fabric.link a RoCE link");
    if (control_ == FlowControl::credit) {
      const std::string why = infiniband_ ? "InfiniBand's ports have credits, no pauses and no shared buffer"
                                          : "flow_control is credit, without pauses or a shared buffer";
      const std::string remedy = "virtual_lanes.buffer says how much a port holds; or take a RoCE link";
      idle("pfc", why, remedy);
      // Cut-through applies to every kind of switch.
      const auto section = place_of("switch_buffer");
      const bool parts = place_of("switch_buffer.total") || place_of("switch_buffer.reserve") ||
                         place_of("switch_buffer.headroom");
      if (section && (parts || !place_of("switch_buffer.cut_through"))) idle("switch_buffer", why, remedy);
    } else {
      idle("virtual_lanes.buffer",
           "lanes have buffers of their own under credits alone, which InfiniBand has",
           "switch_buffer is what the ports of an Ethernet switch share");
    }
  }

  void congestion_control() {
    using Kind = CongestionControlKind;
    struct Named {
      Kind kind;
      const char* key;
    };
    constexpr Named kNamed[] = {{Kind::dcqcn, "dcqcn"},
                                {Kind::hpcc, "hpcc"},
                                {Kind::timely, "timely"},
                                {Kind::dctcp, "dctcp"},
                                {Kind::infiniband, "infiniband"}};
    std::string running = "none";
    for (const Named& each : kNamed)
      if (each.kind == congestion_) running = each.key;
    for (const Named& each : kNamed)
      if (each.kind != congestion_)
        idle(std::string("congestion_control.") + each.key, "the congestion control that runs is " + running,
             fmt::format("\"congestion_control\": {{\"name\": \"{}\"}} runs it", each.key));
    const packet::Dcqcn& dcqcn = spec_.congestion_control.dcqcn;
    if (congestion_ == Kind::dcqcn && dcqcn.rules == packet::Dcqcn::Rules::paper &&
        dcqcn.decrease_period != packet::Dcqcn::of(dcqcn.parameters).decrease_period)
      idle("congestion_control.dcqcn.decrease_period", "by the paper's rules every notification is a cut",
           "cnp_interval is the time between notifications; \"rules\": \"connectx\" has a period of cuts");
    if (congestion_ != Kind::dcqcn && congestion_ != Kind::dctcp)
      idle("ecn",
           running == "none" ? "no congestion control heeds marks here"
                             : running + " does not go by the marks of ecn",
           "\"congestion_control\": \"dcqcn\" and dctcp do");
    const bool strange =
        infiniband_ ? congestion_ == Kind::hpcc || congestion_ == Kind::timely || congestion_ == Kind::dctcp
                    : congestion_ == Kind::infiniband;
    if (strange)
      say(report::Severity::warning, "congestion_control",
          fmt::format("{}congestion_control is {}, which {} does not have; it is simulated as if it had",
                      kSection, running, infiniband_ ? "InfiniBand" : "Ethernet"),
          infiniband_ ? "none is what subnet managers ship, infiniband what they can switch on"
                      : "dcqcn is what RoCE adapters ship");
  }

  void recovery() {
    const packet::PathChoice path = spec_.path.value_or(packet::usual_path(topology_.routing));
    const packet::Recovery recovery = spec_.recovery_on(path);
    if (recovery == packet::Recovery::go_back_n)
      idle("loss.reorder_window", "recovery is go-back-n", "\"recovery\": \"selective-repeat\" has one");
    else
      idle("loss.nack_interval", "recovery is selective-repeat", "\"recovery\": \"go-back-n\" has one");
    if (path != packet::PathChoice::flowlet)
      idle("flowlet_gap", "packets do not go by flowlets", "\"path\": \"flowlet\" makes them");
  }

  // Ethernet with other transports (Slingshot, EFA, TCP) is simulated as RoCE.
  void other_transport() {
    if (control_ == FlowControl::none && congestion_ == CongestionControlKind::none) return;
    for (std::size_t l = 0; l < topology_.links().size(); ++l) {
      const topology::Link& link = topology_.links()[l];
      if (link.kind != LinkKind::ethernet || topology_.device(link.to).kind != DeviceKind::fabric_switch)
        continue;
      const topology::LinkType& type = topology_.type_of(LinkId(l));
      if (type.transport == "roce" || type.transport.empty()) return;
      return say(report::Severity::note, "congestion_control",
                 fmt::format("packets on {} go as RoCE's do, {}under {}: its own transport and congestion "
                             "control are not modelled",
                             type.label, control_ == FlowControl::pfc ? "with PFC and " : "",
                             congestion_ == CongestionControlKind::dcqcn ? "DCQCN" : "what was asked for"),
                 "network.packet.congestion_control says another one, or none");
    }
  }

  void unknown_buffers() {
    if (control_ == FlowControl::credit || spec_.buffer.total) return;
    std::set<std::string> models;
    for (std::size_t d = 0; d < topology_.devices().size(); ++d) {
      const DeviceId device(static_cast<std::uint32_t>(d));
      if (topology_.device(device).kind == DeviceKind::fabric_switch &&
          topology_.facts_of(device).buffer.value() == 0)
        models.insert(topology_.model_of(device));
    }
    if (models.empty()) return;
    say(report::Severity::note, "switch_buffer",
        fmt::format("the packet buffer of {} is not known: {} is assumed", fmt::join(models, ", "),
                    config::to_text(packet::SwitchBuffer::kUsual)),
        "network.packet.switch_buffer says what the ports of each switch share");
  }

  const Scenario& scenario_;
  const topology::Topology& topology_;
  const packet::PacketSpec& spec_;
  bool infiniband_ = false;
  FlowControl control_ = FlowControl::pfc;
  CongestionControlKind congestion_ = CongestionControlKind::none;
  std::vector<report::Finding> found_;
};
}  // namespace

std::vector<report::Finding> packet_findings(const Scenario& scenario, const topology::Topology& topology) {
  return Check(scenario, topology).all();
}
}  // namespace topsim::scenario
