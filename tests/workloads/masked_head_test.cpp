// A masked language model's head sees the tokens to predict alone.
#include <gtest/gtest.h>

#include "sim/base/error.hpp"
#include "tests/workloads/fixtures.hpp"
#include "workloads/layer/pieces.hpp"
#include "workloads/memory/activations.hpp"
#include "workloads/memory/memory.hpp"
#include "workloads/model.hpp"
#include "workloads/training_step.hpp"

namespace topsim::workloads::masked_head_test {
using namespace testing;

// BERT-large, 512 tokens a sequence, 8 sequences at a time; 80 tokens of each are predicted.
constexpr double kHidden = 1024, kVocab = 30528, kSequences = 8, kTokens = 8 * 512, kPredicted = 8 * 80;

WorkloadSpec bert(std::optional<int> predictions) {
  WorkloadSpec workload;
  workload.model = complete(gpt(24, 1024, 16, 30528, 512));
  workload.model.attention.causal = false;
  workload.framework = "ddp";
  workload.plan.micro_batch = 8, workload.plan.grad_accumulation = 1;
  workload.predictions_per_sequence = predictions;
  return workload;
}
PiecePair head_of(std::optional<int> predictions) {
  const topology::Accelerator accelerator = h100();
  const WorkloadSpec workload = bert(predictions);
  return head(workload.model, resolve(workload, 1), ComputeModel(accelerator, {}));
}
KernelCost sum(const PieceList& list, Part part) {
  KernelCost cost;
  for (const Piece& piece : list.pieces())
    if (piece.part == part) cost += piece.cost;
  return cost;
}

// 2 FLOPs for each predicted token and number of the table, forward; twice that backward.
TEST(MaskedHead, MultipliesThePredictedTokensAlone) {
  const PiecePair pair = head_of(80);
  EXPECT_DOUBLE_EQ(sum(pair.forward, Part::head).flops, 2 * kPredicted * kHidden * kVocab);
  EXPECT_DOUBLE_EQ(sum(pair.backward, Part::head).flops, 4 * kPredicted * kHidden * kVocab);
  const ModelSpec model = bert({}).model;
  EXPECT_DOUBLE_EQ(
      model_flops_per_sequence(model, 512, false) - model_flops_per_sequence(model, 512, false, 80),
      3 * 2 * (512 - 80) * kHidden * kVocab);
  const auto flops = [](std::optional<int> predictions) {
    return training_step(bert(predictions), h100(), 1).facts.model_flops.value();
  };
  EXPECT_NEAR(flops({}) - flops(80), kSequences * 3 * 2 * (512 - 80) * kHidden * kVocab, 1e6);
}

// Every pass of the loss is over 80 / 512 of the logits, in as many kernels.
TEST(MaskedHead, LosesOverThePredictedTokensAlone) {
  const PiecePair all = head_of({}), some = head_of(80);
  for (const auto list : {&PiecePair::forward, &PiecePair::backward}) {
    EXPECT_NEAR(sum(some.*list, Part::loss).seconds / sum(all.*list, Part::loss).seconds, 80.0 / 512, 2e-3);
    EXPECT_EQ(sum(some.*list, Part::loss).kernels, sum(all.*list, Part::loss).kernels);
  }
}

// One kernel takes the rows; backward zeros are written to all, and the rows' gradients added.
TEST(MaskedHead, GathersTheirRowsAndScattersTheirGradients) {
  const PiecePair all = head_of({}), some = head_of(80);
  EXPECT_EQ(sum(some.forward, Part::head).kernels - sum(all.forward, Part::head).kernels, 1);
  EXPECT_EQ(sum(some.backward, Part::head).kernels - sum(all.backward, Part::head).kernels, 2);
  // All tokens named are all tokens.
  EXPECT_EQ(sum(head_of(512).forward, Part::head).seconds, sum(all.forward, Part::head).seconds);
  EXPECT_EQ(sum(head_of(512).backward, Part::head).kernels, sum(all.backward, Part::head).kernels);
}

// Logits and the head's input of 2 bytes exist for the predicted tokens.
TEST(MaskedHead, HoldsLogitsOfThePredictedTokens) {
  const WorkloadSpec all = bert({}), some = bert(80);
  const Plan whole = resolve(all, 1), part = resolve(some, 1);
  EXPECT_DOUBLE_EQ(logits_bytes(some.model, part), whole.loss.held * kPredicted * kVocab);
  EXPECT_NEAR(peak_activations(all.model, whole, 0) - peak_activations(some.model, part, 0),
              (kTokens - kPredicted) * (whole.loss.held * kVocab + 2 * kHidden), 1);
}

TEST(MaskedHead, WhatItCannotBeIsSaid) {
  const auto help = [](const WorkloadSpec& workload) {
    try {
      (void)resolve(workload, 1);
    } catch (const ConfigError& error) {
      return error.problems()[0].path + ": " + error.problems()[0].help;
    }
    return std::string("accepted");
  };
  EXPECT_EQ(help(bert(513)),
            "workload.predictions_per_sequence: at most the sequence; left out it is all of it");
  WorkloadSpec serves = bert(80);
  serves.task = Task::prefill;
  EXPECT_EQ(help(serves), "workload.predictions_per_sequence: leave it out");
  EXPECT_EQ(help(bert(80)), "accepted");
}
}  // namespace topsim::workloads::masked_head_test
