#include <algorithm>

#include "sim/collective/steps.hpp"

namespace topsim::collective {

// In round d every rank sends to the rank d further on and receives from the one d before; eight peers are
// served at a time (NCCL 2.30 init.cc, ncclP2pSchedule).
StepPlan direct_steps(CollectiveKind kind, std::int64_t bytes, const Placement& placement,
                      const Timing& timing) {
  constexpr std::uint32_t kPeersAtATime = 8;
  const std::uint32_t n = placement.ranks;
  const bool all = kind == CollectiveKind::all_to_all;
  const std::uint32_t rounds = all ? n - 1 : 1;
  const double share = static_cast<double>(rounds) / n;
  const double rate = timing.cap * share / std::min(kPeersAtATime, rounds);
  StepBuilder plan;
  std::vector<std::vector<std::uint32_t>> sent(n);
  for (std::uint32_t d = 1; d <= rounds; ++d)
    for (std::uint32_t r = 0; r < n; ++r) {
      const std::uint32_t before = d > kPeersAtATime ? sent[r][d - 1 - kPeersAtATime] : StepBuilder::kNothing;
      const StepMessage message{
          r, (r + d) % n, Bytes(all ? bytes / n : bytes),       static_cast<std::uint16_t>(d % 64),
          0, 0,           from_microseconds(timing.latency_us), BytesPerSecond(rate)};
      sent[r].push_back(plan.add(message, {before}));
    }
  return plan.finish();
}
}  // namespace topsim::collective
