// Seeded random sharing problems for the property tests.
#pragma once

#include <cmath>
#include <cstdint>
#include <random>
#include <type_traits>
#include <vector>

#include "sim/network/network.hpp"

namespace topsim::network {

struct RandomTransfer {
  double bytes, cap, weight;
  Duration latency;
  SimTime start;
  std::vector<Usage> usage;
};
struct RandomCase {
  std::vector<double> capacities;
  std::vector<RandomTransfer> transfers;  // by start
};

inline RandomCase random_case(std::uint64_t seed) {
  std::mt19937_64 random(seed);
  const auto below = [&](std::uint64_t n) { return random() % n; };
  RandomCase result;
  const std::size_t links = 1 + below(24);
  const bool equal = below(2) == 0;  // equal capacities and sizes make ties, which are the hard cases
  for (std::size_t i = 0; i < links; ++i)
    result.capacities.push_back(equal ? 1e9 : 1e8 * static_cast<double>(1 + below(100)));
  std::int64_t now = 0;
  const std::size_t count = 1 + below(60);
  for (std::size_t i = 0; i < count; ++i) {
    if (below(3) == 0) now += static_cast<std::int64_t>(below(2'000'000'000));
    RandomTransfer transfer;
    transfer.bytes = equal ? 1e6 : static_cast<double>(1 + below(5'000'000));
    transfer.cap = below(5) == 0 ? 1e7 * static_cast<double>(1 + below(100)) : 0;
    transfer.weight = below(3) == 0 ? static_cast<double>(1 + below(8)) : 1;
    transfer.latency = Duration(static_cast<std::int64_t>(below(3) * 500'000));
    transfer.start = SimTime(Duration(now));
    for (LinkIndex link = 0; link < links; ++link)
      if (below(links) < 3)
        transfer.usage.push_back({link, below(3) == 0 ? 0.25 * static_cast<double>(1 + below(8)) : 1.0});
    if (transfer.usage.empty()) transfer.usage.push_back({static_cast<LinkIndex>(below(links)), 1});
    result.transfers.push_back(transfer);
  }
  return result;
}

// Runs to the end; the completion time of each transfer, by its place in the case.
template <class Each>
std::vector<SimTime> run(Network& network, const RandomCase& problem, Each&& after_each_event) {
  std::vector<SimTime> times(problem.transfers.size(), kNever);
  std::vector<Completion> completed;
  std::size_t next = 0;
  for (;;) {
    const SimTime start = next < problem.transfers.size() ? problem.transfers[next].start : kNever;
    const SimTime event = network.next_event();
    if (start == kNever && event == kNever) return times;
    const SimTime now = std::min(start, event);
    completed.clear();
    network.advance(now, completed);
    for (const Completion& completion : completed) times[completion.tag] = completion.time;
    for (; next < problem.transfers.size() && problem.transfers[next].start == now; ++next) {
      const RandomTransfer& transfer = problem.transfers[next];
      network.start(
          {transfer.bytes, transfer.usage, transfer.cap, transfer.weight, transfer.latency, next, {}, {}, 0},
          now);
    }
    if constexpr (std::is_invocable_v<Each, SimTime>)
      after_each_event(now);
    else
      after_each_event();
  }
}
inline std::vector<SimTime> run(Network& network, const RandomCase& problem) {
  return run(network, problem, [] {});
}
}  // namespace topsim::network
