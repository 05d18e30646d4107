// Fabrics and traffic patterns that only tests and benchmarks need.
#pragma once

#include <algorithm>
#include <random>
#include <vector>

#include "sim/network/packet/experiments.hpp"

namespace topsim::network::packet {

namespace patterns {
inline std::vector<DeviceIndex> add_switches(Fabric& fabric, std::uint32_t count) {
  std::vector<DeviceIndex> added;
  for (std::uint32_t i = 0; i < count; ++i) added.push_back(fabric.graph.device());
  fabric.switches.insert(fabric.switches.end(), added.begin(), added.end());
  return added;
}

inline void join(Fabric& fabric, DeviceIndex a, DeviceIndex b, const LinkFigures& link) {
  fabric.graph.cable(a, b, link.rate, link.latency, link.flow_control);
}

inline void attach_host(Fabric& fabric, DeviceIndex to, const LinkFigures& link) {
  fabric.hosts.push_back(fabric.graph.device());
  join(fabric, fabric.hosts.back(), to, link);
}
}  // namespace patterns

// Three tiers of k-port switches, full bisection: k^3/4 hosts, k^2/2 edge, k^2/2 aggregation, k^2/4 core.
inline Fabric fat_tree(std::uint32_t k, const LinkFigures& link) {
  Fabric fabric;
  const std::uint32_t half = k / 2;
  const auto core = patterns::add_switches(fabric, half * half);
  for (std::uint32_t pod = 0; pod < k; ++pod) {
    const auto aggregation = patterns::add_switches(fabric, half);
    for (std::uint32_t a = 0; a < half; ++a)
      for (std::uint32_t c = 0; c < half; ++c)
        patterns::join(fabric, aggregation[a], core[a * half + c], link);
    for (const DeviceIndex edge : patterns::add_switches(fabric, half)) {
      for (const DeviceIndex up : aggregation) patterns::join(fabric, edge, up, link);
      for (std::uint32_t host = 0; host < half; ++host) patterns::attach_host(fabric, edge, link);
    }
  }
  return fabric;
}

// n switches in a ring with one host each. It deadlocks under PFC when all send the same way round.
inline Fabric ring(std::uint32_t n, const LinkFigures& link) {
  Fabric fabric;
  const auto around = patterns::add_switches(fabric, n);
  for (std::uint32_t i = 0; i < n; ++i) patterns::join(fabric, around[i], around[(i + 1) % n], link);
  for (const DeviceIndex one : around) patterns::attach_host(fabric, one, link);
  return fabric;
}

// A random permutation without fixed points over all hosts.
inline std::vector<Flow> permutation(const Fabric& fabric, Bytes each, std::uint64_t seed) {
  std::vector<std::size_t> order(fabric.hosts.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::mt19937_64 random(seed);
  // Sattolo's algorithm: one cycle through all, so nobody sends to itself.
  for (std::size_t i = order.size() - 1; i > 0; --i) std::swap(order[i], order[random() % i]);
  std::vector<Flow> flows;
  for (std::size_t i = 0; i < order.size(); ++i) flows.push_back({i, order[i], each});
  return flows;
}

// Every host to every other, receivers in shifted order.
inline std::vector<Flow> all_to_all(const Fabric& fabric, Bytes each) {
  std::vector<Flow> flows;
  const std::size_t n = fabric.hosts.size();
  for (std::size_t shift = 1; shift < n; ++shift)
    for (std::size_t i = 0; i < n; ++i) flows.push_back({i, (i + shift) % n, each});
  return flows;
}

// Ring all-reduce step by step: in each of 2 (n - 1) steps a host sends bytes / n to the next host of its
// ring as soon as it has the chunk of the step before. Rings run side by side; `rings` holds indices of
// Fabric::hosts. The outcome says when each host had its last chunk.
inline Outcome ring_all_reduce(const Fabric& fabric, const std::vector<std::vector<std::size_t>>& rings,
                               Bytes bytes, const PacketSpec& spec) {
  Engine engine(fabric.graph, spec);
  struct Member {
    PairIndex pair;
    std::size_t ring, next;
    int steps_left;
  };
  std::vector<Member> members;
  for (std::size_t r = 0; r < rings.size(); ++r) {
    const std::size_t begin = members.size(), n = rings[r].size();
    for (std::size_t i = 0; i < n; ++i) {
      const std::size_t next = (i + 1) % n;
      const PairIndex pair =
          engine.connect({fabric.hosts[rings[r][i]], fabric.hosts[rings[r][next]], r, 0, {}, {}, {}});
      members.push_back({pair, r, begin + next, 2 * static_cast<int>(n - 1)});
    }
  }
  const auto start_step = [&](std::size_t member, SimTime now) {
    Member& m = members[member];
    if (m.steps_left-- <= 0) return;
    const auto n = static_cast<std::int64_t>(rings[m.ring].size());
    engine.send(m.pair, Bytes((bytes.value() + n - 1) / n), now, member);
  };
  for (std::size_t m = 0; m < members.size(); ++m) start_step(m, SimTime{});
  Outcome outcome;
  outcome.flows.resize(members.size());
  for (SimTime next = engine.next_event(); next != kNever; next = engine.next_event()) {
    engine.run_until(next);
    // What arrived at a member lets it send the same chunk on.
    for (const Completion& done : engine.delivered()) {
      outcome.flows[done.tag].delivered = done.time.time_since_epoch();
      outcome.last_delivered = std::max(outcome.last_delivered, outcome.flows[done.tag].delivered);
      start_step(members[done.tag].next, done.time);
    }
    engine.delivered().clear();
    engine.acknowledged().clear();
  }
  outcome.counters = engine.counters();
  return outcome;
}
}  // namespace topsim::network::packet
