// The hot paths one by one: the event queue, a transfer alone, a solve of one shared component.
#include <benchmark/benchmark.h>

#include <random>

#include "sim/engine/engine.hpp"
#include "sim/network/flow.hpp"

namespace {
using namespace topsim;

// Hold model: one event out, one in, at a constant number pending.
void EngineHold(benchmark::State& state) {
  engine::Engine engine;
  std::mt19937_64 random(1);
  for (std::int64_t i = 0; i < state.range(0); ++i)
    engine.after(Duration(static_cast<std::int64_t>(random() % 1000000)), 0);
  for (auto _ : state) {
    engine.pop();
    engine.after(Duration(static_cast<std::int64_t>(random() % 1000000)), 0);
  }
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(EngineHold)->Range(1 << 6, 1 << 18);

void TransferAlone(benchmark::State& state) {
  const std::vector<double> capacities(4, 50e9);
  network::FlowNetwork network(capacities);
  const std::vector<network::Usage> path{{0, 1}, {1, 1}, {2, 1}, {3, 1}};
  std::vector<network::Completion> completed;
  SimTime now{};
  for (auto _ : state) {
    network.start({1e6, path, 0, 1, {}, 0, {}, {}, 0}, now);
    now = network.next_event();
    completed.clear();
    network.advance(now, completed);
  }
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(TransferAlone);

// n transfers over one link; each end starts another: one solve of n activities a transfer.
void SharedLink(benchmark::State& state) {
  const std::vector<double> capacities(1, 50e9);
  network::FlowNetwork network(capacities);
  const std::vector<network::Usage> path{{0, 1}};
  std::mt19937_64 random(1);
  std::vector<network::Completion> completed;
  SimTime now{};
  const auto start = [&] {
    network.start({1e6 + static_cast<double>(random() % 1000000), path, 0, 1, {}, 0, {}, {}, 0}, now);
  };
  for (std::int64_t i = 0; i < state.range(0); ++i) start();
  for (auto _ : state) {
    now = network.next_event();
    completed.clear();
    network.advance(now, completed);
    for (std::size_t i = 0; i < completed.size(); ++i) start();
  }
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(SharedLink)->Range(2, 1 << 12);
}  // namespace
