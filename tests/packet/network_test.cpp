// Behind the Network interface, on real topologies: idle paths against the fluid model, the NIC behind its
// PCIe switch.
#include <gtest/gtest.h>

#include "sim/network/flow.hpp"
#include "sim/network/packet/packet_network.hpp"
#include "tests/topology/fixtures.hpp"

namespace topsim::network::packet::network_test {
using topology::Topology;

Topology two_nodes(const char* link) {
  topology::TopologySpec spec;
  spec.node.use = "hgx-h100";
  spec.nodes = 2;
  spec.fabric.kind = "rail";
  spec.fabric.link.use = link;
  topology::BuildOptions options;
  options.merge_switches_above = 1'000'000;  // switches apart
  return topology::build(spec, topology::test::catalogue(), options);
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

// One connection number, two pairs of NICs: each message leaves by the NIC that it names, whichever came
// first.
TEST(PacketNetwork, takes_the_nics_that_a_message_names) {
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

// A packet of 4 KiB at the slowest link's goodput; RoCE has 82 bytes around it, InfiniBand 26.
TEST(PacketNetwork, agrees_with_the_fluid_model_on_an_idle_path_within_one_packet_time) {
  for (const char* link : {"ib-ndr", "roce-400g"}) {
    const Topology cluster = two_nodes(link);
    const topology::Router router(cluster, 1);
    std::vector<double> capacities;
    for (const topology::Link& l : cluster.links()) capacities.push_back(l.capacity.value());
    for (const std::size_t to : {std::size_t{1}, std::size_t{8}}) {
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

// Without peer-to-peer PCIe the way leads through host memory and passes the CPU twice. On an idle path
// nothing is faster than the slowest link: 16 MiB at PCIe 4 x16's payload rate.
TEST(PacketNetwork, carries_a_message_over_a_path_that_passes_a_device_twice) {
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
}  // namespace topsim::network::packet::network_test
