// Lengths of cables: in the 16 bits that a link has for them, and in files.
#include <gmock/gmock.h>

#include <fstream>

#include "tests/topology/fixtures.hpp"
#include "topology/export/export.hpp"

namespace topsim::topology::test::cable_length_test {
using testing::HasSubstr;
using testing::Not;

// Tenths of a metre up to 3276.7; beyond, tens of metres up to 327 670.
TEST(CableLength, KeepsWhatCablesAreSoldIn) {
  EXPECT_FALSE(CableLength().known());
  EXPECT_FALSE(Link{}.length.known());
  for (const double metres : {0.1, 0.5, 2.0, 30.0, 2000.0, 3276.7, 3280.0, 10'000.0, 327'670.0}) {
    EXPECT_TRUE(CableLength(Metres(metres)).known());
    EXPECT_DOUBLE_EQ(CableLength(Metres(metres)).metres().value(), metres);
  }
  for (const auto& [metres, kept] :
       {std::pair(0.0, 0.1), {20.26, 20.3}, {12'345.0, 12'350.0}, {1e9, 327'670.0}})
    EXPECT_DOUBLE_EQ(CableLength(Metres(metres)).metres().value(), kept);
}

Metres length(const Topology& t, const char* from, const char* to) {
  return t.link(*t.find_link(device(t, from), device(t, to))).length.metres();
}

// Prices need them; they change no latency of a file, which states its own.
TEST(CableLength, IsInTheFileWhereTheScenarioOrItsRecipeSaysIt) {
  TopologySpec spec = cluster("hgx-h100", 64, FabricKind::rail);
  spec.fabric.link.use = "ib-ndr";
  EXPECT_THAT(to_json(build(spec, catalogue())), Not(HasSubstr("\"length\"")));
  spec.fabric.length = {Metres(5), Metres(20)};
  const Topology built = build(spec, catalogue());
  const std::string json = to_json(built), path = testing::TempDir() + "cable_length_test.json";
  std::ofstream(path) << json;
  const Topology read = build_file(path, catalogue());
  for (const Topology* t : {&built, &read}) {
    EXPECT_DOUBLE_EQ(length(*t, "node0/nic0", "leaf0").value(), 5);
    EXPECT_DOUBLE_EQ(length(*t, "leaf0", "spine0").value(), 20);
    EXPECT_DOUBLE_EQ(length(*t, "spine0", "leaf0").value(), 20);
  }
  EXPECT_EQ(to_json(read), json);
}
}  // namespace topsim::topology::test::cable_length_test
