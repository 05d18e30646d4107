// Pipeline schedules with equal stages and no transfer time, run through program, folding, network and
// executor, must idle for exactly their closed forms.
#include <gtest/gtest.h>

#include "sim/executor/simulate.hpp"
#include "topology/build.hpp"
#include "topology/catalogue.hpp"
#include "workloads/training_step.hpp"

namespace topsim::property::bubble_test {

using namespace topsim::literals;

struct Bubble {
  Duration step, bubble, busy;
};

// One box of eight GPUs with `stages` stages, in replicas that do not communicate. For a micro-batch every
// stage takes `forward` and twice that backward, all its chunks together.
Bubble run(workloads::Schedule schedule, int stages, int micro_batches, int chunks, Duration forward) {
  static const topology::Catalogue catalogue = topology::Catalogue::load(TOPSIM_SOURCE_DIR "/configs");
  topology::TopologySpec spec;
  spec.node.use = "hgx-h100";
  const topology::Topology topology = topology::build(spec, catalogue);
  workloads::WorkloadSpec workload;
  workload.model.layers = stages * chunks;
  workload.model.hidden = 1024;
  workload.model.heads = 16;
  workload.model.vocab = 32000;
  workload.sequence = 1024;
  workload.plan.pp = stages;
  workload.plan.virtual_stages = chunks;
  workload.plan.schedule = schedule;
  workload.plan.grad_accumulation = micro_batches;
  workload.compute.stage_times = {{forward}, {forward}, {forward}, {Duration(0)}};
  const program::Program program = workloads::training_step(workload, topology, catalogue);
  const topology::Router router(topology, 1);
  const collective::NcclModel nccl(router, {});
  executor::RunOptions options;
  options.steps = 1;
  const executor::Outcome outcome = executor::simulate(program, router, nccl, options, nullptr);
  Bubble result{outcome.step_times[0], {}, {}};
  for (const auto& rank : outcome.ranks) {
    const auto members = static_cast<std::int64_t>(rank.members.size());
    for (const auto& step : rank.steps) {
      result.busy += step.busy * members;
      result.bubble += step.idle[static_cast<std::size_t>(executor::Reason::pipeline_bubble)] * members;
    }
  }
  result.busy /= program.ranks;
  result.bubble /= program.ranks;
  return result;
}

TEST(Bubble, Of1f1bIsPMinus1OverMPlusPMinus1ToThePicosecond) {
  // Forward t and backward 2t: every rank computes for m x 3t of a step of (m + p - 1) x 3t.
  for (const auto& [p, m] : {std::pair(2, 4), std::pair(4, 8), std::pair(8, 8), std::pair(8, 32)}) {
    const Bubble b = run(workloads::Schedule::one_f_one_b, p, m, 1, 1_ms);
    EXPECT_EQ(b.step, 3_ms * (m + p - 1)) << p << " stages, " << m << " micro-batches";
    EXPECT_EQ(b.busy, 3_ms * m);
    EXPECT_EQ(b.bubble, 3_ms * (p - 1));
  }
}

TEST(Bubble, OfGpipeIsTheSame) {
  const Bubble b = run(workloads::Schedule::gpipe, 4, 8, 1, 1_ms);
  EXPECT_EQ(b.step, 3_ms * (8 + 3));
  EXPECT_EQ(b.bubble, 3_ms * 3);
}

TEST(Bubble, OfInterleavedIsPMinus1OverVMPlusPMinus1ToThePicosecond) {
  // A chunk takes t / v, so the step is (v m + p - 1) x 3t / v.
  for (const auto& [p, m, v] : {std::tuple(4, 8, 2), std::tuple(4, 8, 4), std::tuple(8, 16, 2)}) {
    const Bubble b = run(workloads::Schedule::interleaved, p, m, v, 1_ms);
    EXPECT_EQ(b.step, 3_ms * (v * m + p - 1) / v)
        << p << " stages, " << m << " micro-batches, " << v << " chunks";
    EXPECT_EQ(b.bubble, 3_ms * (p - 1) / v);
  }
}
}  // namespace topsim::property::bubble_test
