// The packet model behind the Network interface, on topologies of the catalogue: idle paths compared with the
// fluid model, NICs, planes and PXN.
#include <gtest/gtest.h>

#include <map>
#include <optional>

#include "sim/base/error.hpp"
#include "sim/network/flow.hpp"
#include "sim/network/packet/packet_network.hpp"
#include "tests/topology/fixtures.hpp"

namespace topsim::network::packet::network_test {
using namespace topsim::literals;
using topology::Topology;

Topology two_nodes(const char* link, std::optional<BytesPerSecond> capacity = {}) {
  topology::TopologySpec spec;
  spec.fabric.link.capacity = capacity;
  spec.node.use = "hgx-h100";
  spec.nodes = 2;
  spec.fabric.kind = topology::FabricKind::rail;
  spec.fabric.link.use = link;
  topology::BuildOptions options;
  options.merge_switches_above = 1'000'000;  // switches apart
  return topology::build(spec, topology::test::catalogue(), options);
}

std::vector<double> capacities_of(const Topology& topology) {
  std::vector<double> capacities;
  for (const topology::Link& link : topology.links()) capacities.push_back(link.capacity.value());
  return capacities;
}

Duration run(Network& network, Transfer transfer) {
  std::vector<Completion> done;
  network.start(transfer, SimTime{});
  while (done.empty()) network.advance(network.next_event_before(kNever), done);
  return done[0].time.time_since_epoch();
}

Transfer message(const topology::Router& router, std::size_t from, std::size_t to, double bytes,
                 topology::Route& route, std::vector<Usage>& usage) {
  Transfer transfer;
  transfer.from = router.topology().accelerators()[from];
  transfer.to = router.topology().accelerators()[to];
  transfer.bytes = bytes;
  topology::RouteQuery query;
  query.from = transfer.from, query.to = transfer.to;
  router.route(query, route);
  for (const topology::LinkShare& share : route.links) usage.push_back({share.link.value, share.share});
  transfer.usage = usage;
  transfer.latency = route.latency;
  return transfer;
}

// Packet numbers have 32 bits. 2^44 bytes in packets of 4 KiB need 2^32 numbers, one more than there are.
TEST(PacketNetwork, AMessageOfMorePacketsThanThereAreNumbersIsRefused) {
  const Topology cluster = two_nodes("ib-ndr");
  const topology::Router router(cluster, 1);
  PacketNetwork network(router, {});
  topology::Route route;
  std::vector<Usage> usage;
  EXPECT_THROW(run(network, message(router, 0, 8, 0x1p44, route, usage)), ConfigError);
}

// 4 GB are a million packets and take 80 ms. A user's interrupt must not wait for the last of them.
TEST(PacketNetwork, ComesBackBetweenTwoDeliveriesOnceItIsStopped) {
  const Topology cluster = two_nodes("ib-ndr");
  const topology::Router router(cluster, 1);
  PacketNetwork network(router, {});
  int asked = 0;
  network.stop_when([&] { return ++asked > 5; });
  topology::Route route;
  std::vector<Usage> usage;
  network.start(message(router, 0, 8, 4e9, route, usage), SimTime{});
  const SimTime next = network.next_event_before(kNever);
  EXPECT_LT(next, SimTime(60_ms));
  const std::uint64_t events = network.events();
  EXPECT_LE(events, 6U << 16U);
  std::vector<Completion> done;
  network.advance(next, done);
  network.settle();
  EXPECT_TRUE(done.empty());
  EXPECT_EQ(network.events(), events);
}

// Where the fabric gives each connection a single path (ECMP), packets cannot choose one; where it spreads
// packets (adaptive), any choice is allowed.
TEST(PacketNetwork, RefusesPacketsAChoiceWhereRoutesAreSinglePaths) {
  const PathChoice choices[] = {PathChoice::spray, PathChoice::adaptive, PathChoice::flowlet};
  const Topology hashed = two_nodes("roce-400g"), even = two_nodes("ib-ndr");
  ASSERT_EQ(hashed.routing, topology::Routing::ecmp);
  ASSERT_EQ(even.routing, topology::Routing::adaptive);
  const topology::Router single(hashed, 1), all(even, 1);
  PacketSpec spec;
  for (const PathChoice choice : choices) {
    spec.path = choice;
    EXPECT_THROW(PacketNetwork(single, spec), ConfigError);
    EXPECT_NO_THROW(PacketNetwork(all, spec));
  }
  spec.path = PathChoice::flow_hash;
  EXPECT_NO_THROW(PacketNetwork(single, spec));
}

// Two messages with the same connection number name different pairs of NICs. Each leaves by its own.
TEST(PacketNetwork, TakesTheNicsThatAMessageNames) {
  const Topology cluster = two_nodes("ib-ndr");
  const topology::Router router(cluster, 1);
  PacketNetwork network(router, {});
  const auto here = cluster.nics_of_node(0), there = cluster.nics_of_node(1);
  std::vector<Completion> done;
  for (const std::size_t rail : {0, 3}) {
    Transfer transfer;
    transfer.from = cluster.accelerators()[0], transfer.to = cluster.accelerators()[8];
    transfer.from_nic = here[rail], transfer.to_nic = there[rail];
    transfer.bytes = 1e6;
    network.start(transfer, SimTime{});
  }
  while (done.size() < 2) network.advance(network.next_event(), done);
  for (std::size_t rail = 0; rail < 8; ++rail) {
    for (const LinkId cable : cluster.links_from(here[rail])) {
      if (cluster.device(cluster.link(cable).to).kind != topology::DeviceKind::fabric_switch) continue;
      EXPECT_EQ(network.record(cable.value).bytes > 9e5, rail == 0 || rail == 3) << rail;
    }
  }
}

// One packet time is 4 KiB at the payload rate of the slowest link (82 bytes around each packet with RoCE, 26
// with InfiniBand).
TEST(PacketNetwork, AgreesWithTheFluidModelOnAnIdlePathWithinOnePacketTime) {
  for (const char* link : {"ib-ndr", "roce-400g"}) {
    const Topology cluster = two_nodes(link);
    const topology::Router router(cluster, 1);
    const std::vector<double> capacities = capacities_of(cluster);
    for (const std::size_t to : {1, 8, 9}) {  // over NVLink, by its own NIC, by the NIC of another (PXN)
      for (const double bytes : {4096.0, 1e6, 64e6}) {
        SCOPED_TRACE(testing::Message() << link << ", to " << to << ", " << bytes << " bytes");
        topology::Route route;
        std::vector<Usage> usage;
        const Transfer transfer = message(router, 0, to, bytes, route, usage);
        double slowest = 0;
        for (const Usage& use : usage) {
          const double rate = capacities[use.link] / use.coefficient;
          if (slowest == 0 || rate < slowest) slowest = rate;
        }
        FlowNetwork flow(capacities);
        PacketNetwork packets(router, PacketSpec{});
        const Duration fluid = run(flow, transfer), packet = run(packets, transfer);
        EXPECT_NEAR(static_cast<double>((packet - fluid).count()), 0, 4096 / slowest * 1e12);
      }
    }
  }
}

// What a NIC loses (EDR carries 97.2 % of what headers leave, EFA 97.75 %) and a capacity that is stated
// bound packets too: 16 MB take 16 MB / capacity and the latency, and within one packet time the same as the
// fluid.
TEST(PacketNetwork, IsBoundByTheCapacityOfALinkAsTheFluidIs) {
  struct Row {
    const char* link;
    std::optional<BytesPerSecond> capacity;
    double slowest;
  };
  const Row rows[] = {{"ib-edr", {}, 12.5e9 * 4096 / (4096 + 26) * 0.972},
                      {"efa-400g", {}, 50e9 * 8900 / (8900 + 82) * 0.9775},
                      {"ib-ndr", 1_GBps, 1e9},
                      {"roce-400g", 10_GBps, 10e9}};
  for (const Row& row : rows) {
    SCOPED_TRACE(row.link);
    const Topology cluster = two_nodes(row.link, row.capacity);
    const topology::Router router(cluster, 1);
    const std::vector<double> capacities = capacities_of(cluster);
    topology::Route route;
    std::vector<Usage> usage;
    const Transfer transfer = message(router, 0, 8, 16e6, route, usage);
    double slowest = 0;
    for (const Usage& use : usage)
      if (slowest == 0 || capacities[use.link] < slowest) slowest = capacities[use.link];
    EXPECT_DOUBLE_EQ(slowest, row.slowest);
    FlowNetwork flow(capacities);
    PacketNetwork packets(router, PacketSpec{});
    const Duration fluid = run(flow, transfer), packet = run(packets, transfer);
    EXPECT_NEAR(static_cast<double>((packet - fluid).count()), 0, 2 * 4096 / slowest * 1e12);
    for (const Usage& use : usage)
      EXPECT_LE(packets.record(use.link).peak_rate, capacities[use.link] * 1.00001);
  }
}

// 2047 blocks of 64 B hold 31 packets of 4 KiB (65 blocks each), which is what a lane has on the way there
// and back: 5 ns a metre each way, and the switch once, 0.25 us. Gbit/s:
//   100 m   31 x 4096 B / 1.25 us = 813, more than the 397.5 that headers leave of 400
//   500 m   31 x 4096 B / 5.25 us = 193.5
//   2 km    31 x 4096 B / 20.25 us = 50.16
// The first bytes take 22 us, 0.2 % or less.
TEST(PacketNetwork, ALongInfinibandCableCarriesWhatItsCreditsLetThroughAsInTheFluid) {
  const std::pair<double, double> rows[] = {{100, 397.5}, {500, 193.5}, {2000, 50.16}};
  for (const auto& [metres, expected] : rows) {
    SCOPED_TRACE(metres);
    topology::TopologySpec spec = topology::test::cluster("hgx-h100", 2, topology::FabricKind::rail);
    spec.fabric.link.use = "ib-ndr";
    spec.fabric.length = {Metres(metres)};
    spec.fabric.switch_model.latency = 250_ns;
    const Topology cluster = topology::build(spec, topology::test::catalogue());
    const topology::Router router(cluster, 1);
    const std::vector<double> capacities = capacities_of(cluster);
    topology::Route route;
    std::vector<Usage> usage;
    const Transfer transfer = message(router, 0, 8, 512e6, route, usage);
    FlowNetwork flow(capacities);
    PacketNetwork packets(router, PacketSpec{});
    const double fluid = seconds(run(flow, transfer)), packet = seconds(run(packets, transfer));
    EXPECT_NEAR(512e6 * 8e-9 / fluid, expected, expected * 0.005);
    EXPECT_NEAR(packet / fluid, 1, 0.005);
    for (const Usage& use : usage)
      EXPECT_LE(packets.record(use.link).peak_rate, capacities[use.link] * 1.00001);
  }
}

// PXN: the first accelerator sends to two of the other node, so the messages leave by the NICs beside the
// second and the third. The second's cable is a hundred times slower. Its message waits in the buffer there
// and must not delay the other.
TEST(PacketNetwork, HoldsUpNothingOnNvlinkForOneNicThatIsSlow) {
  for (const char* link : {"ib-ndr", "roce-400g"}) {
    const Topology cluster = two_nodes(link);
    const topology::Router router(cluster, 1);
    constexpr double kBytes = 16e6;
    topology::Route route;
    std::vector<Usage> slow_usage, usage;
    Transfer slow = message(router, 0, 9, kBytes, route, slow_usage);
    ASSERT_TRUE(route.proxied);
    Transfer fast = message(router, 0, 10, kBytes, route, usage);
    ASSERT_TRUE(route.proxied);
    slow.tag = 1, fast.tag = 2;
    PacketNetwork idle(router, PacketSpec{}), shared(router, PacketSpec{});
    const Duration alone = run(idle, fast);
    for (const Usage& use : slow_usage) {
      const topology::Link& cable = cluster.link(LinkId(use.link));
      if (cluster.device(cable.from).kind == topology::DeviceKind::nic)
        shared.set_capacity(use.link, cable.capacity.value() / 100, SimTime{});
    }
    shared.start(slow, SimTime{});
    std::vector<Completion> done;
    shared.start(fast, SimTime{});
    while (done.empty()) shared.advance(shared.next_event_before(kNever), done);
    EXPECT_EQ(done[0].tag, 2U) << link;
    EXPECT_EQ(done[0].time.time_since_epoch(), alone) << link;
    while (done.size() < 2) shared.advance(shared.next_event_before(kNever), done);
    EXPECT_NEAR(seconds(done[1].time.time_since_epoch()) / seconds(alone), 100, 2)
        << link;  // its latency is not 100 times as long
    // The first accelerator's NVLink carried both.
    double carried = 0;
    for (const LinkId out : cluster.links_from(cluster.accelerators()[0]))
      if (cluster.link(out).kind == topology::LinkKind::nvlink) carried += shared.record(out.value).bytes;
    EXPECT_NEAR(carried, 2 * kBytes, 1) << link;
  }
}

// On hashed paths both models must put the same bytes on each cable, for every seed and number of queue
// pairs, so that the same pairs collide. Only payload counts.
TEST(PacketNetwork, PutsQueuePairsOnThePathsOnWhichTheFluidHasThem) {
  topology::TopologySpec spec;
  spec.node.use = "hgx-h100";
  spec.nodes = 64;
  spec.fabric.kind = topology::FabricKind::rail;
  spec.fabric.link.use = "roce-400g";
  const Topology cluster = topology::build(spec, topology::test::catalogue());
  ASSERT_EQ(cluster.routing, topology::Routing::ecmp);
  for (const int pairs : {1, 4}) {
    for (const std::uint64_t seed : {1, 2}) {
      const topology::Router router(cluster, seed, {}, static_cast<std::uint32_t>(pairs));
      PacketSpec packet;
      packet.queue_pairs = pairs;
      PacketNetwork network(router, packet);
      std::map<LinkIndex, double> fluid;
      constexpr std::size_t kMessages = 24;
      std::vector<std::vector<Usage>> usage(kMessages);
      for (std::size_t m = 0; m < kMessages; ++m) {
        topology::Route route;
        const Transfer transfer = message(router, 8 * m, 8 * (m + 40), 4 * 4096, route, usage[m]);
        for (const Usage& use : usage[m]) fluid[use.link] += transfer.bytes * use.coefficient;
        network.start(transfer, SimTime{});
      }
      std::vector<Completion> done;
      while (done.size() < kMessages) network.advance(network.next_event(), done);
      for (LinkIndex link = 0; link < cluster.links().size(); ++link) {
        const auto& row = cluster.link(LinkId(link));
        const bool between = cluster.device(row.from).kind == topology::DeviceKind::fabric_switch &&
                             cluster.device(row.to).kind == topology::DeviceKind::fabric_switch;
        // Acknowledgements come back on the same cables: at most 86 bytes a packet of 4096.
        if (between) {
          EXPECT_NEAR(network.record(link).bytes, fluid[link], 8 * 4096 * 0.05) << cluster.name(LinkId(link));
        }
      }
    }
  }
}

// Without peer-to-peer PCIe the path goes through host memory and passes the CPU twice. An idle path is as
// fast as its slowest link: 16 MiB at the payload rate of PCIe 4 x16.
TEST(PacketNetwork, CarriesAMessageOverAPathThatPassesADeviceTwice) {
  topology::TopologySpec spec;
  spec.node.use = "srv-8x4090-dual";
  const Topology server = topology::build(spec, topology::test::catalogue());
  const topology::Router router(server, 1);
  topology::Route route;
  std::vector<Usage> usage;
  constexpr double kBytes = 16 << 20;
  const Transfer transfer = message(router, 0, 7, kBytes, route, usage);
  double slowest = 0;
  for (const topology::LinkShare& share : route.links) {
    const double rate = server.link(share.link).capacity.value();
    if (slowest == 0 || rate < slowest) slowest = rate;
  }
  PacketNetwork packets(router, PacketSpec{});
  const double took = static_cast<double>(run(packets, transfer).count()) * 1e-12;
  EXPECT_GE(took, kBytes / slowest);
  EXPECT_LT(took, 1.05 * kBytes / slowest);
}

// A NIC with one port of 200 Gbit/s in each of two planes. Two queue pairs take a port each: 64 MB at
// 2 x 24.51 GB/s (4096 of 4178 bytes). Then one plane's cable is cut at 0.3 ms, and its pair moves at 0.5 ms.
// Until then its packets fill the NIC's buffer, which both ports share, so nothing is sent. The rest goes
// over the other plane: 0.5 ms + (64 MB - 2 x 0.3 ms x 24.51 GB/s) / 24.51 GB/s = 2.511 ms, and packets on
// their way twice.
TEST(PacketNetwork, UsesBothPlanesOfANicAndTheOtherOneWhenACableIsCut) {
  topology::TopologySpec spec;
  spec.node.use = "hgx-h800";
  spec.nodes = 2;
  spec.fabric.use = "alibaba-hpn7";
  topology::BuildOptions build;
  build.merge_switches_above = 1'000'000;
  const Topology cluster = topology::build(spec, topology::test::catalogue(), build);
  const topology::Router router(cluster, 1, {}, 2);
  PacketSpec packet;
  packet.queue_pairs = 2;
  packet.congestion_control.kind = CongestionControlKind::none;
  constexpr double kBytes = 64e6, kPlane = 25e9 * 4096 / 4178;
  topology::Route route;
  std::vector<Usage> usage;
  const Transfer transfer = message(router, 0, 8, kBytes, route, usage);
  PacketNetwork both(router, packet);
  EXPECT_NEAR(seconds(run(both, transfer)), kBytes / (2 * kPlane), 10e-6);
  std::vector<LinkId> cables;  // of the sender's NIC, there and back by plane
  const DeviceId nic = router.nic_for(cluster.accelerators()[0], cluster.accelerators()[8]);
  for (std::size_t l = 0; l < cluster.links().size(); ++l) {
    const topology::Link& link = cluster.links()[l];
    const bool fabric = link.kind == topology::LinkKind::ethernet;
    if (fabric && (link.from == nic || link.to == nic)) cables.emplace_back(l);
  }
  ASSERT_EQ(cables.size(), 4U);
  const topology::Link first = cluster.link(cables[0]);
  std::vector<LinkId> cut;
  for (const LinkId cable : cables) {
    const topology::Link& link = cluster.link(cable);
    if ((link.from == first.from && link.to == first.to) || (link.from == first.to && link.to == first.from))
      cut.push_back(cable);
  }
  ASSERT_EQ(cut.size(), 2U);
  const topology::Router left(cluster, 1, cut, 2);
  PacketNetwork one(router, packet);
  one.add_detour(left);
  std::vector<Completion> done;
  one.start(transfer, SimTime{});
  const auto until = [&](SimTime time) {
    while (one.next_event() <= time) one.advance(one.next_event(), done);
    one.advance(time, done);
  };
  until(SimTime(300_us));
  for (const LinkId cable : cut) one.set_capacity(cable.value, 0, SimTime(300_us));
  until(SimTime(500_us));
  one.take_routes(0, SimTime(500_us));
  while (done.empty()) one.advance(one.next_event_before(kNever), done);
  const double expected = 500e-6 + (kBytes - 600e-6 * kPlane) / kPlane;
  EXPECT_NEAR(seconds(done[0].time.time_since_epoch()), expected, 10e-6);
}
}  // namespace topsim::network::packet::network_test
