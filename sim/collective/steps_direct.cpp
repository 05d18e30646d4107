#include <algorithm>
#include <bit>

#include "sim/collective/lowering.hpp"
#include "sim/collective/steps.hpp"
#include "sim/collective/usage.hpp"

namespace topsim::collective {

// In round d every rank sends to the rank d further on and receives from the rank d before. Eight rounds
// share a channel, the next eight use the next channel at the same time, and a message is split over fewer
// channels until all rounds have one, so that a batch waits for another only beyond eight rounds per channel
// (NCCL 2.30 channel.h, ncclP2pChannelBaseForRound; graph/paths.cc, ncclTopoComputeP2pChannels). The start is
// the kernel's, once. A GPU posts the messages that leave its box one after the other, also while messages
// wait. A message is split over the connections that UsageBuilder::add_message gives it.
StepPlan direct_steps(const UsageBuilder& usage, CollectiveKind kind, std::int64_t bytes,
                      const Placement& placement, const Timing& timing) {
  constexpr std::uint32_t kRoundsPerBatch = 8;
  const std::uint32_t n = placement.ranks;
  const auto channels = static_cast<std::uint32_t>(std::max(placement.tuner->facts().channels, 1));
  const std::uint32_t at_a_time = kRoundsPerBatch * std::bit_ceil(channels);
  const bool all = kind == CollectiveKind::all_to_all;
  const std::uint32_t rounds = all ? n - 1 : 1;
  const double share = all ? static_cast<double>(rounds) / n : 1;  // the part of its bytes that a rank sends
  const double rate = timing.cap * share / std::min(at_a_time, rounds);
  StepBuilder plan;
  struct Sent {  // a message's parts follow each other
    std::uint32_t first, parts;
    Microseconds earliest;  // it has arrived by then if its bytes take no time
  };
  std::vector<std::vector<Sent>> sent(n);  // by rank, by round
  std::vector<std::uint32_t> posted(n), box_of(n);
  std::vector<DeviceId> gpu(n);
  for (std::uint32_t b = 0; b < placement.boxes.size(); ++b)
    for (std::size_t i = 0; i < placement.boxes[b].ranks.size(); ++i) {
      box_of[placement.boxes[b].ranks[i]] = b;
      gpu[placement.boxes[b].ranks[i]] = placement.boxes[b].gpus[i];
    }
  for (std::uint32_t d = 1; d <= rounds; ++d) {
    usage.end_if_stopped();
    for (std::uint32_t r = 0; r < n; ++r) {
      const bool first = d <= at_a_time;
      const std::uint32_t to = (r + d) % n;
      const bool leaves = box_of[r] != box_of[to];
      constexpr Microseconds kNone{};
      const Microseconds at = timing.start + (leaves ? posted[r]++ * timing.post : kNone),
                         begin = first ? kNone : sent[r][d - 1 - at_a_time].earliest,
                         latency = std::max(kNone, at - begin) + (leaves ? timing.network : kNone);
      const std::int64_t whole = all ? bytes / n : bytes;
      const auto parts =
          static_cast<std::uint32_t>(std::clamp<std::int64_t>(whole, 1, usage.connections(gpu[r], gpu[to])));
      std::vector<std::uint32_t> after;
      if (!first) {
        const Sent before = sent[r][d - 1 - at_a_time];
        for (std::uint32_t part = 0; part < before.parts; ++part) after.push_back(before.first + part);
      }
      Sent& message = sent[r].emplace_back(Sent{0, parts, begin + latency});
      for (std::uint32_t part = 0; part < parts; ++part) {
        StepMessage one{r,
                        to,
                        Bytes(whole * (part + 1) / parts - whole * part / parts),
                        static_cast<std::uint16_t>(direct_connection(d) * parts + part),
                        0,
                        0,
                        nearest_picosecond(latency),
                        BytesPerSecond(rate / parts)};
        one.even = all;
        const std::uint32_t index = plan.add(one, after);
        if (part == 0) message.first = index;
      }
    }
  }
  return plan.finish();
}
}  // namespace topsim::collective
