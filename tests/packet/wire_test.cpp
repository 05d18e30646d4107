// One flow on an idle path: headers, goodput, latency.
#include <gtest/gtest.h>

#include "tests/packet/patterns.hpp"
#include "tests/packet/setups.hpp"

namespace topsim::network::packet::wire_test {
LinkFigures link_400g(FlowControl control) {
  return {400_Gbitps, 500_ns, control};
}
PacketSpec quiet() {
  PacketSpec spec;
  spec.congestion_control.kind = CongestionControlKind::none;
  return spec;
}

// Goodput is mtu / (mtu + 82) of 50 GB/s with RoCEv2 (Ethernet 14, IPv4 20, UDP 8, BTH 12, ICRC 4, FCS 4,
// preamble 8, gap 12) and mtu / (mtu + 26) with InfiniBand (LRH 8, BTH 12, ICRC 4, VCRC 2). IBTA volume 1;
// annex A17.
TEST(Goodput, OfA400gFlowIsThePayloadsShareOfTheWire) {
  const struct {
    std::int64_t mtu;
    double roce, infiniband;
  } rows[] = {{1024, 46.29, 48.76}, {2048, 48.08, 49.37}, {4096, 49.02, 49.68}};
  for (const auto& row : rows) {
    for (const FlowControl control : {FlowControl::pfc, FlowControl::credit}) {
      PacketSpec spec = quiet();
      spec.framing = control == FlowControl::pfc ? Framing::roce() : Framing::infiniband();
      spec.framing->mtu = Bytes(row.mtu);
      const Outcome outcome = incast(1, Bytes(200'000'000), link_400g(control), spec);
      const double expected = control == FlowControl::pfc ? row.roce : row.infiniband;
      EXPECT_NEAR(outcome.flows[0].goodput / 1e9, expected, 1e-3 * expected);
    }
  }
}

// Host, switch, host at 50 GB/s: 4096 + 82 bytes take 83.56 ns, 4096 + 26 bytes 82.44 ns. Store and forward
// takes that twice, cut-through once; both take two links of 500 ns.
TEST(Latency, OfOnePacketCountsItsSerialisationOnceWhenSwitchesCutThrough) {
  PacketSpec spec = quiet();
  EXPECT_EQ(incast(1, 4_KiB, link_400g(FlowControl::pfc), spec).last_delivered, Duration(1'000'000 + 83'560));
  EXPECT_EQ(incast(1, 4_KiB, link_400g(FlowControl::credit), spec).last_delivered,
            Duration(1'000'000 + 82'440));
  spec.buffer.cut_through = false;
  EXPECT_EQ(incast(1, 4_KiB, link_400g(FlowControl::pfc), spec).last_delivered,
            Duration(1'000'000 + 2 * 83'560));
}

// From a slow link into a fast one, no byte may be sent before it has come. 4178 B take 334.24 ns at
// 100 Gbit/s and 83.56 ns at 400, so the fast link may start 250.68 ns after the head has arrived, and ends
// with the slow one.
TEST(Latency, OfCutThroughIntoAFasterLinkIsThatOfTheSlowerOne) {
  Graph graph;
  const DeviceIndex a = graph.device(), s = graph.device(), b = graph.device();
  graph.cable(a, s, 100_Gbitps, 500_ns);
  graph.cable(s, b, 400_Gbitps, 500_ns);
  Engine engine(graph, quiet());
  engine.send(engine.connect({a, b}), 4_KiB, SimTime{}, 0);
  engine.run();
  EXPECT_EQ(engine.delivered().at(0).time.time_since_epoch(), Duration(1'000'000 + 334'240));
}

TEST(Latency, OfAMessageWithoutBytesIsThatOfItsHeader) {
  // 82 B at 50 GB/s = 1.64 ns.
  EXPECT_EQ(incast(1, 0_B, link_400g(FlowControl::pfc), quiet()).last_delivered, Duration(1'000'000 + 1'640));
}

// The fluid model on an idle path: bytes over goodput plus the links' latency. Packets differ by less than
// one packet's time, 82.44 ns.
TEST(IdlePath, AgreesWithTheFluidModelWithinOnePacketTime) {
  const Fabric fabric = fat_tree(4, link_400g(FlowControl::credit));
  for (const std::int64_t bytes : {1, 4096, 100'000, 10'000'000}) {
    const Outcome outcome = run_flows(fabric, {{0, 15, Bytes(bytes)}}, quiet());  // six links
    const Duration fluid = Bytes(bytes) / BytesPerSecond(50e9 * 4096 / 4122) + 3_us;
    EXPECT_NEAR(static_cast<double>((outcome.last_delivered - fluid).count()), 0, 82'440) << bytes;
  }
}

TEST(IdlePath, CostsOneEventAHop) {
  const Fabric fabric = fat_tree(4, link_400g(FlowControl::pfc));
  const Outcome outcome = run_flows(fabric, {{0, 15, 10_MiB}}, quiet());
  // 2560 packets and as many ACKs over six links each; one more event starts the message.
  EXPECT_EQ(outcome.counters.hops, 2560U * 2 * 6);
  EXPECT_EQ(outcome.counters.events, outcome.counters.hops + 1);
}

// The PCIe hop is slower than the network and limits the rate: 25 GB/s of payload, without framing.
TEST(Hosts, BehindASlowBusSendAtItsPaceAndLoseNothing) {
  Graph graph;
  const DeviceIndex gpu = graph.device(), nic = graph.device(), sw = graph.device(), far = graph.device();
  const PortIndex bus = graph.cable(gpu, nic, BytesPerSecond(25e9), 300_ns, FlowControl::credit);
  graph.ports[bus].framed = graph.ports[bus + 1].framed = false;
  graph.cable(nic, sw, 400_Gbitps, 500_ns);
  graph.cable(sw, far, 400_Gbitps, 500_ns);
  for (const bool towards : {true, false}) {
    Engine engine(graph, quiet());
    engine.send(towards ? engine.connect({gpu, far}) : engine.connect({far, gpu}), 100_MiB, SimTime{}, 0);
    engine.run();
    const double seconds_taken = seconds(engine.delivered().at(0).time.time_since_epoch());
    EXPECT_NEAR(100.0 * 1048576 / seconds_taken, 25e9, 25e9 * 1e-3);
    EXPECT_EQ(engine.counters().drops, 0U);
    EXPECT_EQ(engine.leak(), "");
    // Towards the slow bus, PFC pauses the switch, because the NIC cannot drain what comes in.
    if (!towards) {
      EXPECT_GT(engine.counters().pauses, 0U);
    }
  }
}
}  // namespace topsim::network::packet::wire_test
