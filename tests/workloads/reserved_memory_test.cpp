// What PyTorch's allocator reserves for torchtitan's Llama 3 8B with FSDP2, played through tensor by tensor.
#include <gtest/gtest.h>

#include <cstdint>
#include <initializer_list>
#include <vector>

#include "tests/workloads/allocator_replay.hpp"
#include "tests/workloads/fixtures.hpp"
#include "workloads/memory/memory.hpp"

namespace topsim::workloads::reserved_memory_test {
using namespace testing;

using Tensor = std::size_t;
using Tensors = std::vector<Tensor>;
constexpr double kHidden = 4096, kWide = 14336, kKeys = 1024, kWords = 128256;
constexpr int kLayers = 32, kGathers = 1, kReductions = 2;  // the streams of FSDP beside the computing one

struct Job {
  bool eager = false;
  RecomputeKind recompute = RecomputeKind::selective;
  int ranks = 8;
  double tokens = 16384;
};

// Steps of one rank. Tensors are taken and given back as torchtitan's code of 2024 does
// (models/llama/model.py, models/norms.py, F.cross_entropy; _fsdp_param_group.py, _fsdp_collectives.py;
// torch/optim/adamw.py). What passes through a layer's backward pass is left out: it finds room where the
// logits were.
class Steps {
 public:
  Steps(Segments segments, const Job& job) : memory_(segments), job_(job) {
    for (const double part : parts()) take(4 * part / job_.ranks);
  }
  double reserved_after(int steps) {
    for (int i = 0; i < steps; ++i) step();
    return memory_.reserved_gib();
  }

 private:
  Tensor take(double bytes, int stream = 0) { return memory_.take(bytes, stream); }
  Tensors take(const std::vector<double>& parts, double bytes, int stream = 0) {
    Tensors result;
    for (const double part : parts) result.push_back(take(bytes * part, stream));
    return result;
  }
  void give(std::initializer_list<Tensor> tensors) {
    for (const Tensor tensor : tensors) memory_.give(tensor);
  }
  void give(Tensors& tensors) {
    for (const Tensor tensor : tensors) memory_.give(tensor);
    tensors.clear();
  }
  // wq, wk, wv, wo, w1, w2, w3 and two norms; embedding, norm and head; all.
  static std::vector<double> layer_parts() {
    const double square = kHidden * kHidden, keys = kHidden * kKeys, wide = kHidden * kWide;
    return {square, keys, keys, square, wide, wide, wide, kHidden, kHidden};
  }
  static std::vector<double> root_parts() { return {kWords * kHidden, kHidden, kWords * kHidden}; }
  static std::vector<double> parts() {
    std::vector<double> result = root_parts();
    for (int i = 0; i < kLayers; ++i)
      for (const double part : layer_parts()) result.push_back(part);
    return result;
  }
  static double sum(const std::vector<double>& parts) {
    double result = 0;
    for (const double part : parts) result += part;
    return result;
  }

  // The shards are cast and gathered on a stream of their own; copying out frees the buffer before.
  Tensor gather(const std::vector<double>& unit) {
    Tensors cast = take(unit, 2.0 / job_.ranks, kGathers);
    const Tensor buffer = take(2 * sum(unit), kGathers);
    give(cast);
    return buffer;
  }
  Tensors copied_out(Tensor buffer, const std::vector<double>& unit) {
    Tensors weights = take(unit, 2);
    give(last_gather_);
    last_gather_ = {buffer};
    return weights;
  }

  // x.float(), x * x, its mean, the product with its root, type_as, times weight. In compiled layers it is
  // one kernel; the final one is not compiled.
  Tensor norm(Tensors* kept) {
    if (!job_.eager && kept == nullptr) return take(row_);
    const Tensor wide = take(2 * row_), square = take(2 * row_);
    give({square});
    const Tensor normed = take(2 * row_), narrow = take(row_);
    give({normed});
    if (kept == nullptr) give({wide});
    const Tensor result = take(row_);
    if (kept == nullptr) give({narrow});
    if (kept != nullptr) kept->insert(kept->end(), {wide, narrow});
    return result;
  }
  Tensor layer(Tensors& kept) {
    const bool eager = job_.eager, keeps = job_.recompute == RecomputeKind::selective;
    const Tensor input = norm(nullptr), q = take(row_), k = take(keys_), v = take(keys_);
    // Rotary embedding of complex numbers, the repeated keys and values.
    const Tensor wide_q = take(2 * row_), wide_k = take(2 * keys_), turned_q = take(2 * row_),
                 turned_k = take(2 * keys_), rotary_q = take(row_), rotary_k = take(keys_);
    give({wide_q, wide_k, turned_q, turned_k});
    if (!keeps) give({q});
    if (!eager) give({k});
    const Tensor all_keys = take(row_), all_values = take(row_);
    if (!eager) give({rotary_k});
    if (!keeps) give({v});
    const Tensor context = take(row_), sums = take(4 * 32 * job_.tokens);
    if (!eager) give({input, rotary_q, all_keys, all_values});
    const Tensor projected = take(row_);
    if (eager) give({rotary_q, rotary_k, all_keys, all_values, k});
    if (!keeps) give({context, sums});
    const Tensor residual = take(row_);
    give({projected});
    if (eager) give({input});

    const Tensor second = norm(nullptr), w1 = take(wide_), silu = eager ? take(wide_) : 0, w3 = take(wide_);
    if (!eager) give({second});
    if (!keeps) give({w1});
    const Tensor product = eager ? take(wide_) : w3;  // compiled in place
    if (eager) give({silu, w3});
    const Tensor w2 = take(row_);
    give({product});
    if (keeps) kept.insert(kept.end(), {q, v, context, sums, w1});
    if (!eager) return give({residual}), w2;
    kept.push_back(w2);
    give({second});
    const Tensor output = take(row_);
    give({residual});
    return output;
  }

  void step() {
    row_ = 2 * job_.tokens * kHidden, keys_ = 2 * job_.tokens * kKeys, wide_ = 2 * job_.tokens * kWide;
    const double logits = job_.tokens * kWords;
    Tensors root = copied_out(gather(root_parts()), root_parts()), weights;
    Tensor next = gather(layer_parts()), x = take(row_);
    Tensors kept;
    for (int i = 0; i < kLayers; ++i) {
      weights = copied_out(next, layer_parts());
      if (i + 1 < kLayers) next = gather(layer_parts());
      kept.push_back(x);
      x = layer(kept);
      if (i + 1 < kLayers) give(weights);
    }
    kept.push_back(x);
    kept.push_back(norm(&kept));
    // Cast, log_softmax; then the gradients of nll_loss, of log_softmax and of the cast.
    const Tensor narrow = take(2 * logits), wide = take(4 * logits), softmax = take(4 * logits);
    give({wide, narrow});
    const Tensor first = take(4 * logits), second = take(4 * logits);
    give({first, softmax});
    const Tensor gradient = take(2 * logits);
    give({second, gradient});
    const Tensor head = take(2 * kWords * kHidden), embedding = take(2 * kWords * kHidden);
    give(kept);
    give(weights);
    for (int i = 0; i < kLayers; ++i) reduce(layer_parts());
    reduce(root_parts());
    give({head, embedding});
    give(root);
    give(last_gather_);
    if (!updated_) take(parts(), 4.0 / job_.ranks), take(parts(), 4.0 / job_.ranks);  // both moments
    updated_ = true;
    Tensors roots_of_moments = take(parts(), 4.0 / job_.ranks);
    give(roots_of_moments);
    give(gradients_);
  }
  void reduce(const std::vector<double>& unit) {
    const Tensor sent = take(4 * sum(unit));
    gradients_.push_back(take(4 * sum(unit) / job_.ranks, kReductions));
    give({sent});
  }

  AllocatorReplay memory_;
  Job job_;
  double row_ = 0, keys_ = 0, wide_ = 0;
  bool updated_ = false;
  Tensors gradients_, last_gather_;
};

double reserved(Segments segments, const Job& job) {
  return Steps(segments, job).reserved_after(3);
}

double predicted(const Job& job) {
  WorkloadSpec workload;
  workload.model = llama3_70b();
  workload.model.layers = kLayers, workload.model.hidden = static_cast<int>(kHidden);
  workload.model.heads = 32, workload.model.ffn = static_cast<int>(kWide);
  workload.framework = job.eager ? "fsdp" : "fsdp@2024-compile";
  workload.sequence = 8192;
  workload.plan.micro_batch = static_cast<int>(job.tokens / 8192);
  workload.plan.recompute = RecomputeSpec{job.recompute, {}};
  const auto ranks = static_cast<std::uint32_t>(job.ranks);
  return memory_use(workload, h100(), ranks).peak().total() / (1U << 30U);
}

constexpr RecomputeKind kByOperator = RecomputeKind::selective;
constexpr bool kEager = true, kCompiled = false;

// Published (GiB) by runs of torchtitan's script, whose segments expand: pull requests 996 (49.6) and 808
// (47.65). After one step, before there are moments, torchao's pull request 1802 reads 40.25.
TEST(ReservedMemory, OfTheScriptIsWhatExpandableSegmentsHold) {
  const Job eager{kEager, kByOperator, 8, 8192}, compiled{kCompiled, kByOperator, 8, 8192};
  EXPECT_NEAR(reserved(Segments::expandable, eager) / 49.6, 1, 0.004);
  EXPECT_NEAR(reserved(Segments::expandable, compiled) / 47.65, 1, 0.004);
  EXPECT_NEAR(Steps(Segments::expandable, compiled).reserved_after(1) / 40.25, 1, 0.004);
}

// topsim does not count the holes that the temporaries of norms and layers leave: 0.1 to 0.8 GiB.
TEST(ReservedMemory, IsPredictedForExpandableSegmentsButForHoles) {
  for (const bool eager : {kEager, kCompiled})
    for (const Job& job :
         {Job{eager, kByOperator, 8, 8192}, Job{eager, kByOperator, 8, 16384},
          Job{eager, kByOperator, 128, 16384}, Job{kCompiled, RecomputeKind::full, 8, 32768}}) {
      const double holes = reserved(Segments::expandable, job) - predicted(job);
      EXPECT_GT(holes, 0.1);
      EXPECT_LT(holes, 0.8);
    }
}

// The published table of one-dimensional parallelism: 82.4, 77.0, 67.0 and 62.0 GiB. In fixed segments the
// moments of 8 ranks, 7.5 GiB, take the place of the second fp32 gradient of the logits, 7.8 GiB; those of
// 128 ranks do not. So 128 ranks need 15.0 GiB less, as published; in segments that expand it would be 14.2.
TEST(ReservedMemory, OfTheTableIsWhatFixedSegmentsHold) {
  const double published[2][2] = {{82.4, 67.0}, {77.0, 62.0}};
  for (const bool eager : {kEager, kCompiled}) {
    const Job few{eager, kByOperator, 8, 16384}, many{eager, kByOperator, 128, 16384};
    const double fixed[2] = {reserved(Segments::fixed, few), reserved(Segments::fixed, many)};
    for (const int i : {0, 1}) EXPECT_NEAR(fixed[i] / published[eager ? 0 : 1][i], 1, 0.015);
    EXPECT_NEAR(fixed[0] - fixed[1], 15.0, 0.05);
    EXPECT_NEAR(reserved(Segments::expandable, few) - reserved(Segments::expandable, many), 14.2, 0.05);
  }
}
}  // namespace topsim::workloads::reserved_memory_test
