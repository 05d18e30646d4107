#include <algorithm>
#include <cmath>

#include "sim/collective/chunks.hpp"
#include "sim/collective/nccl/tuner_constants.hpp"
#include "sim/collective/steps.hpp"
#include "sim/collective/wiring.hpp"

namespace topsim::collective {
namespace {

class RingSteps {
 public:
  RingSteps(CollectiveKind kind, std::int64_t bytes, const Choice& choice, const Placement& placement,
            const Timing& timing, const StepTiming& steps)
      : kind_(kind),
        placement_(placement),
        timing_(timing),
        steps_(steps),
        n_(placement.ranks),
        pipeline_(rooted(kind)),
        rounds_(kind == CollectiveKind::all_reduce ? 2 * (n_ - 1) : n_ - 1),
        chunk_(chunk_bytes(kind, choice.algorithm, choice.protocol, choice.channels, bytes,
                           placement.tuner->facts())),
        piece_(pipeline_ ? std::llround(piece_bytes(
                               choice, static_cast<double>(bytes) / static_cast<double>(choice.channels),
                               static_cast<double>(chunk_)))
                         : chunk_),
        slices_(choice.protocol == Protocol::simple && !pipeline_ ? 2 : 1),
        window_(pipeline_ ? static_cast<std::size_t>(nccl::kSlots * chunk_ / piece_)
                          : static_cast<std::size_t>(slices_)),
        window_between_(std::max<std::size_t>(window_, nccl::kSlots)) {
    // All channels and the slices in flight share the algorithm's rate on an edge.
    const double per_edge = pipeline_ ? 1 : static_cast<double>(rounds_) / static_cast<double>(n_);
    rate_ = timing.cap * per_edge * timing.wire / static_cast<double>(choice.channels);
  }

  // Adds what a channel does with its share of the bytes.
  void add_channel(std::int64_t channel, std::int64_t share) {
    channel_ = channel;
    ring_ = ring_of(placement_, static_cast<int>(channel));
    sent_.assign(static_cast<std::size_t>(n_), {});
    side_by_side_ = slices_;
    if (pipeline_)
      add_pipeline(share);
    else
      add_loops(share);
  }
  [[nodiscard]] StepPlan finish() { return plan_.finish(); }

 private:
  // From a position to the next, after message `arrived`.
  std::uint32_t send(std::int64_t position, std::int64_t size, int slice, std::uint32_t arrived, bool first) {
    const Hop& hop = ring_[static_cast<std::size_t>(position)];
    auto& line = sent_[static_cast<std::size_t>(position)];
    const std::size_t slots = hop.between() ? window_between_ : window_;
    const std::uint32_t slot = line.size() < slots ? StepBuilder::kNothing : line[line.size() - slots];
    const Microseconds latency =
        (hop.between() ? steps_.between : steps_.inside) + (first ? steps_.start : Microseconds{});
    StepMessage message{hop.from_rank,
                        hop.to_rank,
                        Bytes(static_cast<std::int64_t>(static_cast<double>(size) * timing_.wire)),
                        static_cast<std::uint16_t>(channel_),
                        0,
                        0,
                        nearest_picosecond(latency),
                        BytesPerSecond(rate_ / side_by_side_),
                        hop.from_nic,
                        hop.to_nic,
                        static_cast<std::uint8_t>(slice)};
    // The next message follows this one at the channel's rate while this one is still in flight.
    if (hop.between() || pipeline_)
      message.line = static_cast<std::uint32_t>((channel_ * n_ + position) * slices_ + slice + 1);
    line.push_back(plan_.add(message, {arrived, slot}));
    return line.back();
  }

  // Rank 0 is the root; the data flows along the ring, from the root or towards it.
  void add_pipeline(std::int64_t share) {
    std::int64_t root = 0;
    while (ring_[static_cast<std::size_t>(root)].from_rank != 0) ++root;
    const std::int64_t source = kind_ == CollectiveKind::broadcast ? root : (root + 1) % n_;
    for (std::int64_t done = 0; done < share; done += piece_) {
      std::uint32_t arrived = StepBuilder::kNothing;
      for (std::int64_t s = 0; s < rounds_; ++s)
        arrived = send((source + s) % n_, std::min(piece_, share - done), 0, arrived, s == 0);
    }
  }

  // A rank's threads begin a loop when the last chunk of the previous loop has arrived; a chunk sent
  // earlier would block that one on a slow hop. For LL and LL128 this wait is part of their measured rates.
  void add_loops(std::int64_t share) {
    // A slice is at least a 32nd of two slots (NCCL 2.30, prims_simple.h, genericOp).
    const std::int64_t least_slice = placement_.tuner->facts().buffers.buffer / nccl::kSlots * 2 / 32;
    std::vector<std::uint32_t> arrived(static_cast<std::size_t>(n_ * slices_), StepBuilder::kNothing);
    for (std::int64_t done = 0; done < share; done += n_ * chunk_) {
      const std::int64_t part = std::min(chunk_, (share - done + n_ - 1) / n_);  // of each rank, in this loop
      if (slices_ == 1) std::fill(arrived.begin(), arrived.end(), StepBuilder::kNothing);
      const std::int64_t first_slice =
          slices_ == 1 ? part : std::min(part, std::max((part + 1) / 2, least_slice));
      side_by_side_ = first_slice < part ? slices_ : 1;
      // `arrived` is indexed by where a chunk began, in the previous loop by where that loop's chunk began.
      std::rotate(arrived.begin(), arrived.end() - rounds_ % n_ * slices_, arrived.end());
      for (std::int64_t s = 0; s < rounds_; ++s)
        for (int slice = 0; slice < slices_; ++slice)
          for (std::int64_t i = 0; i < n_; ++i) {
            // Position i passes on the chunk that began s positions before it.
            auto& before = arrived[static_cast<std::size_t>(((i - s) % n_ + n_) % n_ * slices_ + slice)];
            const std::int64_t size = slice == 0 ? first_slice : part - first_slice;
            if (size > 0) before = send(i, size, slice, before, s == 0 && done == 0);
          }
    }
  }

  const CollectiveKind kind_;
  const Placement& placement_;
  const Timing& timing_;
  const StepTiming& steps_;
  const std::int64_t n_;
  const bool pipeline_;  // pieces that follow one another, else chunks that go round in loops
  const std::int64_t rounds_, chunk_, piece_;
  const int slices_;
  // The pieces of a pipeline leave one after the other, each at the full rate of the channel; at most eight
  // slots' worth of chunks are in flight.
  const std::size_t window_;
  // Between boxes the latency of a step is on the wire, and the proxies keep all eight slots busy. The
  // tuner's hop also contains their waiting for each other, so slices are counted, not slots: with four
  // slices (eight slots) a ring over two H100 boxes takes 277 us at 256 KiB where the tuner says 193.
  const std::size_t window_between_;
  double rate_ = 0;
  StepBuilder plan_;
  // Of the channel in hand:
  std::int64_t channel_ = 0;
  std::vector<Hop> ring_;
  std::vector<std::vector<std::uint32_t>> sent_;  // by connection, in order
  int side_by_side_ = 1;
};
}  // namespace

StepPlan ring_steps(CollectiveKind kind, std::int64_t bytes, const Choice& choice, const Placement& placement,
                    const Timing& timing, const StepTiming& steps) {
  RingSteps ring(kind, bytes, choice, placement, timing, steps);
  const std::int64_t channels = choice.channels;
  for (std::int64_t c = 0; c < channels; ++c)
    ring.add_channel(c, bytes * (c + 1) / channels - bytes * c / channels);
  return ring.finish();
}
}  // namespace topsim::collective
