// Which send matches which receive, known before anything runs: sends and receives of a pair of ranks match
// by tag, in the order of their rank's program. A receive from any rank, or with any tag, takes what the
// other receives leave over: of the lowest sender the lowest tag.
//
// Messages from one rank to another travel in channels, one after another in each. Messages share a channel
// when sender and receiver have them in the same order (so that the intended pairs match).
#pragma once

#include <map>
#include <unordered_map>
#include <vector>

#include "workloads/trace/trace.hpp"

namespace topsim::workloads::trace {

struct Matched {
  std::uint32_t peer = 0, channel = 0;
  std::int64_t bytes = 0;  // of the send
};

struct Messages {
  // By pair of ranks, the lower first: channels that it needs, shared by both directions.
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t> channels;
  // By program: the match of each node, and what arrives without a receive.
  std::vector<std::unordered_map<std::uint32_t, Matched>> nodes;
  std::vector<std::vector<Matched>> unreceived;
  // Null for a message to oneself.
  [[nodiscard]] const Matched* find(std::size_t program, std::uint32_t node) const {
    const auto found = nodes[program].find(node);
    return found == nodes[program].end() ? nullptr : &found->second;
  }
};

// `orders[p]`: the nodes of program p in the order in which they are issued. Throws ConfigError for a receive
// without a send.
[[nodiscard]] Messages match_messages(const Trace& trace,
                                      const std::vector<std::vector<std::uint32_t>>& orders);
}  // namespace topsim::workloads::trace
