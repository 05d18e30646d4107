#include <algorithm>
#include <cmath>

#include "sim/collective/chunks.hpp"
#include "sim/collective/steps.hpp"

namespace topsim::collective {
namespace {

// A channel's ring through all boxes: the ranks in order, and the NICs where it leaves a box.
struct Ring {
  struct Hop {
    std::uint32_t rank = 0;
    DeviceId from_nic{}, to_nic{};  // of the hop to the next
    bool between = false;
  };
  std::vector<Hop> hops;
};

Ring ring_of(const Placement& placement, int channel) {
  const auto& boxes = placement.boxes;
  const int found = placement.tuner->facts().ring.channels, c = channel % found;
  const auto at = [&](std::size_t b) -> const nccl::Channel& {
    const nccl::ChannelGraph& graph = boxes[b].graphs->ring;
    const bool swap = graph.cross_nic == 2 && found % 2 == 0 && b % 2 == 1;
    return graph.channels[static_cast<std::size_t>(swap ? c ^ 1 : c)];
  };
  Ring ring;
  for (std::size_t b = 0; b < boxes.size(); ++b) {
    for (const int g : at(b).gpus)
      ring.hops.push_back({boxes[b].ranks[static_cast<std::size_t>(g)], {}, {}, false});
    const std::size_t next = (b + 1) % boxes.size();
    const int leave = at(b).leave_net, enter = at(next).enter_net;
    ring.hops.back().between = next != b;
    if (next != b && leave >= 0 && enter >= 0) {
      ring.hops.back().from_nic = boxes[b].nics[static_cast<std::size_t>(leave)];
      ring.hops.back().to_nic = boxes[next].nics[static_cast<std::size_t>(enter)];
    }
  }
  return ring;
}

}  // namespace

StepPlan ring_steps(CollectiveKind kind, std::int64_t bytes, const Choice& choice, const Placement& placement,
                    const Timing& timing, const StepTiming& steps) {
  const std::int64_t n = placement.ranks, channels = choice.channels;
  const bool pipeline = kind == CollectiveKind::broadcast || kind == CollectiveKind::reduce;
  const std::int64_t rounds = pipeline ? n - 1 : kind == CollectiveKind::all_reduce ? 2 * (n - 1) : n - 1;
  const std::int64_t chunk =
      chunk_bytes(kind, choice.algorithm, choice.protocol, choice.channels, bytes, placement.tuner->facts());
  const std::int64_t piece =
      pipeline ? std::llround(piece_bytes(choice, static_cast<double>(bytes) / static_cast<double>(channels),
                                          static_cast<double>(chunk)))
               : chunk;
  const int slices = choice.protocol == Protocol::simple && !pipeline ? 2 : 1;
  // A slice is at least a 32nd of two slots (NCCL 2.30, prims_simple.h, genericOp).
  const std::int64_t least_slice = placement.tuner->facts().buffers.buffer / 8 * 2 / 32;
  // The pieces of a pipeline leave one after the other, each at the full rate of the channel; at most eight
  // slots' worth of chunks are in flight.
  const std::size_t window =
      pipeline ? static_cast<std::size_t>(8 * chunk / piece) : static_cast<std::size_t>(slices);
  // Between boxes the latency of a step is on the wire, and the proxies keep all eight slots busy. The
  // tuner's hop also contains their waiting for each other, so slices are counted, not slots: with four
  // slices (eight slots) a ring over two H100 boxes takes 277 us at 256 KiB where the tuner says 193.
  const std::size_t window_between = std::max<std::size_t>(window, 8);
  // All channels and the slices in flight share the algorithm's rate on an edge.
  const double per_edge = pipeline ? 1 : static_cast<double>(rounds) / static_cast<double>(n);
  const double rate = timing.cap * per_edge * timing.wire / static_cast<double>(channels);

  StepBuilder plan;
  for (std::int64_t c = 0; c < channels; ++c) {
    const Ring ring = ring_of(placement, static_cast<int>(c));
    const std::int64_t begin = bytes * c / channels, share = bytes * (c + 1) / channels - begin;
    std::vector<std::vector<std::uint32_t>> sent(static_cast<std::size_t>(n));  // by connection, in order
    int side_by_side = slices;
    const auto send = [&](std::int64_t position, std::int64_t size, int slice, std::uint32_t arrived,
                          bool first) {
      const Ring::Hop& hop = ring.hops[static_cast<std::size_t>(position)];
      const Ring::Hop& to = ring.hops[static_cast<std::size_t>((position + 1) % n)];
      auto& line = sent[static_cast<std::size_t>(position)];
      const std::size_t slots = hop.between ? window_between : window;
      const std::uint32_t slot = line.size() < slots ? StepBuilder::kNothing : line[line.size() - slots];
      const Microseconds latency =
          (hop.between ? steps.between : steps.inside) + (first ? steps.start : Microseconds{});
      StepMessage message{hop.rank,
                          to.rank,
                          Bytes(static_cast<std::int64_t>(static_cast<double>(size) * timing.wire)),
                          static_cast<std::uint16_t>(c),
                          0,
                          0,
                          nearest_picosecond(latency),
                          BytesPerSecond(rate / side_by_side),
                          hop.from_nic,
                          hop.to_nic,
                          static_cast<std::uint8_t>(slice)};
      // The next message follows this one at the channel's rate while this one is still in flight.
      if (hop.between || pipeline)
        message.line = static_cast<std::uint32_t>((c * n + position) * slices + slice + 1);
      line.push_back(plan.add(message, {arrived, slot}));
      return line.back();
    };
    if (pipeline) {
      // Rank 0 is the root; the data flows along the ring, from the root or towards it.
      std::int64_t root = 0;
      while (ring.hops[static_cast<std::size_t>(root)].rank != 0) ++root;
      const std::int64_t source = kind == CollectiveKind::broadcast ? root : (root + 1) % n;
      for (std::int64_t done = 0; done < share; done += piece) {
        std::uint32_t arrived = StepBuilder::kNothing;
        for (std::int64_t s = 0; s < rounds; ++s)
          arrived = send((source + s) % n, std::min(piece, share - done), 0, arrived, s == 0);
      }
      continue;
    }
    // A rank's threads begin a loop when the last chunk of the previous loop has arrived; a chunk sent
    // earlier would block that one on a slow hop. For LL and LL128 this wait is part of their measured rates.
    std::vector<std::uint32_t> arrived(static_cast<std::size_t>(n * slices), StepBuilder::kNothing);
    for (std::int64_t done = 0; done < share; done += n * chunk) {
      const std::int64_t part = std::min(chunk, (share - done + n - 1) / n);  // of each rank, in this loop
      if (slices == 1) std::fill(arrived.begin(), arrived.end(), StepBuilder::kNothing);
      const std::int64_t first_slice =
          slices == 1 ? part : std::min(part, std::max((part + 1) / 2, least_slice));
      side_by_side = first_slice < part ? slices : 1;
      // `arrived` is indexed by where a chunk began, in the previous loop by where that loop's chunk began.
      std::rotate(arrived.begin(), arrived.end() - rounds % n * slices, arrived.end());
      for (std::int64_t s = 0; s < rounds; ++s)
        for (int slice = 0; slice < slices; ++slice)
          for (std::int64_t i = 0; i < n; ++i) {
            // Position i passes on the chunk that began s positions before it.
            auto& before = arrived[static_cast<std::size_t>(((i - s) % n + n) % n * slices + slice)];
            const std::int64_t size = slice == 0 ? first_slice : part - first_slice;
            if (size > 0) before = send(i, size, slice, before, s == 0 && done == 0);
          }
    }
  }
  return plan.finish();
}
}  // namespace topsim::collective
