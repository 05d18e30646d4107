// The set-up of runs of ns-3 (aliyun/ns-3-alibabacloud; README.md) and small helpers.
#pragma once

#include "sim/network/packet/experiments.hpp"

namespace topsim::network::packet {

inline LinkFigures ns3_link(FlowControl flow_control = FlowControl::pfc) {
  return {100_Gbitps, 1_us, flow_control};
}

inline PacketSpec ns3_spec(CongestionControlKind kind) {
  PacketSpec spec;
  spec.framing = Framing::ns3();
  spec.buffer.cut_through = false;
  spec.congestion_control.kind = kind;
  return spec;
}

inline PacketSpec ns3_dcqcn(const Dcqcn& rules) {
  PacketSpec spec = ns3_spec(CongestionControlKind::dcqcn);
  spec.congestion_control.dcqcn = rules;
  return spec;
}

// "dcqcn_paper" of the HPCC simulation's run.py: its vendor rules with the paper's periods.
inline Dcqcn ns3_paper() {
  Dcqcn rules = Dcqcn::hpcc_vendor();
  rules.alpha_period = 50_us, rules.decrease_period = 50_us, rules.increase_period = 55_us;
  return rules;
}
}  // namespace topsim::network::packet
