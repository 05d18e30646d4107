// A step plan's messages on a network: what each says of its transfer, and who waits for whom.
#pragma once

#include <span>
#include <vector>

#include "sim/collective/collective.hpp"
#include "sim/network/network.hpp"

namespace topsim::executor {

// Who waits for whom, turned round: from a message that has arrived to those it lets begin.
struct StepOrder {
  std::vector<std::uint32_t> missing;                     // per message: how many must have arrived before it
  std::vector<std::uint32_t> followers_begin, followers;  // per message: who waits for it
  [[nodiscard]] std::span<const std::uint32_t> followers_of(std::uint32_t message) const {
    return std::span(followers).subspan(followers_begin[message],
                                        followers_begin[message + 1] - followers_begin[message]);
  }
};
[[nodiscard]] StepOrder order_of(const collective::StepPlan& plan);

// Links that a message names, as a network takes them.
struct NamedWay {
  std::vector<network::Usage> usage;
  std::vector<network::LinkIndex> way;  // in order
};
[[nodiscard]] NamedWay way_over(std::span<const LinkId> links);

// All of the transfer but what its links bring: usage, way, weight. `ends`: the communicator's accelerators,
// behind them the plan's devices that sum.
[[nodiscard]] network::Transfer transfer_of(const collective::StepMessage& message,
                                            std::span<const DeviceId> ends, bool allow_pxn);
}  // namespace topsim::executor
