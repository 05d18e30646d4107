// For tests that compare the model of single kernels with times that were measured.
#pragma once

#include <algorithm>
#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "sim/scenario/read/shipped.hpp"
#include "topology/catalogue.hpp"

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
