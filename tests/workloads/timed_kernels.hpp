// For tests that compare the model of single kernels with times that were measured.
#pragma once

#include <algorithm>
#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "sim/scenario/read/shipped.hpp"
#include "topology/catalogue.hpp"
#include "workloads/compute/compute_model.hpp"

namespace topsim::workloads::testing {

inline const topology::Catalogue& shipped() {
  static const topology::Catalogue catalogue = scenario::shipped_catalogue();
  return catalogue;
}

// Sweeps of a few calls end before the power limit lowers the clock.
inline topology::Accelerator cool(const std::string& id) {
  topology::Accelerator accelerator = shipped().accelerator(id);
  accelerator.sustained_flops.clear();
  return accelerator;
}

// The rows of a table of tests/golden/accelerator.
inline nlohmann::json timed_rows(const std::string& file, const char* section) {
  std::ifstream golden(std::string(TOPSIM_SOURCE_DIR "/tests/golden/accelerator/") + file + ".json");
  return nlohmann::json::parse(golden).at(section).at("rows");
}

// An attention kernel with heads of 128 that somebody timed.
struct Measured {
  const char* gpu;
  double batch, heads, kv_heads, tokens;
  bool causal;
  double forward, backward;  // TFLOP/s; causal attention counts half the pairs; 0: not measured
  double bound;
};

inline double tflops(const ComputeModel& model, const Measured& row, AttentionKernel kernel, bool backward) {
  const AttentionShape shape{row.batch, row.heads, row.kv_heads, row.tokens, row.tokens,
                             128,       128,       row.causal,   false,      0};
  const double flops =
      (backward ? 2.5 : 1) * 4 * row.batch * row.heads * row.tokens * row.tokens * 128 / (row.causal ? 2 : 1);
  const KernelCost cost = backward ? model.attention_backward(shape, kernel, Precision::bf16)
                                   : model.attention_forward(shape, kernel, Precision::bf16);
  return flops / cost.seconds * 1e-12;
}

// Relative errors of predictions.
struct Errors {
  double sum = 0, absolute = 0, worst = 0;
  int count = 0;
  void add(double predicted, double measured) {
    const double error = predicted / measured - 1;
    sum += error, absolute += std::abs(error), worst = std::max(worst, std::abs(error)), ++count;
  }
  [[nodiscard]] double bias() const { return sum / count; }
  [[nodiscard]] double mean() const { return absolute / count; }
};
}  // namespace topsim::workloads::testing
