// Kernels of an H100 and an H200 of which no constant comes (tests/golden/accelerator): tokens one by one,
// products of stored scores, and DeepSeek's heads.
#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "tests/workloads/timed_kernels.hpp"
#include "topology/catalogue/link_entry.hpp"
#include "workloads/compute/compute_model.hpp"

namespace topsim::workloads::more_kernels_test {
using namespace testing;

using nlohmann::json;

// Of `predicted(model, row)` seconds; a row ends with its microseconds, of which there are `least` at least.
template <class Predicted>
Errors errors_on_an_h100(const char* section, const Predicted& predicted, double least = 0) {
  const topology::Accelerator h100 = cool("h100-sxm5");
  const ComputeModel model(h100, {});
  Errors errors;
  const json rows = timed_rows("h100-sxm5-more", section);
  for (const json& row : rows) {
    const double microseconds = row.back();
    if (microseconds >= least) errors.add(predicted(model, row), microseconds * 1e-6);
  }
  return errors;
}

// From a graph, with 0.5 us between two kernels; 1 to 256 rows, weights read from memory.
TEST(MoreKernels, ProductsOfFewRowsWaitForTheirWeights) {
  const Errors errors = errors_on_an_h100("decode", [](const ComputeModel& model, const json& row) {
    return model.gemm({row[0], row[1], row[2]}, Precision::bf16).seconds + 0.5e-6;
  });
  EXPECT_EQ(errors.count, 72);
  EXPECT_LT(errors.mean(), 0.07);
  EXPECT_LT(errors.worst, 0.20);
}

TEST(MoreKernels, ProductsOfStoredScoresAreOneForEachHead) {
  const Errors errors = errors_on_an_h100("batched", [](const ComputeModel& model, const json& row) {
    const double batch = row[1], tokens = row[2], head = row[3];
    const GemmShape shape =
        row[0] == "q k" ? GemmShape{tokens, tokens, head, batch} : GemmShape{tokens, head, tokens, batch};
    return model.gemm(shape, Precision::bf16).seconds;
  });
  EXPECT_EQ(errors.count, 24);
  EXPECT_LT(errors.mean(), 0.05);
  EXPECT_LT(errors.worst, 0.09);
}

// FlashAttention-2 and cuDNN; kernels below 100 us waited for the host.
TEST(MoreKernels, OneQueryReadsItsKeysAndValues) {
  const auto predicted = [](const ComputeModel& model, const json& row) {
    const AttentionShape shape{row[1], row[3], row[4], 1, row[2], 128, 128, false};
    return model.attention_decode(shape, Precision::bf16, Precision::bf16).seconds;
  };
  const Errors errors = errors_on_an_h100("decode_attention", predicted, 100);
  EXPECT_EQ(errors.count, 20);
  EXPECT_LT(errors.mean(), 0.09);
  EXPECT_LT(errors.worst, 0.16);
}

// 16 MiB and more between pinned memory of the host and the chip, one way: 52 to 55 GB/s.
TEST(MoreKernels, CopiesToTheHostReachThePayloadOfPcie) {
  const double rate = topology::payload_capacity(shipped().link("pcie5-x16")).value();
  int copies = 0;
  for (const char* file : {"h100-sxm5-more", "h200-sxm"}) {
    const json rows = timed_rows(file, "host_copies");
    for (const json& row : rows) {
      const double bytes = row[2], seconds = row[3].get<double>() * 1e-6;
      if (row[0] != "pinned" || row[1] == "both ways" || bytes < 16e6) continue;
      EXPECT_NEAR(bytes / seconds, rate, 0.06 * rate) << row;
      ++copies;
    }
  }
  EXPECT_EQ(copies, 8);
}

// DeepSeek's: queries and keys of 192 numbers, values of 128. All are predicted too fast, forward by up to 5
// %, backward by up to 16.
TEST(MoreKernels, LatentAttentionTakesItsTiles) {
  for (const auto& [file, id] : {std::pair("h100-sxm5-more", "h100-sxm5"), {"h200-sxm", "h200-sxm"}}) {
    const topology::Accelerator hopper = cool(id);
    const ComputeModel model(hopper, {});
    const json rows = timed_rows(file, "latent_attention");
    for (const json& row : rows) {
      SCOPED_TRACE(row.dump());
      const double heads = row[3], forward = row[4].get<double>() * 1e-6,
                   backward = row[5].get<double>() * 1e-6;
      const AttentionShape shape{row[1], heads, heads, row[2], row[2], 192, 128};
      EXPECT_NEAR(model.attention_forward(shape, AttentionKernel::flash, Precision::bf16).seconds, forward,
                  0.06 * forward);
      EXPECT_NEAR(model.attention_backward(shape, AttentionKernel::flash, Precision::bf16).seconds, backward,
                  0.17 * backward);
    }
  }
}
}  // namespace topsim::workloads::more_kernels_test
