// What a message between two NICs crosses beside their cables.
#include "sim/scenario/bench/testbed.hpp"

#include <gtest/gtest.h>

#include "tests/scenario/traffic_clusters.hpp"

namespace topsim::scenario::testbed_test {
using namespace topsim::literals;
using namespace traffic_clusters;

// Cables of 200 Gbit/s, 25 GB/s. The first NIC has two slots, of 8 lanes of PCIe 3 and of PCIe 4 (8 and 16
// GB/s): its memory is behind the wider one. The second has 16 lanes of PCIe 5 (63 GB/s), which limit
// nothing.
Scenario two_slots() {
  const config::Library library({"configs"});
  return parse_scenario(R"({"topology": {
    "devices": [{"name": "gpu0", "kind": "accelerator", "model": "h100-sxm5", "node": 0},
                {"name": "gpu1", "kind": "accelerator", "model": "h100-sxm5", "node": 0},
                {"name": "gpu2", "kind": "accelerator", "model": "h100-sxm5", "node": 1},
                {"name": "gpu3", "kind": "accelerator", "model": "h100-sxm5", "node": 1},
                {"name": "nic0", "kind": "nic", "node": 0}, {"name": "nic1", "kind": "nic", "node": 1},
                {"name": "leaf", "kind": "switch", "tier": 1}],
    "links": [{"from": "gpu0", "to": "nic0", "use": "pcie3-x8"}, {"from": "gpu1", "to": "nic0", "use": "pcie4-x8"},
              {"from": "gpu0", "to": "gpu1", "use": "nvlink4"}, {"from": "gpu2", "to": "gpu3", "use": "nvlink4"},
              {"from": "gpu2", "to": "nic1", "use": "pcie5-x16"},
              {"from": "nic0", "to": "leaf", "use": "ib-hdr"}, {"from": "nic1", "to": "leaf", "use": "ib-hdr"}]},
    "workload": {"model": "llama3-8b", "plan": {"dp": 4}, "sequence": 2048}})",
                        "test.json", {}, library);
}

TEST(Testbed, ASlotThatIsNarrowerThanTheCablesIsTheWidestOfTheNic) {
  const Scenario scenario = two_slots();
  const Testbed testbed(scenario, catalogue());
  const topology::Topology& topology = testbed.topology();
  const auto named = [&](const char* name) { return topology.find_device(name).value(); };
  for (const bool sends : {true, false}) {
    const auto slot = testbed.tight_slot(named("nic0"), sends);
    ASSERT_TRUE(slot) << sends;
    EXPECT_EQ(slot->behind, named("gpu1")) << sends;
    const topology::Link link = topology.link(slot->link);
    EXPECT_EQ(link.from, named(sends ? "gpu1" : "nic0")) << sends;
    EXPECT_EQ(link.to, named(sends ? "nic0" : "gpu1")) << sends;
    EXPECT_EQ(slot->capacity, link.capacity.value());
    EXPECT_GT(slot->capacity, 8e9);
    EXPECT_FALSE(testbed.tight_slot(named("nic1"), sends)) << sends;
    EXPECT_FALSE(testbed.tight_slot(named("gpu0"), sends)) << sends;
  }
}
}  // namespace topsim::scenario::testbed_test
