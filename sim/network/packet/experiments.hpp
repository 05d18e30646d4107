// Standard traffic patterns for judging fabrics: incast, parking lot, victim flow, and any other as a list of
// flows. Each runs on a fabric of its own and reports what every flow got.
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
// Three senders behind a trunk and one local sender to one receiver; goodput over `window`. Flows 0-2: over
// the trunk.
[[nodiscard]] Outcome parking_lot(const LinkFigures& link, const PacketSpec& spec, Duration window);
// Two flows over a trunk and four local ones congest one receiver; flow 6, the victim, goes over the trunk to
// an idle host, in lane `victim_lane`.
[[nodiscard]] Outcome victim_flow(const LinkFigures& link, const PacketSpec& spec, Duration window,
                                  int victim_lane = 0);
}  // namespace topsim::network::packet
