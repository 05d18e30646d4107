// The traffic patterns by which fabrics are judged: incast, permutation, all-to-all, parking lot, victim
// flow, ring all-reduce. Each builds its fabric or takes one, runs to the end, and says what every flow got.
#pragma once

#include <vector>

#include "sim/network/packet/engine.hpp"
#include "sim/network/packet/fabrics.hpp"

namespace topsim::network::packet {

struct FlowOutcome {
  Duration delivered{}, acknowledged{};  // since the start
  double goodput = 0;  // bytes/s: size over delivery time, or over the window where one is given
};

struct Outcome {
  std::vector<FlowOutcome> flows;
  Duration last{};  // last acknowledgement
  Duration last_delivered{};
  double fairness = 1;   // Jain's index over goodput
  Bytes most_waiting{};  // longest queue at any switch port
  Duration paused{};     // sum over ports: stopped by PFC or for want of credits
  Counters counters;
  std::vector<Deadlock> deadlocks;
  std::size_t memory = 0;  // bytes the model held
};

struct Flow {
  std::size_t from, to;  // indices of Fabric::hosts
  Bytes bytes;
  int lane = 0;
  SimTime start{};
};

// Runs the flows to their end; or, with a window, for that long, and goodput is what arrived in order within
// it.
[[nodiscard]] Outcome run_flows(const Fabric& fabric, const std::vector<Flow>& flows, const PacketSpec& spec,
                                Duration window = {});

// n senders around one switch to one receiver.
[[nodiscard]] Outcome incast(std::uint32_t senders, Bytes each, const LinkFigures& link,
                             const PacketSpec& spec);
// A random permutation without fixed points over all hosts.
[[nodiscard]] std::vector<Flow> permutation(const Fabric& fabric, Bytes each, std::uint64_t seed);
// Every host to every other, receivers in shifted order.
[[nodiscard]] std::vector<Flow> all_to_all(const Fabric& fabric, Bytes each);
// Three senders behind a trunk and one local sender to one receiver; goodput over `window`. Flows 0-2: over
// the trunk.
[[nodiscard]] Outcome parking_lot(const LinkFigures& link, const PacketSpec& spec, Duration window);
// Two flows over a trunk and four local ones congest one receiver; flow 6, the victim, goes over the trunk to
// an idle host, in lane `victim_lane`.
[[nodiscard]] Outcome victim_flow(const LinkFigures& link, const PacketSpec& spec, Duration window,
                                  int victim_lane = 0);

// Ring all-reduce step by step: in each of 2 (n - 1) steps a host sends bytes / n to the next host of its
// ring once it has the chunk of the step before. Rings run side by side; `rings` holds indices of
// Fabric::hosts.
[[nodiscard]] Outcome ring_all_reduce(const Fabric& fabric,
                                      const std::vector<std::vector<std::size_t>>& rings, Bytes bytes,
                                      const PacketSpec& spec);
}  // namespace topsim::network::packet
