// Whom the full port of an incast holds up: the flow model beside packets.
#include <gtest/gtest.h>

#include "sim/config/reader.hpp"
#include "sim/scenario/bench/traffic.hpp"
#include "sim/scenario/read/read.hpp"
#include "tests/scenario/traffic_clusters.hpp"

namespace topsim::scenario::held_incast_test {
using namespace traffic_clusters;

// Seven NICs of InfiniBand send to one, three nodes a leaf. The full port serves its inputs alike: the two
// beside the receiver and the cable from the spine, which serves the two leaves behind it alike, of three
// senders and of two. With messages of 32 MiB the flow model has every sender's end within 1 % of what
// packets take, where max-min sharing would have all seven end together; so nothing remains to be said of
// whom the port held up.
TEST(HeldIncast, OnInfinibandServesPortsAlikeAsPacketsDo) {
  const config::Library library({"configs"});
  for (const char* routing : {"static", "adaptive"}) {
    SCOPED_TRACE(routing);
    const std::string fabric =
        std::string(
            R"({"kind": "fat-tree", "link": "ib-ndr", "switch": "qm9700", "nodes_per_leaf": 3, "routing": ")") +
        routing + "\"}";
    const std::vector<std::string> changes = {"topology.fabric=" + fabric},
                                   slowing = {changes.front(),
                                              "network.packet.congestion_control=infiniband"};
    Scenario scenario = read_scenario("configs/8xH100-ib.json", changes, library);
    TrafficOptions options;
    options.sizes = {Bytes(32 << 20)};
    options.senders = 7;
    scenario.network.model = "packet";
    const Traffic packets = run_traffic(scenario, catalogue(), TrafficPattern::incast, options);
    scenario.network.model = "flow";
    const Traffic flow = run_traffic(scenario, catalogue(), TrafficPattern::incast, options);
    for (std::size_t f = 0; f < 7; ++f)
      EXPECT_NEAR(seconds(flow.flows[f].delivered) / seconds(packets.flows[f].delivered), 1, 0.01) << f;
    for (const std::string& finding : flow.findings)
      EXPECT_EQ(finding.find("times as much"), std::string::npos);
    const Traffic slowed = run_traffic(read_scenario("configs/8xH100-ib.json", slowing, library), catalogue(),
                                       TrafficPattern::incast, options);
    EXPECT_NEAR(slowed.fairness, 1, 1e-6);
  }
}
}  // namespace topsim::scenario::held_incast_test
