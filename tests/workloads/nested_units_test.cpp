// Units of FSDP within layers: what is gathered and reduced, and in which order.
#include <gtest/gtest.h>

#include <utility>

#include "sim/base/error.hpp"
#include "tests/workloads/exchanged.hpp"
#include "tests/workloads/fixtures.hpp"
#include "tests/workloads/replay.hpp"
#include "workloads/model.hpp"
#include "workloads/training_step.hpp"

namespace topsim::workloads::nested_units_test {
using namespace testing;
using program::OpKind;
using program::Phase;

namespace {
// Units of at least 4 M parameters: the attention (4 x 1024^2 and biases), both products of the network
// (1024 x 4096 each), table and head; norms are the root's.
WorkloadSpec three_in_a_layer(RecomputeKind kind) {
  WorkloadSpec workload = small("fsdp@2024-flat");
  workload.plan.wrap_least = 4e6;
  workload.plan.recompute = RecomputeSpec{kind, {}};
  return workload;
}
}  // namespace

// Units of at least 8 M parameters: each feed-forward network (2 x 1024 x 4096), the table, the head, and one
// unit of what is left of the four layers (4 x 4.2 M), gathered first and reduced before the table. Nothing
// stays gathered for the backward pass: 2 x 7 gathers. With 51 M the layers (50.4 M) are below the limit and
// belong to the root, which stays: 3 gathers forward, and the head's and the table's again backward.
TEST(NestedUnits, AreMadeBySize) {
  WorkloadSpec workload = small("fsdp@2024-flat");
  workload.plan.wrap_least = 8e6;
  const ModelSpec model = complete(workload.model);
  const LayerParameters layer = layer_parameters(model);
  const double around = 4 * (layer.total() - layer.fc1 - layer.fc2), all = parameters_of(workload.model);
  const auto program = training_step(workload, a100(), 8);
  program::validate(program);
  const auto gathers = collectives(program, Phase::parameter_sync);
  ASSERT_EQ(gathers.size(), 14u);
  EXPECT_EQ(static_cast<double>(gathers.front().bytes.value()), 2 * around);
  EXPECT_DOUBLE_EQ(bytes(gathers), 2 * 2 * all);
  const auto reductions = collectives(program, Phase::gradient_sync);
  ASSERT_EQ(reductions.size(), 7u);
  EXPECT_DOUBLE_EQ(bytes(reductions), 2 * all);
  EXPECT_EQ(static_cast<double>(reductions[5].bytes.value()), 2 * around);
  EXPECT_EQ(static_cast<double>(reductions[6].bytes.value()), 2 * embedding_parameters(model));

  workload.plan.wrap_least = 5.1e7;
  EXPECT_EQ(collectives(training_step(workload, a100(), 8), Phase::parameter_sync).size(), 5u);
  workload.plan.pp = 2;
  EXPECT_THROW((void)training_step(workload, a100(), 8), ConfigError);
  workload.plan.wrap_least.reset();
  EXPECT_NO_THROW((void)training_step(workload, a100(), 8));
}

// A checkpoint is around the layer, so that its recompute gathers all but the unit that the backward pass
// begins with, and frees them: 3 + 3 x 4 gathers forward, 2 + 3 x 4 backward, and 2 x 4 more.
TEST(NestedUnits, ACheckpointAroundThemGathersAllButTheLastOnceMore) {
  const WorkloadSpec without = three_in_a_layer(RecomputeKind::none);
  const LayerParameters layer = layer_parameters(complete(without.model));
  const auto kept = collectives(training_step(without, a100(), 8), Phase::parameter_sync);
  const auto program = training_step(three_in_a_layer(RecomputeKind::full), a100(), 8);
  program::validate(program);
  const auto again = collectives(program, Phase::parameter_sync);
  EXPECT_EQ(kept.size(), 15u + 14u);
  EXPECT_EQ(again.size(), 15u + 14u + 8u);
  EXPECT_DOUBLE_EQ(bytes(again) - bytes(kept), 4 * 2 * (layer.qkv + layer.proj + layer.fc1));
  // Every unit's gradients are reduced once, as soon as they are complete.
  EXPECT_EQ(collectives(program, Phase::gradient_sync).size(), 1u + 3 * 4 + 1 + 1);
}

// Gate, up and down are units of their own, and a product stands between any two that are reduced: the
// gradients of gate and up are waited for and sent one at a time.
TEST(NestedUnits, GateAndUpAreWaitedForOneByOne) {
  WorkloadSpec workload = three_in_a_layer(RecomputeKind::none);
  workload.model.gated_ffn = true;
  const auto program = training_step(workload, a100(), 8);
  program::validate(program);
  // Forward: root, table, head and 4 units a layer; backward all but the root.
  EXPECT_EQ(collectives(program, Phase::parameter_sync).size(), 3u + 4 * 4 + 2 + 4 * 4);
  int units = 0, products = 0, apart = 0;
  for (const program::Op& op : program.classes[0].ops) {
    if (op.phase == Phase::backward && op.flops.value() > 0) ++products;
    if (op.kind != OpKind::collective || op.phase != Phase::gradient_sync) continue;
    ++units;
    apart += std::exchange(products, 0) > 0;
  }
  EXPECT_EQ(units, 4 * 4 + 3 + 1);  // and the gradient norm
  EXPECT_EQ(apart, 1 + 4 * 4);      // the head, the layers' units
}

// BACKWARD_PRE: before the gradients of a unit the one before it is launched; without overlap none is ahead,
// and every gather is waited for by the op behind it.
TEST(NestedUnits, NothingIsAheadWithoutOverlap) {
  WorkloadSpec workload = three_in_a_layer(RecomputeKind::full);
  const auto exposed = [&] {
    const auto program = training_step(workload, a100(), 8);
    return growth_by_parameter_sync(program, from_microseconds(50)) / 50e-6;
  };
  const double overlapped = exposed();
  workload.plan.overlap_param_gather = false;
  EXPECT_NEAR(exposed(), 37, 0.5);
  EXPECT_LT(overlapped, 20);
}

// A head below the limit belongs to what is in no unit: two gathers fewer than with a head of its own. The
// table with its positions (4,096 x 1024) stays a unit.
TEST(NestedUnits, ASmallHeadIsTheRoots) {
  WorkloadSpec workload = three_in_a_layer(RecomputeKind::none);
  workload.model.vocab = 2048;
  const auto gathers = collectives(training_step(workload, a100(), 8), Phase::parameter_sync);
  EXPECT_EQ(gathers.size(), 2u + 3 * 4 + 3 * 4 + 1);
}

TEST(NestedUnits, AreTheFirstFsdps) {
  WorkloadSpec workload = three_in_a_layer(RecomputeKind::none);
  workload.framework = "fsdp";  // without a release the set that has them
  EXPECT_NO_THROW((void)training_step(workload, a100(), 8));
  workload.framework = "fsdp@2025-eager";
  EXPECT_THROW((void)training_step(workload, a100(), 8), ConfigError);
  workload.framework = "fsdp@2024-flat";
  workload.task = Task::lora;
  EXPECT_THROW((void)training_step(workload, a100(), 8), ConfigError);
}
}  // namespace topsim::workloads::nested_units_test
