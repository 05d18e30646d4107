// Predictions beside published tables of nccl-tests. No constant of the model was read from these tables,
// except NVLSTree's share (kNvlsTreeShare).
#include <gtest/gtest.h>

#include <array>
#include <utility>

#include "tests/collective/lowering_fixtures.hpp"

namespace topsim::collective::measured_test {

using namespace fixtures;

// broadcast_perf on 8 H800 (8 NVLinks, 164.8 GB/s; NCCL 2.18, -g 8), microseconds. nccl-tests queues its
// broadcasts: a rank that has passed its part on begins the next, so the filling of the ring does not show. A
// single one would take 50 us more for each hop but the first, while a chunk of 512 KiB on each of 16
// channels passes it.
TEST(Measured, BroadcastsInARowTakeWhatNcclTestsMeasured) {
  const Form form{"hgx-h800", 1, "", Algorithm::ring, Protocol::simple, 0.03, CollectiveKind::broadcast};
  const auto rows = bench(form, false, {Bytes(8 << 20), Bytes(256 << 20), 2});
  const std::array<double, 6> measured = {69.5, 123.0, 226.2, 430.6, 837.8, 1649.9};
  ASSERT_EQ(rows.size(), measured.size());
  for (std::size_t i = 0; i < rows.size(); ++i)
    EXPECT_NEAR(microseconds(rows[i].time) / measured.at(i), 1, form.tolerance) << rows[i].size.value();
}

// Bus bandwidth in GB/s of 16 GiB on eight H200 (stas00/ml-engineering). At this size the channels no longer
// copy their rank's own part at the same time, so that its copy hardly delays the links (exposed_share,
// ring_rates.cpp).
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

// Eight V100 in a cube mesh: 128 MiB in 1819 us (NCCL 2.4) and 1 GiB in 13,867 us (OCI BM.GPU3.8, NGC
// 24.06). Six NVLinks at the 20 GB/s of NCCL's search would take 20 % more than measured.
TEST(Measured, RingsOfV100ReachNvlinkTwo) {
  const Form form{"dgx-1-v100", 1, "", Algorithm::ring, Protocol::simple, 0.07};
  const auto rows = bench(form, false, {Bytes(128 << 20), Bytes(std::int64_t{1} << 30), 8});
  ASSERT_EQ(rows.size(), 2);
  EXPECT_NEAR(microseconds(rows[0].time) / 1819, 1, form.tolerance);
  EXPECT_NEAR(microseconds(rows[1].time) / 13867, 1, form.tolerance);
}

// Bus bandwidth of 8 GiB over InfiniBand: two boxes of H100 (OCI) 469.8 GB/s, two of H200 (Nebius) 472.3;
// their mean is 471. NVLSTree's share of the NVLinks was read from what the same tables gain from 8 to
// 16 GiB.
TEST(Measured, NvlsTreesGainNothingFromChunksAbove64KiB) {
  const Form form{"hgx-h100", 2, "ib-ndr", Algorithm::nvls_tree, Protocol::simple, 0};
  const Bytes size(std::int64_t{8} << 30);
  EXPECT_NEAR(bench(form, false, {size, size, 2})[0].bus_bytes_per_second / 1e9, 471, 10);
}

// Two Dell XE9680 over NDR, microseconds (NVIDIA/nccl-tests issue 309, NCCL 2.26.2). While NVLSTree's
// pipeline fills, each of its two trees moves half of a round of chunks: 16 channels x 8 heads x 64 KiB are 8
// MiB, of which half go up and half come down at the rate of eight NICs. A whole round each way would take 22
// us more.
TEST(Measured, NvlsTreesFillThroughHalfOfTheirChannels) {
  const Form form{"dell-xe9680", 2, "ib-ndr", Algorithm::nvls_tree, Protocol::simple, 0.05};
  const auto rows = bench(form, false, {Bytes(16 << 20), Bytes(256 << 20), 4});
  const std::array<double, 3> measured = {185.4, 466.1, 1282.8};
  ASSERT_EQ(rows.size(), measured.size());
  for (std::size_t i = 0; i < rows.size(); ++i)
    EXPECT_NEAR(microseconds(rows[i].time) / measured.at(i), 1, form.tolerance) << rows[i].size.value();
}

// Two boxes of which one H100 takes part, with its NDR NIC; trees were forced (NVIDIA/nccl-tests issue 232).
// Microseconds at 8, 16 and 32 MiB. In one of the two trees a box sends half of the bytes up, in the other it
// sends half of the sums down, so a tree has the NIC's rate: 0.985 x 49.7 GB/s.
TEST(Measured, TreesOverBoxesOfOneGpuReachTheNic) {
  scenario::Scenario scenario;
  scenario.topology = boxes("hgx-h100", 2, "ib-ndr");
  scenario.topology.node.accelerators = 1;
  scenario.network.model = "flow";
  scenario.network.nccl = forced(Algorithm::tree);
  const scenario::BenchSizes sizes{Bytes(8 << 20), Bytes(32 << 20), 2};
  const auto rows =
      scenario::bench(scenario, topology::test::catalogue(), CollectiveKind::all_reduce, sizes).rows;
  const std::array<double, 3> measured = {231.4, 420.5, 812.3};
  ASSERT_EQ(rows.size(), measured.size());
  for (std::size_t i = 0; i < rows.size(); ++i)
    EXPECT_NEAR(microseconds(rows[i].time) / measured.at(i), 1, 0.1) << rows[i].size.value();
}

// Two boxes of eight H20 over InfiniBand, 8 to 512 bytes under NVLSTree: 47.6, 46.3 and 46.6 us (NVIDIA/nccl
// issue 1244). A start of 16.2 us, then up to the root and down again, 14 us each.
TEST(Measured, HopsOfNvlsTreesAreThoseOfOtherTrees) {
  const Form form{"hgx-h20", 2, "ib-ndr", Algorithm::nvls_tree, Protocol::simple, 0};
  EXPECT_NEAR(microseconds(bench(form, false, {Bytes(64), Bytes(64), 2})[0].time), 46.3, 3);
}

// Eight RTX 5090 that write to each other over PCIe, Simple, 16 KiB: 36 to 42 us (NCCL 2.29.7). A start of
// 13.7 us and 14 steps of LL's 1 us and a fence of 1.2: 44.5. NCCL ranks with 5.7 us a step: 93.5.
TEST(Measured, StepsOverPcieWaitForAFenceNotForTheTunersFigure) {
  topology::TopologySpec spec = boxes("srv-8x5090-direct", 1);
  spec.node.peer_to_peer = true;
  Overrides overrides = forced(Algorithm::ring, Protocol::simple);
  overrides.p2p_level = PeerLevel::sys;
  const Cluster box(spec, overrides);
  EXPECT_NEAR(microseconds(lowered(box, CollectiveKind::all_reduce, 8, 16 << 10).latency), 13.7 + 14 * 2.2,
              0.5);
}

// A gather over two boxes of eight H100 in LL: 15 steps, of which the last piece to arrive passes between the
// boxes in two (it leaves out one of the ring's 16 edges, inside a box). A start of 4.6 us, 13 steps of 1.2
// and two of 2.7: 25.6 us, and the cables' latency beyond NCCL's figures.
TEST(Measured, TheLastPieceOfARingCrossesAsOftenAsThereAreBoxes) {
  const Cluster two(boxes("hgx-h100", 2, "ib-ndr"));
  EXPECT_NEAR(microseconds(lowered(two, CollectiveKind::all_gather, 16, 1024).latency),
              4.6 + 13 * 1.2 + 2 * 2.7, 0.5);
}

// 128 boxes of eight H100 on RoCE, rings in LL128 with 32 channels: from 8 to 16 GiB in 46.4 ms, at the rate
// of the NICs (8 x 49.6 x 0.985 x 120/128 GB/s: 46.8 ms). The 16 channels that NCCL takes by itself would be
// limited by their threads, 285 GB/s.
TEST(Measured, MoreChannelsHaveMoreThreads) {
  const auto cap = [](std::optional<int> channels) {
    Overrides overrides = forced(Algorithm::ring, Protocol::ll128);
    overrides.channels = channels;
    const Cluster cluster(boxes("hgx-h100", 4, "ib-ndr"), overrides);
    return lowered(cluster, CollectiveKind::all_reduce, 32, std::int64_t{8} << 30).cap.value() * 2 * 31 / 32;
  };
  EXPECT_NEAR(cap(std::nullopt) / 1e9, 0.97 * 8 * 36.7, 4);
  EXPECT_NEAR(cap(32) / 1e9, 8 * 0.985 * 49.6 * 120 / 128, 4);
}

// Ten boxes of which one H100 takes part, microseconds of 64 and 128 MiB (xxrjun/nccl-tests-cluster). Of the
// 18 steps' hops of 14 us nothing shows: of a chunk of 1.6 MiB on two channels the NIC needs 69 us a step,
// and the next step's first half has come, been copied and left after 34 + 28 + 14.
TEST(Measured, HopsOfRingsOverBoxesOfOneGpuHideBehindChunks) {
  scenario::Scenario scenario;
  scenario.topology = boxes("hgx-h100", 10, "ib-ndr");
  scenario.topology.node.accelerators = 1;
  scenario.network.model = "flow";
  const scenario::BenchSizes sizes{Bytes(64 << 20), Bytes(128 << 20), 2};
  const auto rows =
      scenario::bench(scenario, topology::test::catalogue(), CollectiveKind::all_reduce, sizes).rows;
  ASSERT_EQ(rows.size(), 2U);
  EXPECT_NEAR(microseconds(rows[0].time) / 2542.4, 1, 0.03);
  EXPECT_NEAR(microseconds(rows[1].time) / 5031.0, 1, 0.03);
}

// Trees over two, three and four boxes of one H100 each: the busiest box sends a byte once, 1.5 times and
// twice over its NIC of 0.985 x 49.7 GB/s. 1 GiB: 21.9, 32.9 and 43.9 ms and some hops.
TEST(Measured, TheBusiestBoxOfAThreeBoxTreeSendsOneAndAHalfTimes) {
  const auto ms = [](std::uint32_t nodes) {
    scenario::Scenario scenario;
    scenario.topology = boxes("hgx-h100", nodes, "ib-ndr");
    scenario.topology.node.accelerators = 1;
    scenario.network.model = "flow";
    scenario.network.nccl = forced(Algorithm::tree);
    const Bytes size(std::int64_t{1} << 30);
    const auto result =
        scenario::bench(scenario, topology::test::catalogue(), CollectiveKind::all_reduce, {size, size, 2});
    return microseconds(result.rows[0].time) / 1e3;
  };
  EXPECT_NEAR(ms(2), 21.9, 0.5);
  EXPECT_NEAR(ms(3), 32.9, 0.5);
  EXPECT_NEAR(ms(4), 43.9, 0.5);
}

// Three NVLink partitions of four GB200 over NDR, without NVLS, 16 GiB in trees: 127.9 GB/s (NVIDIA/nccl
// issue 1801). The busiest of three boxes sends a byte 1.5 times over its four NICs: 0.985 x 4 x 49.7 / 1.5 =
// 130.5.
TEST(Measured, TreesBetweenBoxesReachTheirNics) {
  scenario::Scenario scenario;
  scenario.topology = boxes("gb200x4", 3, "ib-ndr");
  scenario.network.model = "flow";
  scenario.network.nccl = forced(Algorithm::tree);
  scenario.network.nccl.nvls = false;
  const Bytes size(std::int64_t{16} << 30);
  const auto rows =
      scenario::bench(scenario, topology::test::catalogue(), CollectiveKind::all_reduce, {size, size, 2})
          .rows;
  EXPECT_NEAR(static_cast<double>(size.value()) / seconds(rows[0].time) / 1e9 / 127.9, 1, 0.03);
}

// sendrecv_perf on 4 of 8 H100, each sending to the next; GB/s measured at 128, 256 and 512 MiB. A pair has
// 32 / 4 = 8 of the 32 channels up to 16 MiB per channel, that is 128 MiB. Each doubling beyond that doubles
// the channels, until the links are the limit. Half of a channel's threads send.
TEST(Measured, NeighboursExchangeOverTheirShareOfTheChannels) {
  scenario::Scenario scenario;
  scenario.topology = boxes("hgx-h100", 1, "");
  scenario.topology.accelerators = 4;
  scenario.network.model = "flow";
  const scenario::BenchSizes sizes{Bytes(128 << 20), Bytes(512 << 20), 2};
  const auto rows =
      scenario::bench(scenario, topology::test::catalogue(), CollectiveKind::send_recv, sizes).rows;
  const std::array<double, 3> measured = {163, 299, 355};
  ASSERT_EQ(rows.size(), measured.size());
  for (std::size_t i = 0; i < rows.size(); ++i)
    EXPECT_NEAR(rows[i].bus_bytes_per_second / 1e9 / measured.at(i), 1, 0.08) << rows[i].size.value();
}

}  // namespace topsim::collective::measured_test
