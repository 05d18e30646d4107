// Message patterns as a user asks for them: the text of a scenario in, figures of formulas and papers out.
#include "sim/scenario/bench/traffic.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "sim/config/reader.hpp"
#include "sim/scenario/bench/bench.hpp"
#include "sim/scenario/read/read.hpp"
#include "tests/scenario/traffic_clusters.hpp"

namespace topsim::scenario::traffic_test {
using namespace topsim::literals;
using namespace traffic_clusters;
namespace packet = network::packet;

// Settings of the published ns-3 runs: 100 Gbit/s, 1 us per link, 52 bytes around 1000, store and forward.
Scenario published(const std::string& congestion_control) {
  return scenario_of("2", R"({"use": "roce-100g", "latency": "1 us"})",
                     R"({"mtu": "1000 B", "header_bytes": "52 B", "ack_bytes": "60 B",
                         "switch_buffer": {"cut_through": false}, "congestion_control": )" +
                         congestion_control + "}");
}

Duration last_acknowledged(const Traffic& traffic) {
  Duration last{};
  for (const TrafficFlow& flow : traffic.flows) last = std::max(last, flow.acknowledged.value_or(Duration{}));
  return last;
}

TrafficOptions incast(int senders) {
  TrafficOptions options;
  options.sizes = {Bytes(10'000'000)};
  options.senders = senders;
  options.textbook = true;
  return options;
}

// N x 10^4 packets of 1052 B at 12.5 GB/s, one more serialisation, two ACKs of 4.8 ns each, four links of 1
// us.
TEST(Traffic, IncastWithPfcAloneTakesThePublishedClosedForm) {
  for (const int n : {1, 2, 4, 8, 16}) {
    const Traffic traffic =
        run_traffic(published(R"("none")"), catalogue(), TrafficPattern::incast, incast(n));
    const double expected = n * 1e4 * 0.084 + 0.084 + 0.008 + 4;  // us, of whole nanoseconds as published
    EXPECT_NEAR(microseconds(last_acknowledged(traffic)), expected, 3e-3 * expected) << n;
    EXPECT_GT(traffic.fairness, 0.999);
    EXPECT_EQ(traffic.queues->drops, 0U);
  }
}

TEST(Traffic, IncastUnderCongestionControlIsWithinATenthOfThePublishedRuns) {
  const struct {
    const char* control;
    double last_us[4];  // 2, 4, 8, 16 senders
  } rows[] = {
      {R"({"name": "dcqcn", "dcqcn": {"parameters": "hpcc-vendor"}})", {2265, 4077, 8027, 15107}},
      {R"("hpcc")", {1849, 3696, 7398, 14815}},
      {R"("dctcp")", {1684, 3364, 6726, 13461}},
  };
  const int senders[] = {2, 4, 8, 16};
  for (const auto& row : rows) {
    for (int i = 0; i < 4; ++i) {
      SCOPED_TRACE(testing::Message() << row.control << ", " << senders[i] << " senders");
      const Traffic traffic =
          run_traffic(published(row.control), catalogue(), TrafficPattern::incast, incast(senders[i]));
      EXPECT_NEAR(microseconds(last_acknowledged(traffic)), row.last_us[i], 0.1 * row.last_us[i]);
    }
  }
}

// `rules` brings its owner's parameters; values given beside it are kept.
TEST(Traffic, DcqcnTakesTheParametersOfWhoseRulesItFollows) {
  using packet::Dcqcn;
  const auto dcqcn = [](const std::string& text) {
    return published(R"({"name": "dcqcn", "dcqcn": )" + text + "}")
        .network.packet.spec.congestion_control.dcqcn;
  };
  const Dcqcn paper = dcqcn(R"({"rules": "paper"})");
  EXPECT_EQ(paper.alpha_period, 55_us);  // Zhu et al., SIGCOMM 2015
  EXPECT_EQ(paper.increase_period, 55_us);
  EXPECT_EQ(paper.byte_counter, Bytes(10'000'000));
  EXPECT_EQ(paper.threshold, 5);
  EXPECT_EQ(paper.additive_increase->value(), 40e6 / 8);
  EXPECT_EQ(paper.cnp_interval, 50_us);
  const Dcqcn changed = dcqcn(R"({"threshold": 3, "rules": "paper"})");
  EXPECT_EQ(changed.threshold, 3);
  EXPECT_EQ(changed.alpha_period, 55_us);
  EXPECT_TRUE(dcqcn(R"({"parameters": "simai"})").window);
  EXPECT_EQ(dcqcn(R"({"parameters": "hpcc-vendor"})").byte_counter, Bytes(0));
  EXPECT_EQ(dcqcn("{}").byte_counter, Bytes(32767));
  EXPECT_EQ(dcqcn(R"({"rules": "connectx", "parameters": "paper"})").rules, Dcqcn::Rules::connectx);
}

// The trunk has half of the receiver's port, C/2, which its three senders share; the local sender has the
// other C/2.
TEST(Traffic, ParkingLotGivesEachIncomingPortTheSameShare) {
  TrafficOptions options;
  options.window = 8_ms;
  const Traffic traffic =
      run_traffic(published(R"("none")"), catalogue(), TrafficPattern::parking_lot, options);
  for (std::size_t i = 0; i < 3; ++i) EXPECT_NEAR(traffic.flows[i].goodput * 8e-9, 15.86, 0.06 * 15.86);
  EXPECT_NEAR(traffic.flows[3].goodput * 8e-9, 47.6, 0.06 * 47.6);
}

TEST(Traffic, VictimBehindPausedFlowsGetsNoMoreThanThey) {
  TrafficOptions options;
  options.window = 20_ms;
  const Traffic traffic =
      run_traffic(published(R"("none")"), catalogue(), TrafficPattern::victim_flow, options);
  EXPECT_NEAR(traffic.flows[6].goodput * 8e-9, 10.04, 0.06 * 10.04);
}

// Goodput: 50 GB/s x 4096 / (4096 + 26 or 82 B of headers) = 49.68 and 49.02 GB/s. Latency: 64 bytes in 2.8
// and 3.6 us under one leaf (DeepSeek-V3, ISCA'25, table 5).
TEST(Traffic, PointToPointPrintsGoodputAndLatencyOfTheLink) {
  const struct {
    const char* link;
    double gigabytes, us;
  } rows[] = {{R"("ib-ndr")", 49.68, 2.8}, {R"("roce-400g")", 49.02, 3.6}};
  for (const auto& row : rows) {
    TrafficOptions options;
    options.sizes = {64_B, Bytes(8 << 20)};
    const PointToPoint result = point_to_point(scenario_of("2", row.link, "{}"), catalogue(), options);
    EXPECT_NEAR(result.rows[1].bandwidth / 1e9, row.gigabytes, 1e-3 * row.gigabytes);
    EXPECT_NEAR(microseconds(result.rows[0].library), row.us, 0.01 * row.us);
  }
}

// Two NICs of a node are also joined by PCIe, but what NICs send goes out by the cable: 4096 of 4178 B of 400
// Gbit/s, 49.02 GB/s.
TEST(Traffic, PointToPointBetweenNicsOfOneNodeGoesByTheirCables) {
  for (const topology::FabricKind fabric : {topology::FabricKind::rail, topology::FabricKind::fat_tree}) {
    Scenario scenario = scenario_of("2", R"("roce-400g")", "{}");
    scenario.topology.fabric.kind = fabric;
    TrafficOptions options;
    options.from = "node0/nic0", options.to = "node0/nic3";
    options.sizes = {Bytes(4 << 20)};
    const PointToPoint result = point_to_point(scenario, catalogue(), options);
    EXPECT_NEAR(result.rows[0].bandwidth / 1e9, 49.02, 1e-3 * 49.02) << name_of(fabric);
  }
}

// A 400 Gbit/s NIC in a Gen4 x16 slot: 25.5 GB/s from memory to memory in both models. A small message
// differs from that of a wider slot only by the time of its 64 bytes (2.5 and 1.3 ns). Three senders to such
// a NIC get a third each, half of what its cable would give them.
TEST(Traffic, BetweenNicsBeginsAndEndsInTheMemoryBehindTheirSlots) {
  for (const char* model : {"packet", "flow"}) {
    Scenario scenario = scenario_of("4", R"("ib-ndr")", "{}");
    scenario.network.model = model;
    TrafficOptions options;
    options.sizes = {64_B, Bytes(8 << 20)};
    const PointToPoint wide = point_to_point(scenario, catalogue(), options);
    EXPECT_EQ(wide.note, "") << model;
    scenario.topology.node.use = "srv-8x5090-dual";  // a board whose NIC has a Gen4 slot
    scenario.topology.node.nic = "connectx-7";
    const PointToPoint narrow = point_to_point(scenario, catalogue(), options);
    EXPECT_NEAR(narrow.rows[1].bandwidth / 1e9, 25.5, 0.01 * 25.5) << model;
    EXPECT_NEAR(microseconds(narrow.rows[0].latency), microseconds(wide.rows[0].latency), 1.3e-3) << model;
    EXPECT_NE(narrow.note.find("node0/nic0 (PCIe Gen4 x16, 25.5 GB/s)"), std::string::npos) << narrow.note;
    options.sizes = {Bytes(8 << 20)};
    options.senders = 3;
    const Traffic traffic = run_traffic(scenario, catalogue(), TrafficPattern::incast, options);
    for (const TrafficFlow& flow : traffic.flows)
      EXPECT_NEAR(flow.goodput / 1e9, 25.5 / 3, 0.02 * 25.5 / 3) << model;
    ASSERT_EQ(traffic.findings.size(), 1U);
    EXPECT_NE(traffic.findings.back().find("4 of the NICs are in slots slower than their cables"),
              std::string::npos);
  }
}

// Accelerators of two nodes send through their NICs, so their message rate is that of the NICs.
TEST(Traffic, PointToPointOfAcceleratorsHasTheMessageRateOfTheirNics) {
  const Scenario scenario = scenario_of("2", R"("ib-ndr")", "{}");
  TrafficOptions options;
  options.sizes = {8_B};
  const auto rate = [&](const char* from, const char* to) {
    options.from = from, options.to = to;
    return point_to_point(scenario, catalogue(), options).rows.at(0).bandwidth;
  };
  EXPECT_DOUBLE_EQ(rate("node0/gpu0", "node1/gpu0"), rate("node0/nic0", "node1/nic0"));
}

// In the analytic model each message has the link to itself: 8 MiB take 8 MiB / 49.68 GB/s + 2.8 us.
TEST(Traffic, PointToPointHasABandwidthWhereNothingIsShared) {
  Scenario scenario = scenario_of("2", R"("ib-ndr")", "{}");
  scenario.network.model = "analytic";
  TrafficOptions options;
  options.sizes = {Bytes(8 << 20)};
  const double seconds = (8 << 20) / 49.68e9 + 2.8e-6;
  EXPECT_NEAR(point_to_point(scenario, catalogue(), options).rows[0].bandwidth, (8 << 20) / seconds, 1e8);
}

// Seven senders of 1 MiB to one port of 49.02 GB/s: 149.7 us, and the latency of one message.
TEST(Traffic, IncastOnTheScenarioTakesAsLongInPacketsAsInTheFluid) {
  Scenario scenario = scenario_of("8", R"("roce-400g")", R"({"congestion_control": "none"})");
  TrafficOptions options;
  options.sizes = {1_MiB};
  const Traffic packets = run_traffic(scenario, catalogue(), TrafficPattern::incast, options);
  scenario.network.model = "flow";
  scenario.network.contention = ContentionForm::ideal;  // nothing is cut, nothing is lost
  const Traffic fluid = run_traffic(scenario, catalogue(), TrafficPattern::incast, options);
  ASSERT_EQ(packets.flows.size(), 7U);
  EXPECT_NEAR(microseconds(packets.last), 7 * 1048576 / 49.02e9 * 1e6 + 3.6, 1.0);
  EXPECT_NEAR(seconds(packets.last) / seconds(fluid.last), 1, 0.01);
  EXPECT_FALSE(fluid.queues.has_value());
}

// Three senders of 16 MiB under PFC and DCQCN. The last link alone would need 1,027 us; senders that are
// slowed leave part of it unused. The flow model takes the loss from the calibration, and says so.
TEST(Traffic, IncastInTheFluidLosesWhatPacketsLose) {
  Scenario scenario = scenario_of("8", R"("roce-400g")", "{}");
  TrafficOptions options;
  options.sizes = {16_MiB};
  options.senders = 3;
  const Traffic packets = run_traffic(scenario, catalogue(), TrafficPattern::incast, options);
  scenario.network.model = "flow";
  const Traffic fluid = run_traffic(scenario, catalogue(), TrafficPattern::incast, options);
  scenario.network.contention = ContentionForm::ideal;
  const Traffic ideal = run_traffic(scenario, catalogue(), TrafficPattern::incast, options);
  EXPECT_NEAR(microseconds(ideal.last), 3 * 16777216 / 49.02e9 * 1e6, 6);
  EXPECT_GT(seconds(packets.last), 1.2 * seconds(ideal.last));
  EXPECT_NEAR(seconds(fluid.last) / seconds(packets.last), 1, 0.1);
  ASSERT_FALSE(fluid.findings.empty());
  EXPECT_NE(fluid.findings.back().find("ports where flows meet carry as little as"), std::string::npos);
  EXPECT_TRUE(ideal.findings.empty());
}

// A permutation over 24 boxes on leaves of 40 ports with 20 above, three fifths of the load of 2:1 above
// full. With the 114 MB of the switches 4.4 MB may wait for a port, and ECN slows senders: nothing is lost of
// 8 MiB, which end before that shows, and nearly half of 16 MiB. With 32 MB it is 1.1 MB, below what ECN
// marks (1.6 MB): senders are stopped, never slowed, and hardly anything is lost. Rows are for 2:1 and 1.5:1,
// so 15 %.
TEST(Traffic, LargeLeavesInTheFluidLoseWhatPacketsLose) {
  const config::Library library({"configs"});
  for (const char* buffer : {"114 MB", "32 MB"}) {
    for (const Bytes size : {8_MiB, 16_MiB}) {
      SCOPED_TRACE(testing::Message() << buffer << ", " << size.value());
      const std::vector<std::string> changes = {
          "topology.nodes=24",
          R"(topology.fabric={"kind": "fat-tree", "link": "roce-400g", "switch": "th4-64x400",
              "oversubscription": 2, "routing": "adaptive"})",
          std::string("network.packet.switch_buffer=") + buffer, "network.model=packet"};
      Scenario scenario = read_scenario("configs/8xH100-roce.json", changes, library);
      TrafficOptions options;
      options.sizes = {size};
      const Traffic packets = run_traffic(scenario, catalogue(), TrafficPattern::permutation, options);
      scenario.network.model = "flow";
      const Traffic fluid = run_traffic(scenario, catalogue(), TrafficPattern::permutation, options);
      EXPECT_NEAR(seconds(fluid.last) / seconds(packets.last), 1, 0.15);
    }
  }
}

// 400 Gbit/s in packets of 1 KiB: a share of 1024 / 1106 with RoCE's headers (wire_test.cpp), of 1024 / 1076
// with 52 B around each. A NIC of HPN 7.0 has two ports of 200 Gbit/s, and one queue pair uses one of them.
TEST(Traffic, GoodputOfAFlowIsTheSameInPacketsAsInTheFluid) {
  const auto goodput = [](const std::string& scenario_file, const std::vector<std::string>& changes) {
    const config::Library library({"configs"});
    Scenario scenario = read_scenario(scenario_file, changes, library);
    TrafficOptions options;
    options.sizes = {16_MiB};
    std::vector<double> rates;
    for (const char* model : {"packet", "flow", "analytic"}) {
      scenario.network.model = model;
      rates.push_back(point_to_point(scenario, catalogue(), options).rows.at(0).bandwidth / 1e9);
    }
    EXPECT_NEAR(rates[0], rates[1], 1e-3 * rates[0]);
    EXPECT_NEAR(rates[0], rates[2], 0.015 * rates[0]);  // one message at a time: 3.6 us of latency in 343
    return rates[0];
  };
  const char *roce = "configs/8xH100-roce.json", *hpn = "configs/alibaba-hpn7.json";
  EXPECT_NEAR(goodput(roce, {"network.packet.mtu=1024 B"}), 46.29, 0.01);
  EXPECT_NEAR(goodput(roce, {"network.packet.mtu=1024 B", "network.packet.header_bytes=52 B"}), 47.58, 0.01);
  EXPECT_NEAR(goodput("configs/8xH100-ib.json", {"network.packet.mtu=1024 B"}), 48.76, 0.01);
  EXPECT_NEAR(goodput(hpn, {"network.packet.queue_pairs=1"}), 24.51, 0.01);
  EXPECT_NEAR(goodput(hpn, {}), 49.02, 0.01);
}

// A permutation over 32 nodes at 1:1. Hashing puts some three flows on the busiest cable, which they share.
// Where switches hash flowlets (here every packet is one), all cables are shared evenly.
TEST(Traffic, FlowletsPartWhatHashingBringsTogether) {
  const auto last = [](const std::string& path) {
    Scenario scenario =
        scenario_of("32", R"("roce-400g", "routing": "ecmp", "tiers": 2, "nodes_per_leaf": 8)",
                    R"({"congestion_control": "none", "recovery": "selective-repeat",
                                        "loss": {"reorder_window": 1000000})" +
                        path + "}");
    TrafficOptions options;
    options.sizes = {4_MiB};
    return run_traffic(scenario, catalogue(), TrafficPattern::permutation, options).last;
  };
  const double hashed = seconds(last("")),
               flowlets = seconds(last(R"(, "path": "flowlet", "flowlet_gap": "1 ns")"));
  EXPECT_LT(flowlets, 0.7 * hashed);
  EXPECT_GT(flowlets, 4194304 / 49.02e9);
  EXPECT_GT(seconds(last(R"(, "path": "flowlet", "flowlet_gap": "1 s")")), 1.4 * flowlets);
}

// perftest includes less software than a library, so it is never slower. Across the deep-buffered chassis of
// Meta's fabric a library sees 2.6 us, two ToRs of 1 us, two CTSWs and an ATSW of 3.8 us each, and 50, 100
// and 100 m of fibre.
TEST(Traffic, PerftestIsNeverSlowerThanALibrary) {
  const config::Library library({"configs"});
  const Scenario scenario = read_scenario("configs/llama3-roce.json", {}, library);
  TrafficOptions options;
  options.sizes = {Bytes(2)};
  options.to = "node35/nic0";
  const PointToPointRow row = point_to_point(scenario, catalogue(), options).rows.at(0);
  EXPECT_LT(row.latency, row.library);
  EXPECT_NEAR(microseconds(row.library), 2.6 + 2 * 1 + 3 * 3.8 + 0.25 + 2 * 0.5, 0.01);
}

// Chips of a torus have no NICs: at most one message per latency.
TEST(Traffic, ChipsWithoutANicSendAMessageALatency) {
  const config::Library library({"configs"});
  const Scenario scenario = read_scenario("configs/tpu-v4.json", {}, library);
  TrafficOptions options;
  options.sizes = {Bytes(2), 16_MiB};
  const PointToPoint result = point_to_point(scenario, catalogue(), options);
  EXPECT_LE(result.rows.at(0).message_rate, 1.001 / seconds(result.rows.at(0).latency));
  EXPECT_GT(result.rows.at(1).bandwidth, 43e9);  // 0.959 of 45
  EXPECT_NE(result.note.find("no NIC is on the way"), std::string::npos);
}

// Five switches in a ring whose lanes hold one packet each. When every lane holds a packet for the switch
// after the next, nothing moves any more: there is no time to report.
TEST(Traffic, ThatNeverEndsIsRefusedAndHasNoTime) {
  std::string devices, links;
  for (int i = 0; i < 5; ++i) {
    const auto device = [&](const char* name, const char* kind, const char* rest) {
      devices += fmt::format(R"({}{{"name": "{}{}", "kind": "{}", {}}})", devices.empty() ? "" : ", ", name,
                             i, kind, fmt::format(fmt::runtime(rest), i));
    };
    device("gpu", "accelerator", R"("model": "h100-sxm5", "node": {})");
    device("nic", "nic", R"("node": {})");
    device("switch", "switch", R"("tier": 1)");
    links += fmt::format(R"({}{{"from": "gpu{}", "to": "nic{}", "use": "pcie5-x16"}},
                            {{"from": "nic{}", "to": "switch{}", "use": "ib-ndr"}},
                            {{"from": "switch{}", "to": "switch{}", "use": "ib-ndr"}})",
                         links.empty() ? "" : ", ", i, i, i, i, i, (i + 1) % 5);
  }
  const config::Library library({"configs"});
  const Scenario scenario = parse_scenario(fmt::format(R"({{"topology": {{"devices": [{}], "links": [{}]}},
                       "workload": {{"model": "llama3-8b", "plan": {{"dp": 5}}, "sequence": 2048}},
                       "network": {{"model": "packet", "packet": {{"virtual_lanes": {{"buffer": "5 kB"}}}}}}}})",
                                                       devices, links),
                                           "test.json", {}, library);
  const auto says_so = [](const auto& work) {
    try {
      work();
      ADD_FAILURE() << "it has a time";
    } catch (const ConfigError& error) {
      EXPECT_NE(std::string(error.what()).find("messages never arrive"), std::string::npos) << error.what();
    }
  };
  TrafficOptions options;
  options.sizes = {1_MiB};
  says_so(
      [&] { static_cast<void>(run_traffic(scenario, catalogue(), TrafficPattern::all_to_all, options)); });
  says_so([&] {
    static_cast<void>(
        bench(scenario, catalogue(), collective::CollectiveKind::all_to_all, {5_MiB, 5_MiB, 2}));
  });
}

// Leaves of 32 ports and 32 cables up. If each of 32 flows takes one cable by hash, some meet almost
// certainly (all apart: 32! / 32^32 = 2e-13), and two on a cable take twice as long. Packets that choose
// their own way hardly meet. Flowlets without gaps are whole flows.
TEST(Traffic, FlowsMeetOnCablesOfAnAdaptiveFabricWhenTheyKeepToOne) {
  const auto last_us = [](const std::string& packet) {
    Scenario scenario = scenario_of("8", R"("roce-400g")", packet);
    scenario.topology.fabric.kind = topology::FabricKind::fat_tree;
    scenario.topology.fabric.routing = topology::Routing::adaptive;
    scenario.topology.fabric.nodes_per_leaf = 4;
    TrafficOptions options;
    options.sizes = {1_MiB};
    return microseconds(run_traffic(scenario, catalogue(), TrafficPattern::permutation, options).last);
  };
  const double alone = 1048576 / 49.02e3 + 3.6;  // and 2 us for two more switches under another leaf
  EXPECT_LT(last_us("{}"), 1.5 * alone);
  for (const char* path : {"flow-hash", "flowlet"})
    EXPECT_GT(last_us(fmt::format(R"({{"path": "{}", "flowlet_gap": "1 s"}})", path)), 1.8 * alone) << path;
}
}  // namespace topsim::scenario::traffic_test
