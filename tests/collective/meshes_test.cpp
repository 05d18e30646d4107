// Boxes whose accelerators are linked directly, without a switch, and libraries other than NCCL: RCCL (AMD),
// HCL (Intel), HCCL (Huawei) and network plugins of clouds.
#include <gtest/gtest.h>

#include <map>

#include "tests/collective/lowering_fixtures.hpp"

namespace topsim::collective::meshes_test {

using namespace fixtures;
// NCCL's search finds no tree in eight boxes of MI250X. RCCL draws trees in the orders of its rings. So few
// bytes take one channel, half of whose threads send up: 12 GB/s. A tree has 2 x (7 hops in the box + 3
// levels of boxes) = 20 hops, at each of which so small a piece waits as a whole: 20 x 2 KiB / 12 GB/s = 3.4
// us more.
TEST(Meshes, TreesOfMi250xRunInTheOrdersOfItsRings) {
  scenario::Scenario scenario;
  scenario.topology = boxes("mi250x-4", 8);
  scenario.topology.fabric = {};
  scenario.topology.fabric.use = "frontier";
  scenario.network.model = "flow";
  scenario.network.nccl = forced(Algorithm::tree);
  const auto rows = scenario::bench(scenario, topology::test::catalogue(), CollectiveKind::all_reduce,
                                    {Bytes(2 << 10), Bytes(4 << 10), 2})
                        .rows;
  EXPECT_NEAR(microseconds(rows[1].time - rows[0].time), 3.4, 0.1);
}

// Eight MI355X, each linked with every other: seven rings use each of the 56 links once, so each link carries
// a seventh of 2 x 7/8 S, and all together reach 7 x 57 = 399 GB/s. NCCL's search leaves a third of the links
// idle. Published, 8 GiB (Oracle, RCCL): all-reduce 36863 us, all-to-all 20839 us; two such boxes with eight
// 400 Gbit/s NICs each, all-reduce: 43674 us.
TEST(Meshes, MeshesWithoutSwitchUseAllTheirLinks) {
  const Cluster box(boxes("mi355x-8", 1), forced(Algorithm::ring));
  std::map<LinkId, double> shares;
  for (const topology::LinkShare& use : lowered(box, CollectiveKind::all_reduce, 8).usage)
    shares[use.link] += use.share;
  EXPECT_EQ(shares.size(), 56U);
  for (const auto& [link, share] : shares) EXPECT_NEAR(share, 1.75 / 7, 1e-9);

  const scenario::BenchSizes size{Bytes(std::int64_t{8} << 30), Bytes(std::int64_t{8} << 30), 2};
  const auto us = [&](std::uint32_t nodes, CollectiveKind kind) {
    scenario::Scenario scenario;
    scenario.topology = boxes("mi355x-8", nodes, "roce-400g");
    scenario.network.model = "flow";
    return microseconds(scenario::bench(scenario, topology::test::catalogue(), kind, size).rows[0].time);
  };
  EXPECT_NEAR(us(1, CollectiveKind::all_reduce) / 36863, 1, 0.05);
  EXPECT_NEAR(us(1, CollectiveKind::all_to_all) / 20839, 1, 0.06);
  EXPECT_NEAR(us(2, CollectiveKind::all_reduce) / 43674, 1, 0.06);
}

// Each of eight Gaudi 2 has three ports of 100 Gbit/s out of its box, 24 a box. A port carries 12.5 GB/s x
// 4096 / 4178 = 12.26 GB/s (packets of 4096 bytes with 82 of headers), 24 carry 294 GB/s, of which NICs reach
// 0.985. Ring all-reduce of 16: 2 x 15/16 S, a 24th by each port.
TEST(Meshes, GaudiUsesAllItsPortsBetweenBoxes) {
  const Cluster two(boxes("gaudi2-8", 2, "gaudi-100g"), forced(Algorithm::ring));
  const Activity activity = lowered(two, CollectiveKind::all_reduce, 16);
  expect_each(on_fabric(two, activity).nics, 48, 2 * 15.0 / 16 / 24);
  EXPECT_NEAR(activity.cap.value() * 2 * 15 / 16 / (0.985 * 24 * 12.5e9 * 4096 / 4178), 1, 0.001);
}

Choice chosen(const Cluster& cluster, CollectiveKind kind, std::int64_t bytes) {
  return cluster.nccl.choose(kind, Bytes(bytes), cluster.topology.accelerators());
}

// Limits of one box of MI300X (rccl.hpp). All-reduce: MSCCL's all-pairs up to 20 MB, in LL below 512 KiB.
// All-gather: by send and receive up to 4 MiB. Reduce-scatter: LL up to 352,128 bytes of each rank, 2.8 MB in
// all.
TEST(Meshes, RcclExchangesDirectlyInABoxOfEightUpToItsThresholds) {
  const Cluster box(boxes("mi300x-8", 1));
  const auto is = [&](CollectiveKind kind, std::int64_t bytes, Algorithm algorithm, Protocol protocol) {
    const Choice choice = chosen(box, kind, bytes);
    EXPECT_EQ(choice.algorithm, algorithm) << name_of(kind) << ' ' << bytes;
    EXPECT_EQ(choice.protocol, protocol) << name_of(kind) << ' ' << bytes;
  };
  is(CollectiveKind::all_reduce, 256 << 10, Algorithm::direct, Protocol::ll);
  is(CollectiveKind::all_reduce, 16 << 20, Algorithm::direct, Protocol::simple);
  is(CollectiveKind::all_reduce, 32 << 20, Algorithm::ring, Protocol::simple);
  is(CollectiveKind::all_gather, 4 << 20, Algorithm::direct, Protocol::simple);
  is(CollectiveKind::all_gather, 8 << 20, Algorithm::ring, Protocol::simple);
  is(CollectiveKind::reduce_scatter, 2 << 20, Algorithm::ring, Protocol::ll);
  is(CollectiveKind::reduce_scatter, 4 << 20, Algorithm::ring, Protocol::simple);
}

// Between boxes RCCL takes the protocol by size (LL up to 1 MiB, LL128 up to 9.4 MB, over more than two boxes
// 3.8 times that) and the algorithm by its own ranking: trees up to some 32 MB over two boxes and some 128 MB
// over more.
TEST(Meshes, RcclTakesTreesBetweenBoxesAndTheProtocolBySize) {
  for (const auto& [nodes, last_tree] : {std::pair(2U, 32), std::pair(4U, 128)}) {
    const Cluster cluster(boxes("mi300x-8", nodes, "roce-400g"));
    EXPECT_EQ(chosen(cluster, CollectiveKind::all_reduce, 1 << 20).protocol, Protocol::ll);
    EXPECT_EQ(chosen(cluster, CollectiveKind::all_reduce, 8 << 20).protocol, Protocol::ll128);
    EXPECT_EQ(chosen(cluster, CollectiveKind::all_reduce, 64 << 20).protocol, Protocol::simple);
    EXPECT_EQ(chosen(cluster, CollectiveKind::all_reduce, last_tree << 20).algorithm, Algorithm::tree);
    EXPECT_EQ(chosen(cluster, CollectiveKind::all_reduce, last_tree << 22).algorithm, Algorithm::ring);
  }
}

// LL128 up to 9,437,184 B over two boxes, and beyond up to 3.8 times that, 35,861,299.2 B.
TEST(Meshes, RcclTakesLl128ToTheByte) {
  for (const auto& [nodes, last] : {std::pair(2U, 9'437'184), std::pair(3U, 35'861'299)}) {
    const Cluster cluster(boxes("mi300x-8", nodes, "roce-400g"));
    EXPECT_EQ(chosen(cluster, CollectiveKind::all_reduce, last).protocol, Protocol::ll128) << nodes;
    EXPECT_EQ(chosen(cluster, CollectiveKind::all_reduce, last + 1).protocol, Protocol::simple) << nodes;
  }
}

// What RCCL printed on two boxes of MI350X: trees in LL128 at 32 MiB, a ring in LL128 at 64 MiB and in Simple
// at 128 MiB (ROCm/rocm-systems, pull request 9406, before the change). In one box it gathers directly up to
// 8 MiB, twice as far as on gfx942.
TEST(Meshes, RcclHasFiguresOfItsOwnForGfx950) {
  const Cluster one(boxes("mi355x-8", 1)), two(boxes("mi355x-8", 2, "roce-400g"));
  const auto is = [](const Choice& choice, Algorithm algorithm, Protocol protocol) {
    EXPECT_EQ(choice.algorithm, algorithm);
    EXPECT_EQ(choice.protocol, protocol);
  };
  is(chosen(two, CollectiveKind::all_reduce, 256 << 10), Algorithm::tree, Protocol::ll);
  is(chosen(two, CollectiveKind::all_reduce, 32 << 20), Algorithm::tree, Protocol::ll128);
  is(chosen(two, CollectiveKind::all_reduce, 64 << 20), Algorithm::ring, Protocol::ll128);
  is(chosen(two, CollectiveKind::all_reduce, 128 << 20), Algorithm::ring, Protocol::simple);
  is(chosen(two, CollectiveKind::all_gather, 16 << 20), Algorithm::ring, Protocol::ll128);
  is(chosen(one, CollectiveKind::all_gather, 8 << 20), Algorithm::direct, Protocol::simple);
}

// Two boxes, a tree with LL, RCCL's own figures: a start of 12 us, six hops of 0.8 in the box (three levels,
// up and down) and two of 10.5 between boxes; RoCE's switch takes up to 0.8 us longer than the InfiniBand of
// NCCL's figures. Published, 16 B over two boxes of MI355X: 37.35 us. An all-to-all in Simple starts after
// 17 us.
TEST(Meshes, RcclTakesItsOwnFiguresBetweenBoxesToo) {
  const Cluster one(boxes("mi355x-8", 1)), two(boxes("mi355x-8", 2, "roce-400g"));
  EXPECT_NEAR(microseconds(lowered(two, CollectiveKind::all_reduce, 16, 16).latency), 12 + 4.8 + 21 + 0.8,
              0.8);
  EXPECT_NEAR(microseconds(lowered(one, CollectiveKind::all_to_all, 8, 8 << 20).latency), 17, 1e-3);
}

// A ring in LL128 over two boxes of gfx950 fills the wires but for its flags (8 of 128 bytes). 64 MiB:
// 2 x 15/16 S = 30/16 S over eight NICs of 0.985 x 48.6 GB/s x 120/128 take 350 us. Before that a start of
// 12 us, 26 hops of 2 (posting on AMD's hosts) and four of 9.5 and up to 0.8 for the switch (the last piece
// crosses twice in each round), 105 us. Published: 439 us.
TEST(Meshes, RingsInLL128FillTheWiresOfAmdsBoxes) {
  const Cluster two(boxes("mi355x-8", 2, "roce-400g"));
  const Activity activity = lowered(two, CollectiveKind::all_reduce, 16, 64 << 20);
  EXPECT_NEAR(activity.cap.value(), 0.985 * 8 * 48.6e9 * 120 / 128 * 16 / 30, 0.02 * activity.cap.value());
  EXPECT_NEAR(microseconds(activity.latency), 12 + 26 * 2 + 4 * (9.5 + 0.8), 0.8);
}

// Direct all-reduce: reduce-scatter and gather, each S/8 over every one of the 56 links. A start (17 us) and
// two steps (2.1 us), 21 us; then 16 MiB take 2/8 S / 57 GB/s = 74 us on the links.
TEST(Meshes, ADirectAllReduceTakesTwoStepsAndLoadsEveryLinkAlike) {
  const Cluster box(boxes("mi355x-8", 1));
  const Activity activity = lowered(box, CollectiveKind::all_reduce, 8, 16 << 20);
  EXPECT_EQ(activity.usage.size(), 56U);
  for (const topology::LinkShare& use : activity.usage) EXPECT_NEAR(use.share, 2.0 / 8, 1e-9);
  EXPECT_NEAR(microseconds(activity.latency), 17 + 2 * 2.1, 1e-3);
  // HCL and HCCL exchange directly at any size.
  for (const char* node : {"gaudi2-8", "ascend-910b-8"})
    EXPECT_EQ(chosen(Cluster(boxes(node, 1)), CollectiveKind::all_gather, 1 << 30).algorithm,
              Algorithm::direct)
        << node;
}

// More boxes take longer at small and middle sizes, except around 512 KiB over two boxes, where RCCL's
// ranking goes from trees to a ring and back. Large sizes are left out: over its NIC an accelerator has an
// eighth ring beside the seven of its links, 8 x 47.7 GB/s against 7 x 47.7.
TEST(Meshes, OneBoxIsFasterThanSeveral) {
  const scenario::BenchSizes sizes{Bytes(1 << 10), Bytes(1 << 20), 32};
  const auto bench_of = [&](std::uint32_t nodes) {
    scenario::Scenario scenario;
    scenario.topology = boxes("mi300x-8", nodes, "roce-400g");
    return scenario::bench(scenario, topology::test::catalogue(), CollectiveKind::all_reduce, sizes).rows;
  };
  const auto one = bench_of(1), two = bench_of(2), four = bench_of(4);
  for (std::size_t i = 0; i < one.size(); ++i) {
    EXPECT_LT(one[i].time, two[i].time) << one[i].size.value();
    EXPECT_LT(two[i].time, four[i].time) << one[i].size.value();
  }
}

// A node of Frontier has four NICs, each on a die of its own. A ring leaves by each of them: all-gather over
// 16 dies, 15/16 S by four NICs.
TEST(Meshes, RingsOfMi250xLeaveByAllNics) {
  topology::TopologySpec spec = boxes("mi250x-4", 2);
  spec.fabric = {};
  spec.fabric.use = "frontier";
  const Cluster two(spec, forced(Algorithm::ring));
  expect_each(on_fabric(two, lowered(two, CollectiveKind::all_gather, 16)).nics, 8, 15.0 / 16 / 4);
}

// P5 has four EFA adapters behind each PCIe switch, which AWS's plugin presents as one port. So NCCL sees
// eight NICs of 400 Gbit/s and chooses as with eight NDR NICs, and the bytes leave by all 32: with NVLSTree 8
// heads x 1/8 S. The plugin also reports 75 us to NCCL, on P4d too. P4d's adapters stay single and may
// deliver out of order, so NCCL has only Simple there.
TEST(Meshes, EfaAdaptersOfOneSwitchAreOnePort) {
  const Cluster two(boxes("p5", 2, "efa-100g"));
  const Choice large = chosen(two, CollectiveKind::all_reduce, std::int64_t{1} << 30);
  EXPECT_EQ(large.algorithm, Algorithm::nvls_tree);
  expect_each(on_fabric(two, lowered(two, CollectiveKind::all_reduce, 16, 1 << 30)).nics, 64, 1.0 / 32);
  const auto small_us = [](const char* node, const char* link) {
    const Form form{node, 2, link, Algorithm::direct, Protocol::simple, 0};
    return microseconds(bench(form, false, {Bytes(8), Bytes(8), 2})[0].time);
  };
  // nccl-tests, 8 B: p4de 164 us, p5 69 us (awsome-distributed-training). Most of that is the two hops of a
  // tree over the network.
  EXPECT_NEAR(small_us("p4d", "efa-100g"), 164, 0.15 * 164);
  EXPECT_NEAR(small_us("p5", "efa-100g"), 69, 0.35 * 69);
}

// P6-B300 has two adapters of 400 Gbit/s beside each GPU: 8 heads x 1/8 S leave a box by 16 NICs.
TEST(Meshes, BothAdaptersOfAGpuOfP6B300Carry) {
  const Cluster two(boxes("p6-b300", 2, "efa-400g"), forced(Algorithm::nvls_tree));
  expect_each(on_fabric(two, lowered(two, CollectiveKind::all_reduce, 16, 1 << 30)).nics, 32, 1.0 / 16);
}

// Two trays of one rack share an NVLink domain and leave their NICs alone; two trays of different racks do
// not. A ring's all-gather over the latter leaves a tray by its four NICs, 7/8 S in all.
TEST(Meshes, TraysOfTwoRacksMeetOverTheirNics) {
  const Cluster rack(boxes("gb300-nvl72", 2, "roce-800g"), forced(Algorithm::ring)),
      racks(boxes("gb300x4", 2, "roce-800g"), forced(Algorithm::ring));
  EXPECT_TRUE(on_fabric(rack, lowered(rack, CollectiveKind::all_gather, 8)).nics.empty());
  expect_each(on_fabric(racks, lowered(racks, CollectiveKind::all_gather, 8)).nics, 8, 7.0 / 8 / 4);
}

// AWS's plugin sets NCCL_PROTO=simple where adapters may deliver out of order (P4d, P4de, G6), also for
// groups inside a box.
TEST(Meshes, PluginsOfP4dAndA3MegaLeaveNcclSimpleAlone) {
  for (const char* node : {"p4d", "p4de", "g6e-48xlarge"}) {
    const Cluster two(boxes(node, 2, "efa-100g"));
    for (const std::size_t gpus : {8U, 16U})
      for (const std::int64_t bytes : {8, 1 << 20, 16 << 20, 1 << 30})
        EXPECT_EQ(two.nccl
                      .choose(CollectiveKind::all_reduce, Bytes(bytes),
                              two.topology.accelerators().subspan(0, gpus))
                      .protocol,
                  Protocol::simple)
            << node << ' ' << gpus << ' ' << bytes;
  }
  // Google's profile for A3 Mega sets Simple too, and rings and trees as the only algorithms.
  const Cluster mega(boxes("gcp-a3-megagpu-8g", 2, "tcpxo-200g"));
  for (const std::int64_t bytes : {8, 16 << 20, 1 << 30}) {
    const Choice choice = chosen(mega, CollectiveKind::all_reduce, bytes);
    EXPECT_EQ(choice.protocol, Protocol::simple);
    EXPECT_TRUE(choice.algorithm == Algorithm::ring || choice.algorithm == Algorithm::tree);
  }
  const Cluster p5(boxes("p5", 2, "efa-100g"));
  EXPECT_EQ(chosen(p5, CollectiveKind::all_reduce, 8).protocol, Protocol::ll);
}
}  // namespace topsim::collective::meshes_test
