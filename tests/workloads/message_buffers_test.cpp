// What PyTorch's pipelines keep of every micro-batch until the step ends.
#include "workloads/memory/message_buffers.hpp"

#include <gtest/gtest.h>

#include "tests/workloads/fixtures.hpp"
#include "workloads/model.hpp"
#include "workloads/plan.hpp"

namespace topsim::workloads::message_buffers_test {
using namespace testing;

// GPT of h 1024, 51200 words, 2048 tokens, 8 micro-batches. One message is S = 2 x 2048 x 1024 bytes.
constexpr double kMessage = 2 * 2048.0 * 1024, kLogits = 2 * 2048.0 * 51200;
WorkloadSpec job(std::string framework, int stages) {
  WorkloadSpec workload;
  workload.model = gpt(4, 1024, 16);
  workload.model.tied_embeddings = false;
  workload.model = complete(workload.model);
  workload.framework = std::move(framework);
  workload.plan.pp = stages, workload.plan.grad_accumulation = 8;
  return workload;
}
double buffers(const WorkloadSpec& workload, int stage) {
  return message_buffers(workload.model, resolve(workload, 8), stage);
}

// 1F1B on 4 stages, with at most 4, 3, 2 and 1 micro-batches in flight. Until the step ends a stage keeps,
// for all 8, its output and that output's gradient, 16 S (the last one instead the logits of 7); and, except
// for the first stage, input and input gradient of those not in flight: 5, 6 and 7.
TEST(MessageBuffers, AreThoseOfEveryMicroBatch) {
  const WorkloadSpec workload = job("fsdp", 4);
  EXPECT_DOUBLE_EQ(buffers(workload, 0), 16 * kMessage);
  EXPECT_DOUBLE_EQ(buffers(workload, 1), (16 + 2 * 5) * kMessage);
  EXPECT_DOUBLE_EQ(buffers(workload, 2), (16 + 2 * 6) * kMessage);
  EXPECT_DOUBLE_EQ(buffers(workload, 3), 2 * 7 * kMessage + 7 * kLogits);
}

// Two chunks on each of two ranks: rank 0 has the model's stages 0 and 2.
TEST(MessageBuffers, AreThoseOfEachChunk) {
  WorkloadSpec workload = job("fsdp", 2);
  workload.plan.schedule = Schedule::interleaved, workload.plan.virtual_stages = 2;
  // Rank 0 starts with 2 (2 - 1) + 2 = 4 forward passes, two of each chunk, and one more before the first
  // backward pass, which is of chunk 1. So at most 4 micro-batches of chunk 0 and 2 of chunk 1 are in flight.
  EXPECT_DOUBLE_EQ(buffers(workload, 0), 16 * kMessage + (16 + 2 * (8 - 2)) * kMessage);
}

TEST(MessageBuffers, AreOfPipelinesOfPyTorchAlone) {
  EXPECT_EQ(buffers(job("fsdp", 1), 0), 0);
  EXPECT_EQ(buffers(job("megatron", 4), 1), 0);
  EXPECT_EQ(buffers(job("deepspeed", 4), 1), 0);
}
}  // namespace topsim::workloads::message_buffers_test
