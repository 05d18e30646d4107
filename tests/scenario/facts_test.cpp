// The words a run uses for its accelerators and their library come from the catalogue.
#include "sim/scenario/run/facts.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/report/terminal.hpp"
#include "sim/scenario/read/read.hpp"
#include "sim/scenario/run/simulate.hpp"

namespace topsim::scenario::facts_test {
using testing::HasSubstr;
using testing::Not;

const topology::Catalogue& catalogue() {
  static const topology::Catalogue loaded = topology::Catalogue::load("configs");
  return loaded;
}

report::Result run(const std::string& node) {
  const config::Library library({"configs"});
  return simulate(parse_scenario(R"({"topology": {"node": ")" + node +
                                     R"(", "nodes": 1}, "workload": {"model": "llama3-8b", "sequence": 1024,
          "plan": {"tp": 4, "micro_batch": 1}}, "run": {"steps": 1, "warmup": 0}})",
                                 "test.json", {}, library),
                  catalogue(), {}, nullptr)
      .result;
}

std::string all_words(const report::Result& result) {
  std::string text = report::to_terminal(result, {});
  for (const report::Finding& each : result.findings) text += each.message + each.remedy;
  for (const auto& each : result.critical_path_links) text += each.what;
  return text;
}

// AMD's are GPUs too; Google's are chips.
TEST(Words, AreThoseOfWhoMakesTheAccelerators) {
  const struct {
    const char *node, *called, *library, *rate;
  } rows[] = {
      {"hgx-h100", "GPU", "NCCL", "TFLOP/s/GPU"},      {"mi300x-8", "GPU", "RCCL", "TFLOP/s/GPU"},
      {"tpu-v5p-host", "chip", "XLA", "TFLOP/s/chip"}, {"gaudi2-8", "accelerator", "HCCL", "TFLOP/s each"},
      {"trn2", "chip", "Neuron", "TFLOP/s/chip"},      {"ascend-910b-8", "NPU", "HCCL", "TFLOP/s/NPU"}};
  for (const auto& row : rows) {
    const report::Result result = run(row.node);
    EXPECT_EQ(result.called, row.called) << row.node;
    EXPECT_EQ(result.library, row.library) << row.node;
    EXPECT_THAT(all_words(result), HasSubstr(row.rate)) << row.node;
    if (row.library != std::string("NCCL")) {
      EXPECT_THAT(all_words(result), Not(HasSubstr("NCCL"))) << row.node;
    }
    if (row.called != std::string("GPU")) {
      EXPECT_THAT(all_words(result), Not(HasSubstr("GPU"))) << row.node;
    }
  }
}

// The catalogue has no library for Cerebras.
TEST(Words, AreNeutralWhereTheCatalogueKnowsNone) {
  EXPECT_EQ(catalogue().accelerator("cerebras-wse3").called, "accelerator");
  EXPECT_EQ(catalogue().accelerator("cerebras-wse3").library, "");
  EXPECT_EQ(metrics::as_driven(""), ", as its library drives it");
  EXPECT_EQ(metrics::as_driven("", true), ", as their library drives them");
  EXPECT_EQ(metrics::as_driven("RCCL"), ", as RCCL drives it");
}
}  // namespace topsim::scenario::facts_test
