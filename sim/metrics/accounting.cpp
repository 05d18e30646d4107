#include "sim/metrics/accounting.hpp"

#include <algorithm>
#include <numeric>

namespace topsim::metrics {
namespace {
// 131,072 ranks x 106 days of picoseconds does not fit 64 bits.
__extension__ using Wide = __int128;

constexpr std::size_t kParts = executor::kReasons + 1;  // busy, then the reasons

struct Sum {
  std::array<Wide, kParts> parts{};
  Wide slowed = 0, communication = 0, hidden = 0;
  Wide samples = 0;

  void add(const executor::RankClass& ranks, Wide members) {
    for (const executor::StepAccount& step : ranks.steps) {
      parts[0] += members * step.busy.count();
      slowed += members * step.slowed.count();
      communication += members * step.communication.count();
      hidden += members * step.hidden_communication.count();
      for (std::size_t i = 0; i < step.idle.size(); ++i) parts[i + 1] += members * step.idle[i].count();
    }
    samples += members * static_cast<Wide>(ranks.steps.size());
  }
};

Wide round_half_up(Wide value, Wide divisor) {
  return (2 * value + divisor) / (2 * divisor);
}

Account mean(const Sum& sum) {
  Account account;
  if (sum.samples == 0) return account;
  std::array<std::int64_t, kParts> rounded{};
  Wide missing = round_half_up(std::accumulate(sum.parts.begin(), sum.parts.end(), Wide{0}), sum.samples);
  for (std::size_t i = 0; i < kParts; ++i) {
    rounded[i] = static_cast<std::int64_t>(sum.parts[i] / sum.samples);
    missing -= rounded[i];
  }
  std::array<std::size_t, kParts> order{};
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return sum.parts[a] % sum.samples > sum.parts[b] % sum.samples;
  });
  for (std::size_t i = 0; missing > 0; ++i, --missing) ++rounded[order[i]];

  account.busy = Duration(rounded[0]);
  for (std::size_t i = 0; i < account.idle.size(); ++i) account.idle[i] = Duration(rounded[i + 1]);
  const auto mean_of = [&](Wide total, Duration most) {
    return std::min(most, Duration(static_cast<std::int64_t>(round_half_up(total, sum.samples))));
  };
  account.slowed = mean_of(sum.slowed, account.busy);
  account.communication = mean_of(sum.communication, account.total());
  account.hidden_communication = mean_of(sum.hidden, std::min(account.busy, account.communication));
  return account;
}
}  // namespace

Duration Account::idle_total() const {
  return std::accumulate(idle.begin(), idle.end(), Duration{});
}

Duration mean_step(std::span<const Duration> steps) {
  if (steps.empty()) return {};
  Wide total = 0;
  for (Duration step : steps) total += step.count();
  return Duration(static_cast<std::int64_t>(round_half_up(total, static_cast<Wide>(steps.size()))));
}

Account mean_account(const executor::RankClass& ranks) {
  Sum sum;
  sum.add(ranks, 1);
  return mean(sum);
}

Account mean_account(std::span<const executor::RankClass> ranks) {
  Sum sum;
  for (const executor::RankClass& each : ranks) sum.add(each, static_cast<Wide>(each.members.size()));
  return mean(sum);
}
}  // namespace topsim::metrics
