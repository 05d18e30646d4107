// Seeded random sharing problems for the property tests.
#pragma once

#include <algorithm>
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

// Between all pairs of ends, over trunks: one large component that mostly loses activities. A few start late.
inline RandomCase all_pairs_case(std::mt19937_64& random) {
  const auto below = [&](std::uint64_t n) { return random() % n; };
  RandomCase problem;
  const LinkIndex ends = static_cast<LinkIndex>(10 + below(20));
  problem.capacities.assign(2 * ends + 8, 1e9);
  for (LinkIndex trunk = 2 * ends; trunk < 2 * ends + 8; ++trunk)
    problem.capacities[trunk] = 1e9 * static_cast<double>(1 + below(6));
  for (LinkIndex from = 0; from < ends; ++from) {
    for (LinkIndex to = 0; to < ends; ++to) {
      const auto trunk = static_cast<LinkIndex>(2 * ends + below(8));
      const bool late = below(100) == 0;
      problem.transfers.push_back({1e6 + static_cast<double>(below(500'000)),
                                   below(20) == 0 ? 2e7 : 0,
                                   static_cast<double>(1 + below(2)),
                                   {},
                                   SimTime(Duration(late ? 3'000'000'000 : 0)),
                                   {{from, 1}, {trunk, 0.5}, {ends + to, 1}}});
    }
  }
  std::stable_sort(problem.transfers.begin(), problem.transfers.end(),
                   [](const auto& a, const auto& b) { return a.start < b.start; });
  return problem;
}

// Calls within nodes, messages between neighbours and a few rings through all nodes come and go: one large
// component of which every change concerns a part. Of a node: its switch, its NIC, its other switch.
struct Neighbours {
  static constexpr LinkIndex kNodes = 20, kTrunk = 2 * kNodes, kOther = kTrunk + 1;
};
inline RandomCase neighbours_case(std::mt19937_64& random) {
  constexpr LinkIndex kNodes = Neighbours::kNodes, kTrunk = Neighbours::kTrunk;
  const auto below = [&](std::uint64_t n) { return random() % n; };
  RandomCase problem;
  problem.capacities.assign(Neighbours::kOther + kNodes, 4e9);
  for (LinkIndex node = 0; node < kNodes; ++node) problem.capacities[kNodes + node] = 1e9;
  problem.capacities[kTrunk] = below(2) == 0 ? 1e12 : 5e9;  // ample, or a bottleneck now and then
  for (int t = 0; t < 600; ++t) {
    const auto node = static_cast<LinkIndex>(below(kNodes));
    const LinkIndex next = (node + 1) % kNodes;
    const double cap = below(4) == 0 ? 5e8 : 0, weight = static_cast<double>(1 + below(4));
    const SimTime start(Duration(static_cast<std::int64_t>(below(20'000)) * 1'000'000));
    const double bytes = 1e6 + static_cast<double>(below(1'000'000));
    RandomTransfer transfer{bytes, cap, weight, {}, start, {}};
    const std::uint64_t kind = below(20);
    if (kind == 0)  // a ring
      for (LinkIndex each = 0; each < kNodes; ++each)
        transfer.usage.insert(transfer.usage.end(),
                              {{each, 0.9}, {kNodes + each, each % 3 == 0 ? 0.2 : 0.1}});
    else if (kind < 8)
      transfer.usage = {{kNodes + node, 1}, {kTrunk, 1}, {kNodes + next, 1}};
    else
      transfer.usage = {{node, 1 + 0.5 * static_cast<double>(below(3))}};
    problem.transfers.push_back(transfer);
  }
  std::stable_sort(problem.transfers.begin(), problem.transfers.end(),
                   [](const auto& a, const auto& b) { return a.start < b.start; });
  return problem;
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
