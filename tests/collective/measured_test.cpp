// Predictions beside published tables of nccl-tests; no constant was read from them but for the last.
#include <gtest/gtest.h>

#include <array>
#include <utility>

#include "tests/collective/lowering_fixtures.hpp"

namespace topsim::collective::measured_test {

using namespace fixtures;

// broadcast_perf on 8 H800 (8 NVLinks, 164.8 GB/s; NCCL 2.18, -g 8), microseconds. The chunks of 512 KiB of
// one alone would take 50 us a hop to the last of them.
TEST(Measured, BroadcastsInARowTakeWhatNcclTestsMeasured) {
  const Form form{"hgx-h800", 1, "", Algorithm::ring, Protocol::simple, 0.03, CollectiveKind::broadcast};
  const auto rows = bench(form, false, {Bytes(8 << 20), Bytes(256 << 20), 2});
  const std::array<double, 6> measured = {69.5, 123.0, 226.2, 430.6, 837.8, 1649.9};
  ASSERT_EQ(rows.size(), measured.size());
  for (std::size_t i = 0; i < rows.size(); ++i)
    EXPECT_NEAR(microseconds(rows[i].time) / measured.at(i), 1, form.tolerance) << rows[i].size.value();
}

// 16 GiB on eight H200 (stas00/ml-engineering), GB/s of bus bandwidth: copies of the own part are apart by
// then.
TEST(Measured, LargeRingsReachTheirLinks) {
  for (const auto& [kind, busbw] :
       {std::pair(CollectiveKind::all_reduce, 367.0), std::pair(CollectiveKind::all_gather, 361.0),
        std::pair(CollectiveKind::reduce_scatter, 363.0)}) {
    const Form form{"hgx-h200", 1, "", Algorithm::ring, Protocol::simple, 0.03, kind};
    const Bytes size(std::int64_t{16} << 30);
    EXPECT_NEAR(bench(form, false, {size, size, 2})[0].bus_bytes_per_second / 1e9 / busbw, 1, form.tolerance)
        << name_of(kind);
  }
}

// Two boxes of H100 (OCI) and of H200 (Nebius), InfiniBand, 8 GiB: 469.8 and 472.3 GB/s; what they gain from
// 8 to 16 GiB set the share of NVLSTree.
TEST(Measured, NvlsTreesGainNothingFromChunksAbove64KiB) {
  const Form form{"hgx-h100", 2, "ib-ndr", Algorithm::nvls_tree, Protocol::simple, 0};
  const Bytes size(std::int64_t{8} << 30);
  EXPECT_NEAR(bench(form, false, {size, size, 2})[0].bus_bytes_per_second / 1e9, 471, 10);
}

// sendrecv_perf on 4 of 8 H100 (ring of four), GB/s: a pair has 8 of 32 channels up to 128 MiB, twice as many
// beyond each doubling, until the links are the limit. Of each channel half of its threads send.
TEST(Measured, NeighboursExchangeOverTheirShareOfTheChannels) {
  scenario::Scenario scenario;
  scenario.topology = boxes("hgx-h100", 1, "");
  scenario.topology.accelerators = 4;
  scenario.network.model = "flow";
  const scenario::BenchSizes sizes{Bytes(128 << 20), Bytes(512 << 20), 2};
  const auto rows = scenario::bench(scenario, topology::test::catalogue(), CollectiveKind::send_recv, sizes);
  const std::array<double, 3> measured = {163, 299, 355};
  ASSERT_EQ(rows.size(), measured.size());
  for (std::size_t i = 0; i < rows.size(); ++i)
    EXPECT_NEAR(rows[i].bus_bytes_per_second / 1e9 / measured.at(i), 1, 0.08) << rows[i].size.value();
}

}  // namespace topsim::collective::measured_test
