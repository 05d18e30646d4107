// Findings of runs that serve a model.
#include <gtest/gtest.h>

#include <string>

#include "sim/report/findings.hpp"
#include "tests/report/sample.hpp"

namespace topsim::report::served_findings_test {
using namespace topsim::testing;

// A server has none of what training shards or computes again. The advice is for the largest part of 90 GiB,
// which do not fit 80, or of 76, which do.
TEST(ServedFindings, MemoryIsNotSavedAsTrainingSavesIt) {
  const topology::Topology topology = two_nodes();
  ScenarioFacts served = facts();
  served.inference = true;
  const auto remedy = [&](const char* largest, bool fits) {
    Memory used = memory(fits ? 76_GiB : 90_GiB);
    used.fits = fits;
    used.parts = {{"weights", 20_GiB}, {largest, 50_GiB}};
    const Result result = make_result(served, topology, two_ranks(), used, two_steps(topology));
    for (const Finding& each : result.findings)
      if (each.message.find(fits ? "memory is nearly full" : "does not fit") != std::string::npos)
        return each.remedy;
    return std::string();
  };
  const auto says = [](const std::string& text, const char* word) {
    return text.find(word) != std::string::npos;
  };
  for (const bool fits : {false, true}) {
    for (const char* part : {"kv_cache", "activations", "weights"}) {
      EXPECT_FALSE(says(remedy(part, fits), "zero") || says(remedy(part, fits), "recompute")) << part;
      EXPECT_TRUE(says(remedy(part, fits), "more tp")) << part;
    }
    EXPECT_TRUE(says(remedy("kv_cache", fits), "fewer requests"));
    EXPECT_FALSE(says(remedy("kv_cache", fits), "micro_batch"));
    EXPECT_TRUE(says(remedy("activations", fits), "micro_batch"));
    EXPECT_TRUE(says(remedy("weights", fits), "precision.weights"));
  }
}
}  // namespace topsim::report::served_findings_test
