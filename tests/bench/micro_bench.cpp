// The hot paths one by one: the event queue, a transfer alone, a solve of one shared component, the matching
// of a trace's messages.
#include <benchmark/benchmark.h>

#include <numeric>
#include <random>

#include "sim/engine/engine.hpp"
#include "sim/network/flow.hpp"
#include "workloads/trace/messages.hpp"

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

// n receives of any sender and tag, n messages. A search through all that are queued, for each, is quadratic.
void OpenReceives(benchmark::State& state) {
  using namespace workloads::trace;
  Trace trace;
  trace.ranks = 2;
  for (std::uint32_t r = 0; r < trace.ranks; ++r) trace.programs.emplace_back().ranks = {r};
  for (std::int64_t i = 0; i < state.range(0); ++i) {
    Node receive, send;
    receive.kind = Kind::recv, receive.peer = kAny, receive.tag = kAny;
    send.kind = Kind::send, send.peer = 0, send.tag = i, send.bytes = i + 1;
    trace.programs[0].add(receive);
    trace.programs[1].add(send);
  }
  std::vector<std::vector<std::uint32_t>> orders(
      2, std::vector<std::uint32_t>(static_cast<std::size_t>(state.range(0))));
  for (std::vector<std::uint32_t>& order : orders) std::iota(order.begin(), order.end(), 0U);
  for (auto _ : state) benchmark::DoNotOptimize(match_messages(trace, orders));
  state.SetItemsProcessed(state.iterations() * state.range(0));
}
BENCHMARK(OpenReceives)->Range(1 << 10, 1 << 16);
}  // namespace
