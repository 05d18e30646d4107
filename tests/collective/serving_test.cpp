// All-reduces that serving engines do themselves (vLLM's kernels): when they take NCCL's place, and how long
// they take. In one shot every GPU reads all buffers; in two it sums its n-th, then gathers the others'.
#include <gtest/gtest.h>

#include "tests/collective/lowering_fixtures.hpp"

namespace topsim::collective::serving_test {
using namespace fixtures;

Overrides served() {
  Overrides overrides;
  overrides.custom_all_reduce = true;
  return overrides;
}

Algorithm chosen(const Cluster& cluster, std::size_t gpus, std::int64_t bytes) {
  return cluster.nccl
      .choose(CollectiveKind::all_reduce, Bytes(bytes), cluster.topology.accelerators().subspan(0, gpus))
      .algorithm;
}

// vLLM, csrc/custom_all_reduce.cuh: one shot for two GPUs, for four below 512 KiB, for eight below 256 KiB,
// else two shots. From 8 MiB on NCCL.
TEST(Serving, AsManyShotsAsVllmTakes) {
  const Cluster box(boxes("dgx-a100", 1), served());
  EXPECT_EQ(chosen(box, 2, (8 << 20) - 16), Algorithm::one_shot);
  EXPECT_EQ(chosen(box, 4, (512 << 10) - 16), Algorithm::one_shot);
  EXPECT_EQ(chosen(box, 4, 512 << 10), Algorithm::two_shot);
  EXPECT_EQ(chosen(box, 8, (256 << 10) - 16), Algorithm::one_shot);
  EXPECT_EQ(chosen(box, 8, 256 << 10), Algorithm::two_shot);
  EXPECT_EQ(chosen(box, 8, 8 << 20), Algorithm::ring);
}

TEST(Serving, OtherwiseNcclDoesIt) {
  const auto by_nccl = [](const Cluster& cluster, std::size_t gpus) {
    const Algorithm algorithm = chosen(cluster, gpus, 64 << 10);
    return algorithm != Algorithm::one_shot && algorithm != Algorithm::two_shot;
  };
  EXPECT_TRUE(by_nccl(Cluster(boxes("dgx-a100", 1)), 8));                     // not asked for
  EXPECT_TRUE(by_nccl(Cluster(boxes("dgx-a100", 2), served()), 16));          // two boxes
  EXPECT_TRUE(by_nccl(Cluster(boxes("dgx-a100", 1), served()), 3));           // three GPUs
  EXPECT_TRUE(by_nccl(Cluster(boxes("rtx4090-pcie-8gpu", 1), served()), 8));  // no NVLink
  EXPECT_TRUE(by_nccl(Cluster(boxes("dgx-1-v100", 1), served()), 8));  // no switch: not all pairs are linked
}

// On H100 a start takes 4.6 us and each shot 0.8 us, LL's costs. Of S bytes a GPU reads 7 S in one shot and
// 2 x 7/8 S = 1.75 S in two, at 0.7 of the tuner's NVLink rate of 18 x 20.6 GB/s:
//   64 KiB, one shot: 4.6 + 0.8 us, then 7 S / rate = 1.77 us
//   1 MiB, two shots: 4.6 + 2 x 0.8 us, then 1.75 S / rate = 7.07 us
TEST(Serving, AShotIsAStepAndWhatItReads) {
  const Cluster box(boxes("dgx-h100", 1), served());
  const auto us = [&](std::int64_t bytes) {
    const Activity activity = lowered(box, CollectiveKind::all_reduce, 8, bytes);
    return microseconds(activity.latency) + static_cast<double>(bytes) / activity.cap.value() * 1e6;
  };
  const double rate = 0.7 * 18 * 20.6e3;  // bytes a microsecond
  EXPECT_NEAR(us(64 << 10), 5.4 + 7.0 * (64 << 10) / rate, 0.01);
  EXPECT_NEAR(us(1 << 20), 6.2 + 1.75 * (1 << 20) / rate, 0.01);
}

// Bytes into each GPU per byte of the buffer: one shot reads the buffers of seven others, two shots read 7/8
// of a buffer twice.
TEST(Serving, OneShotBringsAllToEveryone) {
  const Cluster box(boxes("dgx-a100", 1), served());
  const Activity one = lowered(box, CollectiveKind::all_reduce, 8, 64 << 10);
  expect_each(box.on_nvlink(one, false), 8, 7);
  const Activity two = lowered(box, CollectiveKind::all_reduce, 8, 1 << 20);
  expect_each(box.on_nvlink(two, false), 8, 2 * 7.0 / 8);
}
}  // namespace topsim::collective::serving_test
