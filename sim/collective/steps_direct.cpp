#include <algorithm>
#include <bit>

#include "sim/collective/steps.hpp"

namespace topsim::collective {

// In round d every rank sends to the rank d further on and receives from the one d before. Eight rounds share
// a channel, the next eight take the next channel at the same time, and a message is cut over fewer channels
// until all rounds have one, so that a batch waits for another only beyond eight rounds a channel (NCCL 2.30
// channel.h, ncclP2pChannelBaseForRound; graph/paths.cc, ncclTopoComputeP2pChannels). The start is the
// kernel's, once; a message that waited carries the network's part alone. A GPU posts what leaves its box one
// after the other.
StepPlan direct_steps(CollectiveKind kind, std::int64_t bytes, const Placement& placement,
                      const Timing& timing) {
  constexpr std::uint32_t kRoundsPerBatch = 8;
  const std::uint32_t n = placement.ranks;
  const auto channels = static_cast<std::uint32_t>(std::max(placement.tuner->facts().channels, 1));
  const std::uint32_t at_a_time = kRoundsPerBatch * std::bit_ceil(channels);
  const bool all = kind == CollectiveKind::all_to_all;
  const std::uint32_t rounds = all ? n - 1 : 1;
  const double share = static_cast<double>(rounds) / n;
  const double rate = timing.cap * share / std::min(at_a_time, rounds);
  StepBuilder plan;
  std::vector<std::vector<std::uint32_t>> sent(n);
  std::vector<std::uint32_t> posted(n), box_of(n);
  for (std::uint32_t b = 0; b < placement.boxes.size(); ++b)
    for (const std::uint32_t rank : placement.boxes[b].ranks) box_of[rank] = b;
  const int others = static_cast<int>(n) - placement.tuner->facts().max_local_ranks;
  const double unposted_us = timing.latency_us - std::max(0, others - 1) * timing.post_us;
  for (std::uint32_t d = 1; d <= rounds; ++d)
    for (std::uint32_t r = 0; r < n; ++r) {
      const bool first = d <= at_a_time;
      const std::uint32_t before = first ? StepBuilder::kNothing : sent[r][d - 1 - at_a_time];
      const bool leaves = box_of[r] != box_of[(r + d) % n];
      const double latency_us =
          unposted_us - (first ? 0 : timing.start_us) + (leaves ? posted[r]++ * timing.post_us : 0);
      const StepMessage message{r,
                                (r + d) % n,
                                Bytes(all ? bytes / n : bytes),
                                static_cast<std::uint16_t>(d % 64),
                                0,
                                0,
                                std::max(from_microseconds(latency_us), Duration(1)),
                                BytesPerSecond(rate)};
      sent[r].push_back(plan.add(message, {before}));
    }
  return plan.finish();
}
}  // namespace topsim::collective
