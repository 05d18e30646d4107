// Decides what a specification leaves open, from the graph and from its other settings.
#include <fmt/format.h>

#include <algorithm>

#include "sim/base/error.hpp"
#include "sim/network/packet/core.hpp"

namespace topsim::network::packet {
namespace {
// Marking thresholds grow with the rate: `bytes` at `rate` bit/s. [HPCC] run.py gives every port 100 and 400
// KB at 25 Gbit/s as kmin and kmax, and 30 KB at 10 Gbit/s as both under DCTCP.
struct QueueRule {
  double bytes, rate;
  [[nodiscard]] double at(double bits_a_second) const { return bytes * bits_a_second / rate; }
};
bool is_infiniband(const Graph& graph) {
  if (graph.infiniband) return *graph.infiniband;
  return std::any_of(graph.ports.begin(), graph.ports.end(),
                     [](const PortSpec& p) { return p.framed && p.flow_control == FlowControl::credit; });
}
constexpr QueueRule kMarkFrom{100e3, 25e9}, kMarkAll{400e3, 25e9}, kDctcpMarks{30e3, 10e9};
}  // namespace

MarkLevels ecn_levels(const PortSpec& port, const PacketSpec& spec, CongestionControlKind congestion) {
  const bool dctcp = congestion == CongestionControlKind::dctcp;
  const bool heard = dctcp || congestion == CongestionControlKind::dcqcn;
  if (!port.marks || !spec.ecn.enabled || !heard) return {kMarksNever, 0};
  const auto level = [&](const std::optional<Bytes>& given, const QueueRule& rule) {
    const double bits = port.rate.value() * 8;
    return static_cast<std::uint32_t>(given ? static_cast<double>(given->value()) : rule.at(bits));
  };
  MarkLevels levels{level(spec.ecn.kmin, dctcp ? kDctcpMarks : kMarkFrom),
                    level(spec.ecn.kmax, dctcp ? kDctcpMarks : kMarkAll)};
  // The level that is given holds; the other one goes with it.
  if (!spec.ecn.kmin) levels.from = std::min(levels.from, levels.all);
  if (!spec.ecn.kmax) levels.all = std::max(levels.all, levels.from);
  return levels;
}

Framing framing_of(const Graph& graph, const PacketSpec& spec) {
  return spec.framing.value_or(is_infiniband(graph) ? Framing::infiniband() : Framing::roce());
}

Settings settle_spec(const Graph& graph, const PacketSpec& spec) {
  const bool infiniband = is_infiniband(graph);
  Settings s;
  s.framing = framing_of(graph, spec);
  s.congestion = spec.congestion_on(infiniband);
  s.path = spec.path.value_or(PathChoice::flow_hash);
  s.recovery = spec.recovery_on(s.path);
  // On several paths a packet that overtakes is no sign of loss: unless the spec says otherwise, only the
  // timer is.
  s.reorder_window = spec.loss.reorder_window ? static_cast<std::uint32_t>(*spec.loss.reorder_window)
                                              : (PacketSpec::reorders(s.path) ? kNone : 3U);
  if (spec.lanes.count < 1 || spec.lanes.count >= static_cast<int>(kMaxClasses)) {
    throw ConfigError(fmt::format("{} virtual lanes or priorities cannot be modelled", spec.lanes.count),
                      fmt::format("use 1 to {}", kMaxClasses - 1));
  }
  s.classes = 1 + static_cast<std::uint32_t>(spec.lanes.count);
  for (std::size_t lane = 0; lane + 1 < kMaxClasses; ++lane)
    s.weight[lane + 1] = (lane < spec.lanes.weight.size() ? spec.lanes.weight[lane] : 64) * 64;
  // A window smaller than the number of packets per ACK would never open again.
  const bool windows = s.congestion == CongestionControlKind::hpcc ||
                       s.congestion == CongestionControlKind::dctcp ||
                       (s.congestion == CongestionControlKind::dcqcn && spec.congestion_control.dcqcn.window);
  s.ack_every = windows ? 1 : static_cast<std::uint32_t>(std::max(spec.ack_every, 0));
  s.control_first = spec.control_first.value_or(!infiniband);
  const auto telemetry = s.congestion == CongestionControlKind::hpcc ? s.framing.telemetry : Bytes{};
  s.mtu = static_cast<std::uint32_t>(s.framing.mtu.value());
  s.header = static_cast<std::uint32_t>((s.framing.header + telemetry).value());
  s.ack = static_cast<std::uint32_t>((s.framing.ack + telemetry).value());
  s.cnp = static_cast<std::uint32_t>(s.framing.cnp.value());
  if (s.mtu == 0 || s.mtu + s.header > 0xffff) {
    throw ConfigError(fmt::format("an MTU of {} bytes cannot be modelled", s.mtu), "use 256 B to 9216 B");
  }
  const Dcqcn& dcqcn = spec.congestion_control.dcqcn;
  s.notifies = s.congestion == CongestionControlKind::infiniband ||
               (s.congestion == CongestionControlKind::dcqcn && !dcqcn.cnp_in_ack);
  s.notification_interval = s.congestion == CongestionControlKind::dcqcn ? dcqcn.cnp_interval.count() : 0;
  s.echoes_marks = s.congestion == CongestionControlKind::dctcp ||
                   (s.congestion == CongestionControlKind::dcqcn && dcqcn.cnp_in_ack);
  s.lossy = spec.loss.probability > 0 ||
            std::any_of(graph.ports.begin(), graph.ports.end(),
                        [](const PortSpec& p) { return p.flow_control == FlowControl::none; });
  return s;
}
}  // namespace topsim::network::packet
