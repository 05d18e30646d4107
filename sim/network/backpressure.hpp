// Who waits for whom on a lossless fabric whose senders nothing slows.
//
// Where senders have more for a port than it carries, its queue fills, and so do those behind it: back to the
// senders' own ports, where their other messages wait too. Every port serves its packets in order of arrival,
// and each port that feeds it keeps its buffer there full. So in the steady state
//
//   a full port q serves its inputs by what they have waiting there,
//       r(i, q) = min(what i has for q, level_q x (B_i - T_i R_i)),   sum_i r(i, q) = C_q;
//   an input i that has more is held: all that crosses i, R_i, is slowed until r(i, q) is that, and i in turn
//       serves its own inputs so,
//
// where an input of a switch's port is the port before it, with a buffer of B_i bytes behind its cable, of
// which the bytes of a round trip T_i are under way and do not wait; and an input of a sender's own port is a
// message, which counts as its connections. What has its way to itself, or asks for less, is not slowed. Of a
// trunk that two messages to a port with four other senders share with a third to elsewhere, each of the
// three gets C / 5 / 2 (DCQCN, SIGCOMM 2015, "victim flow").
//
// Left out: the time until the buffers are full. And an input whose packets wait for two full ports divides
// its buffer between them, so that either serves it less than others; hence one full port at a time.
#pragma once

#include <limits>
#include <span>
#include <vector>

#include "sim/network/network.hpp"

namespace topsim::network {

// Part of a message's way: `share` of its bytes come from `from`, kSender for its first link, onto `link`.
struct Crossed {
  static constexpr LinkIndex kSender = std::numeric_limits<LinkIndex>::max();
  LinkIndex from, link;
  double share = 1;
};

// Behind a link: the buffer B of a lane, and the round trip T of data and credit in seconds.
struct LaneDepth {
  double bytes = 1, round_trip = 0;
};

struct HeldMessage {
  std::vector<Crossed> hops;  // in order of travel; empty: it sends nothing
  double weight = 1;          // connections
};

// By message: the rate in bytes/s above which it is held up where queues begin at `end`; infinite where it is
// not. All else is shared max-min fairly. REQUIRES: capacities above 0 on all links that messages use.
[[nodiscard]] std::vector<double> held_rates(std::span<const double> capacities,
                                             std::span<const LaneDepth> depths,
                                             std::span<const HeldMessage> messages, LinkIndex end);
}  // namespace topsim::network
