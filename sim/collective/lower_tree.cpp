// Tree all-reduce: chunks are reduced from the leaves up and the result comes down again, so every edge
// carries 1 byte per byte each way. Channels come in two halves: the first uses one binary tree over the
// boxes, the second its complement, in which the inner nodes of the first are leaves. Together every box
// sends and receives about twice its share. Inside a box the channel is a chain. Facts: NCCL 2.30
// graph/trees.cc, connect.cc.
#include <algorithm>
#include <vector>

#include "sim/collective/lowering.hpp"
#include "sim/collective/wiring.hpp"

namespace topsim::collective {
namespace {

// For each channel, the first channel that visits the same GPUs and NICs in every box.
std::vector<int> twins_of(const Placement& placement, int channels) {
  std::vector<const nccl::Box*> shapes;
  for (const PlacedBox& box : placement.boxes)
    if (shapes.empty() || shapes.back() != box.graphs) shapes.push_back(box.graphs);
  const auto same = [&](int a, int b) {
    return std::all_of(shapes.begin(), shapes.end(), [&](const nccl::Box* shape) {
      const nccl::Channel &x = shape->tree.channels[static_cast<std::size_t>(a)],
                          &y = shape->tree.channels[static_cast<std::size_t>(b)];
      return x.gpus == y.gpus && x.enter_net == y.enter_net && x.leave_net == y.leave_net;
    });
  };
  std::vector<int> twins;
  for (int c = 0; c < channels; ++c) {
    int twin = 0;
    while (twin < c && !same(twin, c)) ++twin;
    twins.push_back(twin);
  }
  return twins;
}

}  // namespace

void lower_tree(const Placement& placement, int channels, UsageBuilder& usage) {
  const int found = placement.tuner->facts().tree.channels;
  const std::vector<int> twins = usage.repeats() ? twins_of(placement, found) : std::vector<int>();
  std::vector<UsageBuilder::Mark> begin(static_cast<std::size_t>(found)), end = begin;
  for (int half = 0; half < 2; ++half) {
    const auto count_of = [&](int c) {
      int count = 0;
      for (int i = half * found + c; i < channels; i += 2 * found) ++count;
      return count;
    };
    for (int c = 0; c < found; ++c) {
      const int count = count_of(c), twin = twins.empty() ? c : twins[static_cast<std::size_t>(c)];
      if (count == 0) continue;
      if (twin != c && count_of(twin) == count) {
        usage.repeat(begin[static_cast<std::size_t>(twin)], end[static_cast<std::size_t>(twin)]);
        continue;
      }
      begin[static_cast<std::size_t>(c)] = usage.mark();
      usage.open(count);
      const int channel = half * found + c;
      for (const Hop& hop : tree_of(placement, channel))
        for (const Hop& way : {hop, hop.back()})
          usage.add_channels(way.query(channel), static_cast<double>(count) / channels, count, 2 * found);
      end[static_cast<std::size_t>(c)] = usage.mark();
    }
  }
}
}  // namespace topsim::collective
