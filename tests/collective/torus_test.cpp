// Collectives on a torus of accelerators: the load of every link, derived by hand. S is the buffer.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "sim/collective/collective.hpp"
#include "tests/topology/fixtures.hpp"

namespace topsim::collective::torus_test {

topology::Topology torus(std::vector<int> dimensions,
                         topology::FabricKind kind = topology::FabricKind::torus) {
  topology::TopologySpec spec;
  spec.node.use = "tpu-v5p-host";  // 2 x 2 x 1 chips
  spec.nodes = 1;
  for (const int size : dimensions) spec.nodes *= size;
  spec.nodes /= 4;
  spec.fabric.kind = kind;
  spec.fabric.link.use = "ici-v5p";
  spec.fabric.dimensions = std::move(dimensions);
  if (spec.fabric.kind == topology::FabricKind::torus) spec.fabric.rings = true;
  return topology::build(spec, topology::test::catalogue());
}

struct Lowered {
  Activity activity;
  std::map<double, int> links;  // for each share, the number of links that carry it
};

Lowered lowered(const topology::Topology& t, CollectiveKind kind, std::span<const DeviceId> gpus) {
  const topology::Router router(t, 1);
  const NcclModel nccl(router);
  Lowered out;
  nccl.lower(kind, Bytes(1 << 30), gpus, out.activity);
  for (const topology::LinkShare& use : out.activity.usage) ++out.links[use.share];
  return out;
}

TEST(Torus, AGatherLoadsEveryLinkOfACubeAlike) {
  // 64 chips with six links each receive 63/64 S: 63/64/6 S on each of the 384 links.
  const topology::Topology t = torus({4, 4, 4});
  const Lowered gather = lowered(t, CollectiveKind::all_gather, t.accelerators());
  ASSERT_EQ(gather.links.size(), 1U);
  EXPECT_NEAR(gather.links.begin()->first, 63.0 / 64 / 6, 1e-12);
  EXPECT_EQ(gather.links.begin()->second, 384);
  // 3 us to start and two hops (half a ring of four) along each of three axes at 1 us; an all-reduce goes
  // that way twice.
  EXPECT_EQ(gather.activity.latency, from_microseconds(3 + 6));
  EXPECT_EQ(lowered(t, CollectiveKind::all_reduce, t.accelerators()).activity.latency,
            from_microseconds(3 + 12));
}

// A root with six links sends S through them: 1/6 on each.
TEST(Torus, OneRootsLinksCarryAllThatItSends) {
  const topology::Topology t = torus({4, 4, 4});
  for (const CollectiveKind kind : {CollectiveKind::broadcast, CollectiveKind::reduce})
    EXPECT_NEAR(lowered(t, kind, t.accelerators()).links.begin()->first, 1.0 / 6, 1e-12);
}

TEST(Torus, EveryChipTakesInWhatItLacks) {
  // Whatever the shape, each of n chips receives (n - 1)/n S: n - 1 in all.
  for (const std::vector<int>& dims : {std::vector<int>{2, 4, 8}, {4, 8, 1}, {2, 2, 1}, {4, 4, 12}}) {
    const topology::Topology t = torus(dims);
    const auto n = static_cast<double>(t.accelerators().size());
    double sum = 0;
    for (const auto& [share, links] : lowered(t, CollectiveKind::all_gather, t.accelerators()).links)
      sum += share * links;
    EXPECT_NEAR(sum, n - 1, 1e-9);
  }
}

// The buffer is gathered in three parts, each beginning along another axis and going on with the next, from
// the longest axis to the shortest, whatever the order of `dimensions`. In shares of S / (64 x 3), a link
// carries what chips hold before this axis, times half the ring (the axis of 2 is no ring, its link carries
// all):
//   axis of 8: (1 + 2 + 4 x 2) x 7/2 = 38.5
//   axis of 4: (1 + 8 + 2 x 8) x 3/2 = 37.5
//   axis of 2: 1 + 4 + 8 x 4 = 37
TEST(Torus, TheOrderOfDimensionsSaysNothing) {
  std::vector<int> dims{2, 4, 8};
  do {
    const topology::Topology t = torus(dims);
    const Lowered gather = lowered(t, CollectiveKind::all_gather, t.accelerators());
    ASSERT_EQ(gather.links.size(), 3U);
    double share = 37.0;
    for (const auto& [carried, links] : gather.links) {
      EXPECT_NEAR(carried, share / 192, 1e-12);
      share += share == 37.0 ? 0.5 : 1;
    }
  } while (std::next_permutation(dims.begin(), dims.end()));
}

TEST(Torus, AGroupAlongOneAxisUsesThatAxisAlone) {
  // Eight in a ring: each chip receives 7/8 S, half from each side, over 16 directed links.
  const topology::Topology t = torus({4, 4, 8});
  const Lowered gather = lowered(t, CollectiveKind::all_gather, t.accelerators().subspan(0, 8));
  ASSERT_EQ(gather.links.size(), 1U);
  EXPECT_NEAR(gather.links.begin()->first, 7.0 / 16, 1e-12);
  EXPECT_EQ(gather.links.begin()->second, 16);
}

TEST(Torus, WithoutItsEndsJoinedALineCarriesAllThatLiesBehind) {
  // Four in a line, S/4 each: in one direction the three links carry 1, 2 and 3 quarters, in the other the
  // same.
  const topology::Topology t = torus({2, 4, 4}, topology::FabricKind::mesh);
  const Lowered gather = lowered(t, CollectiveKind::all_gather, t.accelerators().subspan(0, 4));
  EXPECT_EQ(gather.links, (std::map<double, int>{{0.25, 2}, {0.5, 2}, {0.75, 2}}));
}

// A slice of 2 x 4 x 4 is no whole cube of TPU v5p, so the ends of its axes are not joined; the first four
// chips are such a line, as above.
TEST(Torus, ASliceWhoseEndsAreNotJoinedHasLines) {
  topology::TopologySpec spec;
  spec.node.use = "tpu-v5p-host";
  spec.nodes = 8;
  spec.fabric.kind = topology::FabricKind::torus;
  spec.fabric.link.use = "ici-v5p";
  spec.fabric.dimensions = {2, 4, 4};
  const topology::Topology t = topology::build(spec, topology::test::catalogue());
  const Lowered gather = lowered(t, CollectiveKind::all_gather, t.accelerators().subspan(0, 4));
  EXPECT_EQ(gather.links, (std::map<double, int>{{0.25, 2}, {0.5, 2}, {0.75, 2}}));
}

TEST(Torus, WhatIsNoBlockIsLeftToRings) {
  const topology::Topology t = torus({4, 4, 4});
  const topology::Router router(t, 1);
  const NcclModel nccl(router);
  const auto all = t.accelerators();
  const std::vector<DeviceId> corner{all[0], all[1], all[4]};
  EXPECT_EQ(nccl.choose(CollectiveKind::all_gather, Bytes(1 << 20), corner).algorithm, Algorithm::ring);
  EXPECT_EQ(nccl.choose(CollectiveKind::all_gather, Bytes(1 << 20), all).algorithm, Algorithm::torus);
}
// An all-to-all does not go axis by axis. `choose` must name the algorithm that `lower` uses.
TEST(Torus, TheChoiceIsThatOfWhatIsLowered) {
  const topology::Topology t = torus({4, 4, 4});
  const topology::Router router(t, 1);
  const NcclModel nccl(router);
  for (const auto& [kind, algorithm] : {std::pair(CollectiveKind::all_reduce, Algorithm::torus),
                                        std::pair(CollectiveKind::barrier, Algorithm::torus),
                                        std::pair(CollectiveKind::all_to_all, Algorithm::direct),
                                        std::pair(CollectiveKind::send_recv, Algorithm::direct)}) {
    const CollectiveCall call{kind, Bytes(1 << 20)};
    EXPECT_EQ(nccl.choose(kind, call.bytes, t.accelerators()).algorithm, algorithm);
    EXPECT_EQ(nccl.lower(std::span(&call, 1), t.accelerators()).calls.front().choice.algorithm, algorithm);
  }
}
// 64 chips send S/64 to each other one, by dimension order. Along a ring of four a message goes 0, 1, 2 or 1
// hops, one on average: 64 x 64 hops of S/64 along each axis over its 128 directed links, so 32 S/64 on each.
TEST(Torus, AnAllToAllLoadsEveryLinkOfACubeAlikeAndNoChannelBoundsIt) {
  const topology::Topology t = torus({4, 4, 4});
  const Lowered all = lowered(t, CollectiveKind::all_to_all, t.accelerators());
  ASSERT_EQ(all.links.size(), 1U);
  EXPECT_NEAR(all.links.begin()->first, 0.5, 1e-12);
  EXPECT_EQ(all.links.begin()->second, 384);
  EXPECT_EQ(all.activity.cap.value(), 0);
  EXPECT_EQ(all.activity.latency, from_microseconds(3 + 6));  // as for a gather
}

// Four chips in a square, S/4 for each: by dimension order a directed link carries the message between its
// ends and one message between opposite corners, 2 S/4.
TEST(Torus, AnAllToAllOfASquareGoesByDimensionOrder) {
  const topology::Topology t = torus({2, 2, 1}, topology::FabricKind::mesh);
  const Lowered all = lowered(t, CollectiveKind::all_to_all, t.accelerators());
  ASSERT_EQ(all.links.size(), 1U);
  EXPECT_NEAR(all.links.begin()->first, 0.5, 1e-12);
}

topology::Topology nodes_of_tori(const char* node, int nodes) {
  topology::TopologySpec spec;
  spec.node.use = node;  // 16 chips in 4 x 4, each with a NIC
  spec.nodes = nodes;
  if (nodes > 1) spec.fabric.kind = topology::FabricKind::rail;
  return topology::build(spec, topology::test::catalogue());
}

// One node of 4 x 4 chips: each receives 15/16 S over four links. Four such nodes with cables along a third
// axis: 63/64 S over six links each; the third axis has half the cables, so it bounds the rate.
TEST(Torus, WithinANodeGathersGoAxisByAxis) {
  const topology::Topology t = nodes_of_tori("trn2", 1), u = nodes_of_tori("trn2-ultra", 1);
  const Lowered gather = lowered(t, CollectiveKind::all_gather, t.accelerators());
  ASSERT_EQ(gather.links.size(), 1U);
  EXPECT_NEAR(gather.links.begin()->first, 15.0 / 16 / 4, 1e-12);
  EXPECT_EQ(gather.links.begin()->second, 64);
  const Lowered large = lowered(u, CollectiveKind::all_gather, u.accelerators());
  ASSERT_EQ(large.links.size(), 1U);
  EXPECT_NEAR(large.links.begin()->first, 63.0 / 64 / 6, 1e-12);
}

// Four nodes of 16: a chip first receives by its NIC the 3/64 S of the chips in the same place on the other
// nodes, then 15/16 S over its four links.
TEST(Torus, BetweenNodesEveryChipHasItsOwnPlaceOnTheOthers) {
  const topology::Topology t = nodes_of_tori("trn2", 4);
  Lowered gather = lowered(t, CollectiveKind::all_gather, t.accelerators());
  double inside = 0, into_nics = 0;
  for (const topology::LinkShare& use : gather.activity.usage) {
    const topology::Link& link = t.link(use.link);
    if (link.kind == topology::LinkKind::torus) {
      EXPECT_NEAR(use.share, 15.0 / 16 / 4, 1e-12);
      inside += use.share;
    }
    if (t.device(link.to).kind == topology::DeviceKind::nic &&
        t.device(link.from).kind == topology::DeviceKind::fabric_switch) {
      EXPECT_NEAR(use.share, 3.0 / 64, 1e-12);
      into_nics += use.share;
    }
  }
  EXPECT_NEAR(inside, 64 * 15.0 / 16, 1e-9);
  EXPECT_NEAR(into_nics, 64 * 3.0 / 64, 1e-9);
  // The chips in one place of all nodes form a ring over their NICs. A row of chips on two nodes is a block
  // too.
  std::vector<DeviceId> place, rows;
  for (std::size_t node = 0; node < 4; ++node) place.push_back(t.accelerators()[16 * node + 5]);
  for (const std::size_t node : {0U, 3U})
    for (std::size_t chip = 4; chip < 8; ++chip) rows.push_back(t.accelerators()[16 * node + chip]);
  const topology::Router router(t, 1);
  const NcclModel nccl(router);
  EXPECT_EQ(nccl.choose(CollectiveKind::all_reduce, Bytes(1 << 20), place).algorithm, Algorithm::torus);
  EXPECT_EQ(nccl.choose(CollectiveKind::all_reduce, Bytes(1 << 20), rows).algorithm, Algorithm::torus);
}

}  // namespace topsim::collective::torus_test
