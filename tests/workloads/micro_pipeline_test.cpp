// PyTorch's asynchronous tensor parallelism: a product is cut into a part for each rank, whose rows copy
// engines bring.
#include <gmock/gmock.h>

#include "sim/base/error.hpp"
#include "tests/workloads/fixtures.hpp"
#include "workloads/layer/pieces.hpp"
#include "workloads/model.hpp"
#include "workloads/plan.hpp"
#include "workloads/training_step.hpp"

namespace topsim::workloads::micro_pipeline_test {
using namespace testing;
using program::CollectiveKind;

WorkloadSpec job(TensorOverlap overlap, const char* framework = "fsdp@2024-compile") {
  WorkloadSpec workload;
  workload.model = complete(llama3_70b());
  workload.framework = framework;
  workload.plan.tp = 8, workload.plan.global_batch = 1;
  workload.plan.tp_overlap = overlap;
  return workload;
}
PiecePair layer(const WorkloadSpec& workload, RecomputeKind recompute = RecomputeKind::none) {
  static const topology::Accelerator accelerator = h100();
  const Plan plan = resolve(workload, 8);
  return transformer_layer(workload.model, LayerKind::dense, plan, ComputeModel(accelerator, {}), recompute);
}
int count(const PieceList& list, CollectiveKind kind) {
  int sum = 0;
  for (const Piece& piece : list.pieces()) sum += piece.collective && piece.kind == kind ? 1 : 0;
  return sum;
}

// S = 8192 tokens x 8192 in 16 bits. Forward both gathers and both scatters become seven copies of S / 8
// each, and so do the two gathers of gradients backward. What is scattered backward is a sum of products,
// which the compiler pass does not match (micro_pipeline_tp.py, _find_producer_matmul): two collectives.
TEST(MicroPipeline, FusesWhatThePassMatches) {
  const PiecePair pair = layer(job(TensorOverlap::micro_pipeline));
  EXPECT_EQ(count(pair.forward, CollectiveKind::send_recv), 4 * 7);
  EXPECT_EQ(
      count(pair.forward, CollectiveKind::all_gather) + count(pair.forward, CollectiveKind::reduce_scatter),
      0);
  EXPECT_EQ(count(pair.backward, CollectiveKind::send_recv), 2 * 7);
  EXPECT_EQ(count(pair.backward, CollectiveKind::reduce_scatter), 2);
  EXPECT_EQ(count(pair.backward, CollectiveKind::all_gather), 0);
  for (const Piece& piece : pair.forward.pieces()) {
    if (!piece.collective) continue;
    EXPECT_DOUBLE_EQ(piece.bytes, 8192.0 * 8192 * 2 / 8);
    EXPECT_EQ(piece.units, 0);  // copy engines
  }
}

// Full recompute, without w2: both gathers and wo's scatter run again as copies, beside backward's own two
// gathers.
TEST(MicroPipeline, FusesWhatIsComputedAgain) {
  const PiecePair pair = layer(job(TensorOverlap::micro_pipeline), RecomputeKind::full);
  EXPECT_EQ(count(pair.backward, CollectiveKind::send_recv), (3 + 2) * 7);
}

// Selective recompute by operator runs wk and w3 again, each with the gather of its input; since 2025 also wo
// with its scatter.
TEST(MicroPipeline, FusesOperatorsThatRunAgain) {
  for (const auto& [framework, fused] :
       {std::pair{"fsdp@2024-compile", 2 + 2}, {"fsdp@2025-compile", 3 + 2}}) {
    WorkloadSpec workload = job(TensorOverlap::micro_pipeline, framework);
    workload.plan.recompute = RecomputeSpec{RecomputeKind::selective, {}};
    const PiecePair pair = layer(workload, RecomputeKind::selective);
    EXPECT_EQ(count(pair.backward, CollectiveKind::send_recv), fused * 7) << framework;
    EXPECT_EQ(count(pair.backward, CollectiveKind::all_gather), 0) << framework;
  }
}

// Beside plain tensor parallelism. More: copies of this rank's rows before two gathers (S / 8 read and
// written), and sums of the eight ranks' answers after two scatters (S read, S / 8 written). Less: PyTorch's
// copies after two gathers and before two scatters, 2 S each. Products in eighths cost the same at a fixed
// efficiency, provided that none is limited by memory; hence as many key heads as query heads.
TEST(MicroPipeline, CopiesLessAndSumsByItself) {
  const auto seconds = [](TensorOverlap overlap) {
    const topology::Accelerator accelerator = h100();
    ComputeSettings settings;
    settings.gemm_efficiency = 0.5;
    WorkloadSpec workload = job(overlap);
    workload.model.kv_heads = workload.model.heads;
    const PiecePair pair = transformer_layer(workload.model, LayerKind::dense, resolve(workload, 8),
                                             ComputeModel(accelerator, settings), RecomputeKind::none);
    double sum = 0;
    for (const Piece& piece : pair.forward.pieces()) sum += piece.cost.seconds;
    return sum;
  };
  const double S = 8192.0 * 8192 * 2, rate = 0.8 * 3.35e12;
  const double more = 2 * 2 * S / 8 + 2 * (S + S / 8), less = 4 * 2 * S;
  EXPECT_NEAR(seconds(TensorOverlap::none) - seconds(TensorOverlap::micro_pipeline), (less - more) / rate,
              0.01 * less / rate);
}

TEST(MicroPipeline, NeedsTheCompilerAndSequenceParallelism) {
  EXPECT_THROW((void)resolve(job(TensorOverlap::micro_pipeline, "fsdp@2024"), 8), ConfigError);
  EXPECT_THROW((void)resolve(job(TensorOverlap::micro_pipeline, "megatron"), 8), ConfigError);
  WorkloadSpec workload = job(TensorOverlap::micro_pipeline);
  workload.plan.sequence_parallel = false;
  EXPECT_THROW((void)resolve(workload, 8), ConfigError);
  workload = job(TensorOverlap::micro_pipeline);
  workload.plan.tp = 1, workload.plan.global_batch = 8;
  EXPECT_NO_THROW((void)resolve(workload, 8));
}

// Norm, head and loss are in no compiled layer: their gather stays a collective, waited for at once.
TEST(MicroPipeline, LeavesTheHeadAlone) {
  const topology::Accelerator accelerator = h100();
  const auto collectives = [&](TensorOverlap overlap) {
    const WorkloadSpec workload = job(overlap);
    const PiecePair pair = head(workload.model, resolve(workload, 8), ComputeModel(accelerator, {}));
    return std::pair{pair.forward.pieces().size(), pair.backward.pieces().size()};
  };
  EXPECT_EQ(collectives(TensorOverlap::micro_pipeline), collectives(TensorOverlap::none));
}
}  // namespace topsim::workloads::micro_pipeline_test
