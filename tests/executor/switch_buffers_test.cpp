// Which buffer a port of the fabric has, and what waits in it when PFC stops the senders.
#include "sim/executor/switch_buffers.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace topsim::executor::switch_buffers_test {
using topology::DeviceKind;

// A leaf with four NICs and a cable to each of two spines, all of 400 Gbit/s and 500 ns; switches buffer
// `buffer`.
struct Cluster {
  topology::Topology topology;
  DeviceId leaf, spine;
  topology::Link up, down;

  explicit Cluster(Bytes buffer, topology::Routing routing = topology::Routing::adaptive) {
    topology::TopologyBuilder builder;
    const auto add = [&](DeviceKind kind, std::uint8_t tier, std::uint32_t node) {
      topology::Device device{kind};
      device.tier = tier;
      device.node = node;
      device.model = builder.model(kind == DeviceKind::nic ? "nic" : "switch");
      return builder.device(device);
    };
    std::vector<DeviceId> nics;
    for (std::uint32_t n = 0; n < 4; ++n) nics.push_back(add(DeviceKind::nic, 0, n));
    builder.set_nodes(4);
    leaf = add(DeviceKind::fabric_switch, 1, Id<void>::kNone);
    topology::ModelFacts facts;
    facts.buffer = buffer;
    builder.model_facts(builder.model("switch"), facts);
    topology::Link cable;
    cable.kind = topology::LinkKind::ethernet;
    cable.type = builder.link_type({"cable", "400 Gbit/s", "a test", "roce"});
    cable.capacity = cable.line_rate = BytesPerSecond(50e9);
    cable.latency = std::chrono::nanoseconds(500);
    const auto connect = [&](DeviceId a, DeviceId b) {
      cable.from = a, cable.to = b;
      builder.link(cable);
      cable.from = b, cable.to = a;
      builder.link(cable);
    };
    for (const DeviceId nic : nics) connect(nic, leaf);
    for (int s = 0; s < 2; ++s) {
      spine = add(DeviceKind::fabric_switch, 2, Id<void>::kNone);
      connect(leaf, spine);
      down = cable;
      up = cable, up.from = leaf, up.to = spine;
    }
    topology = std::move(builder).finish();
    topology.routing = routing;
  }

  [[nodiscard]] double queue(double load, const network::packet::PacketSpec& spec = {}) const {
    SwitchBuffers buffers(topology, spec);
    const std::uint32_t at = buffers.of(leaf);
    return std::move(buffers).all()[at].queue(load);
  }
};

// Six ports keep 79,096 B each (tests/packet/pfc_queue_test.cpp). Of 9 MB that are shared, four senders with
// alpha 1/8 hold 0.5 / 1.5, for two ports above: 1.5 MB. At 1:1 two hold 0.25 / 1.25: 0.9 MB.
TEST(SwitchBuffers, AreThoseOfTheScenariosSwitches) {
  const Cluster cluster(Bytes(9'474'576));
  EXPECT_NEAR(cluster.queue(2), 1.5e6, 1);
  EXPECT_NEAR(cluster.queue(1), 0.9e6, 1);
}

// Then 32 MB are assumed, or what the scenario says.
TEST(SwitchBuffers, MayBeUnknownOrGiven) {
  network::packet::PacketSpec given;
  given.buffer.total = Bytes(9'474'576);
  EXPECT_NEAR(Cluster(Bytes(0)).queue(2), (32e6 - 474'576) / 6, 1);
  EXPECT_NEAR(Cluster(Bytes(64'000'000)).queue(2, given), 1.5e6, 1);
}

TEST(SwitchBuffers, AreUnlimitedWherePathsAreFixedOrNobodyIsPaused) {
  network::packet::PacketSpec lossy;
  lossy.pfc.enabled = false;
  EXPECT_TRUE(std::isinf(Cluster(Bytes(9'474'576), topology::Routing::ecmp).queue(2)));
  EXPECT_TRUE(std::isinf(Cluster(Bytes(9'474'576)).queue(2, lossy)));
}

TEST(SwitchBuffers, BelongToTheLowerEndOfACable) {
  const Cluster cluster(Bytes(1));
  EXPECT_EQ(lower_of(cluster.topology, cluster.up), cluster.leaf);
  EXPECT_EQ(lower_of(cluster.topology, cluster.down), cluster.leaf);
  EXPECT_TRUE(several_above(cluster.topology, cluster.up));
}

// Switches of one tier, in a row: whatever passes from the first to the second takes this cable. A cable from
// the last to the first is another way, for all three.
TEST(SwitchBuffers, SwitchesOfOneTierHaveAChoiceOnlyWhereAnotherWayLeads) {
  for (const bool closed : {false, true}) {
    topology::TopologyBuilder builder;
    builder.set_nodes(1);
    topology::Device box{DeviceKind::fabric_switch};
    box.tier = 1;
    box.node = Id<void>::kNone;
    box.model = builder.model("switch");
    std::vector<DeviceId> row;
    for (int i = 0; i < 3; ++i) row.push_back(builder.device(box));
    topology::Link cable;
    cable.kind = topology::LinkKind::infiniband;
    cable.type = builder.link_type({"cable", "400 Gbit/s", "a test", "infiniband"});
    cable.capacity = cable.line_rate = BytesPerSecond(50e9);
    std::vector<topology::Link> cables;
    for (std::size_t i = 0; i < (closed ? 3U : 2U); ++i)
      for (const auto& [a, b] : {std::pair(row[i], row[(i + 1) % 3]), std::pair(row[(i + 1) % 3], row[i])}) {
        cable.from = a, cable.to = b;
        builder.link(cable);
        cables.push_back(cable);
      }
    const topology::Topology topology = std::move(builder).finish();
    for (const topology::Link& each : cables) EXPECT_EQ(several_above(topology, each), closed);
  }
}
}  // namespace topsim::executor::switch_buffers_test
