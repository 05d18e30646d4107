// One schedule on topsim's flow network; one line of JSON: what tests/bench/table.py puts side by side.
// Usage: bench_flow NAME RANKS uniform|jitter [LATENCY_US]
#include <fmt/core.h>

#include <cstdlib>
#include <string_view>

#include "process.hpp"
#include "sim/base/heap.hpp"
#include "sim/network/flow.hpp"
#include "traffic.hpp"

namespace {
using namespace topsim;

template <class Schedule>
void run(Schedule schedule, Duration latency) {
  const bench::Paths& paths = schedule.paths();
  const double begin = bench::cpu_seconds();
  network::FlowNetwork network(paths.capacities);
  std::vector<network::Usage> usage;
  std::uint64_t transfers = 0;
  SimTime now{};
  network::Transfer transfer;
  transfer.latency = latency;
  const auto start = [&](std::uint64_t tag, double bytes, std::uint32_t path) {
    usage.clear();
    for (const std::uint32_t link : paths[path]) usage.push_back({link, 1});
    transfer.bytes = bytes, transfer.usage = usage, transfer.tag = tag;
    network.start(transfer, now);
    ++transfers;
  };
  std::vector<network::Completion> completed;
  schedule.begin(start);
  while (network.next_event() != kNever) {
    now = network.next_event();
    completed.clear();
    network.advance(now, completed);
    for (const network::Completion& completion : completed) schedule.done(completion.tag, start);
  }
  const double cpu = bench::cpu_seconds() - begin;
  fmt::print("{{\"transfers\": {}, \"seconds\": {:.15g}, \"cpu\": {:.6f}, \"mb\": {}, \"solves\": {}}}\n",
             transfers, seconds(now.time_since_epoch()), cpu, bench::peak_megabytes(),
             network.sharing().solves());
}
}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) return 2;
  keep_freed_memory();  // as the program does
  const bool jitter = argc > 3 && std::string_view(argv[3]) == "jitter";
  const auto ranks = static_cast<std::uint32_t>(std::atoi(argv[2]));
  const Duration latency = from_microseconds(argc > 4 ? std::atof(argv[4]) : 0);
  return bench::with_schedule(argv[1], ranks, jitter,
                              [&](auto schedule) { run(std::move(schedule), latency); })
             ? 0
             : 2;
}
