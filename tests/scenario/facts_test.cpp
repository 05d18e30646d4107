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

std::string headline(const std::string& topology, const std::string& model) {
  const config::Library library({"configs"});
  return simulate(parse_scenario(R"({"topology": )" + topology + R"(, "workload": {"model": )" + model +
                                     R"(, "sequence": 1024, "plan": {"micro_batch": 1}},
          "run": {"steps": 1, "warmup": 0}})",
                                 "test.json", {}, library),
                  catalogue(), {}, nullptr)
      .result.headline;
}

TEST(Headline, NamesWhatJoinsTheNodesWithOrWithoutSwitches) {
  EXPECT_THAT(headline(R"({"node": "h100x1", "nodes": 2, "fabric": {"kind": "direct", "link": "ib-ndr"}})",
                       "\"gpt2\""),
              HasSubstr("(2 nodes) over InfiniBand NDR 400 Gbit/s"));
  EXPECT_THAT(headline(R"({"node": "tpu-v5e-host", "nodes": 32, "fabric": "tpu-v5e-pod"})", "\"gpt2\""),
              HasSubstr("(32 nodes) over ICI of TPU v5e"));
  EXPECT_THAT(headline(R"({"node": "hgx-h100", "nodes": 1})", "\"gpt2\""), HasSubstr("(1 node) \u00b7 gpt2"));
}

// 12 layers of 12 x 768 x 768, two embeddings of 32,000 x 768 and 1,024 learned positions: 84.9 + 49.2 + 0.8
// M, and 0.1 M of norms and biases.
TEST(Headline, SaysHowLargeAModelWithoutANameIs) {
  const std::string model = R"({"layers": 12, "hidden": 768, "heads": 12, "ffn": 3072, "vocab": 32000})";
  EXPECT_THAT(headline(R"({"node": "hgx-h100", "nodes": 1})", model),
              HasSubstr("a model of 135 M parameters"));
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
