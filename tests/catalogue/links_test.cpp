#include <gtest/gtest.h>

#include <map>
#include <string>

#include "tests/catalogue/world.hpp"

namespace topsim::topology::links_test {
using namespace topsim::literals;

// Data rate of one direction in Gbit/s: as the name says; NVLink 25 and 50 GB/s; PCIe 8, 16 and 32 GT/s on 16
// lanes.
TEST(Links, EveryNameThatScenariosMayUseHasItsRate) {
  const std::map<std::string, double> rates{
      {"ib-edr", 100},       {"ib-hdr", 200},        {"ib-ndr", 400},        {"ib-xdr", 800},
      {"roce-100g", 100},    {"roce-200g", 200},     {"roce-400g", 400},     {"roce-800g", 800},
      {"eth-100g", 100},     {"efa-400g", 400},      {"omni-path-100", 100}, {"slingshot-200", 200},
      {"nvlink2", 8 * 25},   {"nvlink3", 8 * 25},    {"nvlink4", 8 * 25},    {"nvlink5", 8 * 50},
      {"pcie3-x16", 8 * 16}, {"pcie4-x16", 16 * 16}, {"pcie5-x16", 32 * 16}};
  for (const auto& [name, gigabit] : rates)
    EXPECT_DOUBLE_EQ(gigabytes(shipped().link(name).line_rate) * 8, gigabit) << name;
}

// 50 GB/s (400 Gbit/s) x MTU / (MTU + header). RoCEv2's header is 82 B on the wire (62 of the frame, preamble
// 8, gap 12), InfiniBand's 26 B.
TEST(Links, HeadersTakeTheirShareOfFourHundredGigabit) {
  struct Row {
    std::int64_t mtu;
    double roce, infiniband;
  };
  for (const Row row :
       {Row{1024, 46.29, 48.76}, {2048, 48.08, 49.37}, {4096, 49.02, 49.68}, {9000, 49.55, 49.86}}) {
    EXPECT_NEAR(gigabytes(payload_capacity(shipped().link("roce-400g"), Bytes(row.mtu))), row.roce, 0.0051);
    EXPECT_NEAR(gigabytes(payload_capacity(shipped().link("ib-ndr"), Bytes(row.mtu))), row.infiniband,
                0.0051);
  }
}

TEST(Links, TheirOwnMtuIsTheDefault) {
  const LinkEntry& link = shipped().link("ib-ndr");
  EXPECT_EQ(payload_capacity(link), payload_capacity(link, 4096_B));
}

// ib_write_bw on EDR with MTU 4096 measures 96.6 Gbit/s.
TEST(Links, TheCableAtAnEdrNicCarriesWhatPerftestMeasures) {
  EXPECT_NEAR(gigabytes(payload_capacity_at_nic(shipped().link("ib-edr"))) * 8, 96.6, 0.05);
}

// ib_write_bw on one EFA of 200 Gbit/s measures 193.72 Gbit/s.
TEST(Links, TheCableAtAnEfaNicCarriesWhatPerftestMeasures) {
  EXPECT_NEAR(gigabytes(payload_capacity_at_nic(shipped().link("efa-200g"))) * 8, 193.72, 0.05);
}

// Measured copies between host and device at x16: 12.5, 25.5 and 55.06 GB/s. Half the lanes have half the
// rate.
TEST(Links, PcieCarriesWhatCopiesReach) {
  EXPECT_NEAR(gigabytes(payload_capacity(shipped().link("pcie3-x16"))), 12.5, 0.05);
  EXPECT_NEAR(gigabytes(payload_capacity(shipped().link("pcie4-x16"))), 25.5, 0.1);
  EXPECT_NEAR(gigabytes(payload_capacity(shipped().link("pcie5-x16"))), 55.06, 0.1);
  EXPECT_NEAR(gigabytes(payload_capacity(shipped().link("pcie5-x8"))), 55.06 / 2, 0.05);
}

// NVLink 2 signals 25.78125 GB/s; 128 B of data have a header of 16 B: 25.78125 x 128 / 144 = 22.92.
TEST(Links, NvlinkTwoCarriesItsPacketsNotWhatNcclCountsWith) {
  EXPECT_NEAR(gigabytes(payload_capacity(shipped().link("nvlink2"))), 25.78125 * 128 / 144, 1e-3);
}

// NCCL's rates for one NVLink 3 to 5: 20, 20.6 and 40.1 GB/s, and 12 on GA102. H100 has 18: 370.8.
TEST(Links, NvlinkCarriesWhatNcclCountsWith) {
  EXPECT_NEAR(gigabytes(payload_capacity(shipped().link("nvlink3"))), 20, 1e-3);
  EXPECT_NEAR(18 * gigabytes(payload_capacity(shipped().link("nvlink4"))), 370.8, 1e-3);
  EXPECT_NEAR(18 * gigabytes(payload_capacity(shipped().link("nvlink5"))), 721.8, 1e-3);
  EXPECT_NEAR(gigabytes(payload_capacity(shipped().link("nvlink3-ga102"))), 12, 1e-3);
}

TEST(Links, NothingCarriesMoreThanItsWire) {
  for (const std::string& id : ids_of("link")) {
    const LinkEntry& link = shipped().link(id);
    EXPECT_GT(link.line_rate.value(), 0) << id;
    EXPECT_GT(payload_capacity(link).value(), 0) << id;
    EXPECT_LE(payload_capacity(link), link.line_rate) << id;
    EXPECT_LE(payload_capacity_at_nic(link), payload_capacity(link)) << id;
  }
}

// DeepSeek, ISCA 2025, 64 B: InfiniBand 2.8 us through one leaf and 3.7 us through three switches, RoCE 3.6
// and 5.6 us.
TEST(Links, BaseAndHopsGiveTheMeasuredPaths) {
  const auto path = [](const char* id, int switches) {
    const LinkEntry& link = shipped().link(id);
    return microseconds(link.nic_base + switches * link.hop.value());
  };
  EXPECT_NEAR(path("ib-ndr", 1), 2.8, 1e-9);
  EXPECT_NEAR(path("ib-ndr", 3), 3.7, 1e-9);
  EXPECT_NEAR(path("roce-400g", 1), 3.6, 1e-9);
  EXPECT_NEAR(path("roce-400g", 3), 5.6, 1e-9);
}

// A hop's latency is either measured as a whole or added up from parts such as FEC, never both. Links inside
// a node give their latency.
TEST(Links, AHopIsEitherMeasuredOrAddedUp) {
  for (const std::string& id : ids_of("link")) {
    const LinkEntry& link = shipped().link(id);
    EXPECT_FALSE(link.hop.has_value() && link.fec.count() > 0) << id;
    EXPECT_TRUE(link.is_fabric() || link.latency.count() > 0) << id;
  }
}
}  // namespace topsim::topology::links_test
