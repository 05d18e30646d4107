// Ring: in each channel every rank sends to the next. All-reduce passes every chunk around twice except for
// the last steps: 2(n-1)/n bytes per byte and edge; all-gather and reduce-scatter once: (n-1)/n. Broadcast
// and reduce are pipelines along the ring: 1 byte on every edge but the one that would close the ring at the
// root (rank 0). The channels share the bytes evenly.
#include "sim/collective/lowering.hpp"

namespace topsim::collective {
namespace {

// How many channels run over the graph's channel `index`.
int count_of(int index, int found, int channels) {
  int count = 0;
  for (int c = index; c < channels; c += found) ++count;
  return count;
}

}  // namespace

void lower_ring(CollectiveKind kind, const Placement& placement, int channels, UsageBuilder& usage) {
  const double n = placement.ranks;
  const bool pipeline = kind == CollectiveKind::broadcast || kind == CollectiveKind::reduce;
  const double per_edge = pipeline ? 1 : (kind == CollectiveKind::all_reduce ? 2 : 1) * (n - 1) / n;
  const auto& boxes = placement.boxes;
  const int found = placement.tuner->facts().ring.channels;
  // On every other box, channels of a pair swap places where that keeps them on their rail.
  const auto channel_of = [&](std::size_t box, int c) -> const nccl::Channel& {
    const nccl::ChannelGraph& ring = boxes[box].graphs->ring;
    const bool swap = ring.cross_nic == 2 && found % 2 == 0 && box % 2 == 1;
    return ring.channels[static_cast<std::size_t>(swap ? c ^ 1 : c)];
  };
  for (int c = 0; c < std::min(found, channels); ++c) {
    const int count = count_of(c, found, channels);
    const double coefficient = per_edge * count / channels;
    usage.open(count);
    for (std::size_t b = 0; b < boxes.size(); ++b) {
      const nccl::Channel& channel = channel_of(b, c);
      const auto gpu = [&](std::size_t i) { return static_cast<std::size_t>(channel.gpus[i]); };
      const auto add = [&](const topology::RouteQuery& query, std::uint32_t receiver) {
        const bool closes_at_root = pipeline && receiver == 0;
        if (!closes_at_root) usage.add_channels(query, coefficient, count, found);
      };
      for (std::size_t i = 0; i + 1 < channel.gpus.size(); ++i)
        add({.from = boxes[b].gpus[gpu(i)],
             .to = boxes[b].gpus[gpu(i + 1)],
             .connection = static_cast<std::uint64_t>(c)},
            boxes[b].ranks[gpu(i + 1)]);
      const std::size_t to = (b + 1) % boxes.size();
      const nccl::Channel& next = channel_of(to, c);
      const auto last = static_cast<std::size_t>(channel.gpus.back()),
                 first = static_cast<std::size_t>(next.gpus.front());
      if (to == b && last == first) continue;
      topology::RouteQuery query{.from = boxes[b].gpus[last],
                                 .to = boxes[to].gpus[first],
                                 .connection = static_cast<std::uint64_t>(c)};
      if (to != b && channel.leave_net >= 0 && next.enter_net >= 0) {
        query.from_nic = boxes[b].nics[static_cast<std::size_t>(channel.leave_net)];
        query.to_nic = boxes[to].nics[static_cast<std::size_t>(next.enter_net)];
      }
      add(query, boxes[to].ranks[first]);
    }
  }
}
}  // namespace topsim::collective
