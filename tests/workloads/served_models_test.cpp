// What an accelerator keeps of a model that it serves, and what a server of a kind of model does not do.
#include <gmock/gmock.h>

#include "sim/base/error.hpp"
#include "tests/workloads/expect_mistake.hpp"
#include "tests/workloads/fixtures.hpp"
#include "workloads/memory/memory.hpp"
#include "workloads/plan.hpp"

namespace topsim::workloads::served_models_test {
using namespace testing;

WorkloadSpec serving(Task task) {
  WorkloadSpec workload;
  workload.model = llama3_70b();
  workload.task = task;
  workload.plan.tp = 8;
  workload.plan.global_batch = 64;
  return workload;
}

// An encoder reads a prompt once: no later token asks for its keys and values.
TEST(ServedModels, AnEncoderKeepsNoCacheAndGeneratesNothing) {
  WorkloadSpec workload = serving(Task::prefill);
  EXPECT_GT(memory_use(workload, h100(), 8).peak().kv_cache, 0);
  workload.model.attention.causal = false;
  EXPECT_EQ(memory_use(workload, h100(), 8).peak().kv_cache, 0);
  workload.task = Task::decode;
  expect_mistake(workload, "task", "prefill");
  workload.task = Task::prefill;
  workload.precision.kv_cache = Precision::fp8;
  expect_mistake(workload, "precision.kv_cache", "leave it out");
}

TEST(ServedModels, AdaptersAreTrainedOnly) {
  for (const Task task : {Task::prefill, Task::decode}) {
    WorkloadSpec workload = serving(task);
    workload.lora.emplace();
    expect_mistake(workload, "lora", "leave lora out");
  }
}

// One 8-bit scale for 16 numbers of NVFP4, 0.5 + 1/16 bytes each, and for 32 of MXFP8: a cache of 16 bits is
// 3.56 and 1.94 times as large, in memory and as attention reads it.
TEST(ServedModels, CachesInBlocksHaveTheirScales) {
  const topology::Accelerator accelerator = h100();
  const ComputeModel compute(accelerator, {});
  WorkloadSpec workload = serving(Task::decode);
  const auto kept = [&](Precision format) {
    workload.precision.kv_cache = format;
    return memory_use(workload, accelerator, 8).peak().kv_cache;
  };
  const auto read = [&](Precision format, double keys) {
    const AttentionShape shape{1, 8, 8, 1, keys, 128, 128};
    return compute.attention_decode(shape, Precision::bf16, format).seconds;
  };
  for (const auto& [format, bytes] :
       {std::pair(Precision::nvfp4, 0.5625), {Precision::mxfp8, 1.03125}, {Precision::fp8, 1.0}}) {
    EXPECT_DOUBLE_EQ(kept(format), kept(Precision::bf16) * bytes / 2);
    // 8 heads of 128 keys and 128 values for each of 2^20 tokens more, at 0.8 x 3.35 TB/s.
    EXPECT_NEAR(read(format, 2097152) - read(format, 1048576), bytes * 8 * 256 * 1048576 / (0.8 * 3.35e12),
                1e-9);
  }
}

// DeepSeek-V3's attention in 61 layers: 128 heads x (128 + 128) x 512 numbers of the keys' and values'
// projections in 16 bits, 2,046,820,352 bytes beside the 8-bit weights, an eighth of them on each of 8 ranks.
// 16-bit weights are multiplied as they are, 2 bytes for each, which 8-bit ones halve.
TEST(ServedModels, AbsorbedProjectionsAreCopiesOfNarrowWeights) {
  WorkloadSpec workload = serving(Task::decode);
  ModelSpec& model = workload.model;
  model.layers = 61, model.hidden = 7168, model.heads = 128, model.kv_heads = 0, model.ffn = 18432;
  model.attention = {AttentionKind::mla, {}, true, 1536, 512, 128, 64, 128};
  const auto weights = [&] { return memory_use(workload, h100(), 8).peak().weights; };
  const double wide = weights();
  const ModelSpec whole = complete(model);
  const LayerParameters layer = layer_parameters(whole);
  workload.precision.weights = WeightFormat::fp8;
  const double saved = 61 * (layer.split() / 8 + layer.whole());  // one byte each
  EXPECT_DOUBLE_EQ(weights(), wide - saved + 61.0 * 128 * 256 * 512 * 2 / 8);
}
}  // namespace topsim::workloads::served_models_test
