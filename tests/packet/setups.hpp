// The set-up of published runs of ns-3 (aliyun/ns-3-alibabacloud; README.md), and small helpers.
#pragma once

#include "sim/network/packet/experiments.hpp"

namespace topsim::network::packet {
using namespace topsim::literals;  // for all tests of this folder

// The framing of the HPCC and SimAI simulators: 52 bytes around 1000, ACK 60, no gap ([HPCC] of spec.hpp).
inline Framing ns3_framing() {
  return {1000_B, 52_B, 0_B, 60_B, 60_B, 64_B, 42_B};
}

inline LinkFigures ns3_link(FlowControl flow_control = FlowControl::pfc) {
  return {100_Gbitps, 1_us, flow_control};
}

inline PacketSpec ns3_spec(CongestionControlKind kind) {
  PacketSpec spec;
  spec.framing = ns3_framing();
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
