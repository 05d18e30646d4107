// NCCL's cost model and its choice of algorithm, protocol and channels by size:
//   time = latency + bytes / bandwidth,   the least over all that is enabled,
// with bandwidth and latency tables from the communicator's graphs and measured constants
// (tuner_constants.hpp). It only ranks; the time model predicts times. Facts: NCCL 2.30 graph/tuning.cc,
// enqueue.cc, whose numbers without types this folder keeps: microseconds and GB/s.
#pragma once

#include <array>
#include <optional>
#include <string_view>

#include "sim/collective/collective.hpp"
#include "sim/collective/kinds.hpp"
#include "sim/collective/nccl/communicator.hpp"

namespace topsim::collective::nccl {

// Rows of the tables of costs.
inline constexpr int kCollectives = static_cast<int>(CollectiveKind::reduce) + 1;
static_assert(
    [] {
      for (int kind = 0; kind <= static_cast<int>(CollectiveKind::barrier); ++kind)
        if (tuned(static_cast<CollectiveKind>(kind)) != (kind < kCollectives)) return false;
      return true;
    }(),
    "the kinds that are tuned come first");
inline constexpr int kAlgorithms = static_cast<int>(Algorithm::pat) + 1;
inline constexpr int kProtocols = static_cast<int>(Protocol::simple) + 1;

struct Cost {
  double bandwidth = 0;  // GB/s of the collective's bytes; 0: not available
  double latency = 0;    // microseconds
  double told = 0;       // of it, what a network plugin says (net_plugins.hpp)
};

// What an algorithm needs to be available, in a few words.
[[nodiscard]] std::string_view needs_of(Algorithm algorithm);
// The same of LL and LL128; Simple is always there.
inline constexpr std::string_view kLowLatencyNeeds =
    "rings and trees alone have LL and LL128, where the network's plugin allows them, and LL128 needs NVLink "
    "within a node and NICs that its switches reach";

class Tuner {
 public:
  explicit Tuner(const CommunicatorFacts& facts);

  [[nodiscard]] const Cost& cost(CollectiveKind kind, Algorithm algorithm, Protocol protocol) const;
  // Microseconds; nothing where the pair is not available.
  [[nodiscard]] std::optional<double> time(CollectiveKind kind, Algorithm algorithm, Protocol protocol,
                                           std::int64_t bytes) const;
  // REQUIRES: tuned(kind). Overrides that leave nothing fall back to the ring.
  [[nodiscard]] Choice choose(CollectiveKind kind, std::int64_t bytes, const Overrides& overrides) const;
  [[nodiscard]] int channels(Algorithm algorithm, Protocol protocol, std::int64_t bytes) const;
  // What one channel of a tree moves at most, both ways together, GB/s.
  [[nodiscard]] double tree_channel_bandwidth(Protocol protocol) const;
  [[nodiscard]] const CommunicatorFacts& facts() const { return facts_; }

 private:
  [[nodiscard]] double bandwidth(CollectiveKind kind, Algorithm algorithm, Protocol protocol) const;
  [[nodiscard]] double latency(CollectiveKind kind, Algorithm algorithm, Protocol protocol,
                               double told) const;
  [[nodiscard]] bool enabled(CollectiveKind kind, Algorithm algorithm, Protocol protocol) const;
  [[nodiscard]] const GraphSummary& graph(Algorithm algorithm) const;
  [[nodiscard]] std::optional<Choice> of_another_library(CollectiveKind kind, std::int64_t bytes) const;

  CommunicatorFacts facts_;
  std::size_t generation_ = 0, scale_ = 0;
  std::array<std::array<std::array<Cost, kProtocols>, kAlgorithms>, kCollectives> costs_{};
};
}  // namespace topsim::collective::nccl
