// Folding and the folded run of a hierarchical all-reduce (reduce-scatter in every node, all-reduce on every
// rail, all-gather in every node) on rail-optimised nodes of eight, and refinement alone.
#include <benchmark/benchmark.h>

#include "sim/executor/simulate.hpp"
#include "sim/fold/refine.hpp"
#include "topology/build.hpp"
#include "topology/catalogue.hpp"

namespace topsim {
namespace {

using program::CollectiveKind;

topology::Topology cluster(std::uint32_t nodes) {
  topology::TopologySpec spec;
  spec.node.use = "hgx-h100";
  spec.nodes = static_cast<int>(nodes);
  spec.fabric.kind = topology::FabricKind::rail;
  spec.fabric.link.use = "ib-ndr";
  spec.fabric.routing = topology::Routing::adaptive;
  return topology::build(spec, topology::Catalogue::load("configs"));
}

program::Program hierarchical(std::uint32_t nodes) {
  program::Program program;
  program.ranks = nodes * 8;
  program.class_of_rank.assign(program.ranks, 0);
  program.communicator_slots.assign(2, std::vector<CommunicatorId>(program.ranks));
  const auto communicator = [&](program::Dimension dimension, std::uint32_t slot, auto&& rank_of,
                                std::uint32_t size) {
    const CommunicatorId id(program.communicators.size());
    program.communicators.push_back({dimension, static_cast<std::uint32_t>(program.members.size()), size});
    for (std::uint32_t i = 0; i < size; ++i) {
      program.members.push_back(RankId(rank_of(i)));
      program.communicator_slots[slot][rank_of(i)] = id;
    }
  };
  for (std::uint32_t n = 0; n < nodes; ++n)
    communicator(
        program::Dimension::tensor, 0, [n](std::uint32_t i) { return n * 8 + i; }, 8);
  for (std::uint32_t g = 0; g < 8; ++g)
    communicator(
        program::Dimension::data, 1, [g](std::uint32_t i) { return i * 8 + g; }, nodes);
  program::RankProgramBuilder builder(program, "rank");
  builder.stream("compute");
  const auto stream = builder.stream("communication");
  const auto call = [&](CollectiveKind kind, std::uint8_t slot, std::int64_t bytes) {
    program::Op op;
    op.kind = program::OpKind::collective;
    op.collective = kind;
    op.slot = slot;
    op.stream = stream;
    op.bytes = Bytes(bytes);
    builder.add(op);
  };
  call(CollectiveKind::reduce_scatter, 0, 1 << 30);
  call(CollectiveKind::all_reduce, 1, 1 << 27);
  call(CollectiveKind::all_gather, 0, 1 << 30);
  builder.finish();
  return program;
}

void FoldedHierarchicalAllReduce(benchmark::State& state) {
  const auto nodes = static_cast<std::uint32_t>(state.range(0) / 8);
  const topology::Topology topology = cluster(nodes);
  const topology::Router router(topology, 1);
  const program::Program program = hierarchical(nodes);
  executor::RunOptions options;
  options.warmup = 0;
  options.steps = 1;
  for (auto _ : state) {
    const collective::NcclModel nccl(router, {});
    benchmark::DoNotOptimize(executor::simulate(program, router, nccl, options, nullptr).end);
  }
}
BENCHMARK(FoldedHierarchicalAllReduce)
    ->RangeMultiplier(8)
    ->Range(1024, 65536)
    ->MeasureProcessCPUTime()
    ->Unit(benchmark::kMillisecond);

// A ring of rings: every item sees its class and its neighbour's, nothing splits beyond the first colours.
void Refine(benchmark::State& state) {
  fold::LabelledGraph graph;
  const auto items = static_cast<std::uint32_t>(state.range(0));
  for (std::uint32_t i = 0; i < items; ++i) graph.add(i % 8);
  for (std::uint32_t i = 0; i < items; ++i) graph.connect(i, (i + 8) % items, i % 8);
  for (auto _ : state) benchmark::DoNotOptimize(graph.classes(true).size());
}
BENCHMARK(Refine)->RangeMultiplier(16)->Range(4096, 1 << 20)->Unit(benchmark::kMillisecond);
}  // namespace
}  // namespace topsim
