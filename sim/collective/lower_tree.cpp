// Tree all-reduce: chunks are reduced from the leaves up and the result comes down again, so every edge
// carries 1 byte per byte each way. Channels come in two halves: the first uses one binary tree over the
// boxes, the second its complement, in which the inner nodes of the first are leaves. Together every box
// sends and receives about twice its share. Inside a box the channel is a chain. Facts: NCCL 2.30
// graph/trees.cc, connect.cc.
#include <algorithm>
#include <vector>

#include "sim/collective/lowering.hpp"

namespace topsim::collective {
namespace {

TreeNode plain_tree(int boxes, int box) {
  TreeNode node;
  int bit = 1;
  while (bit < boxes && (bit & box) == 0) bit <<= 1;
  if (box == 0) {
    node.down[1] = boxes > 1 ? bit >> 1 : -1;
    return node;
  }
  node.up = (box ^ bit) | (bit << 1);
  if (node.up >= boxes) node.up = box ^ bit;
  node.child_type = box < node.up ? 0 : 1;
  int reach = bit >> 1;
  if (reach == 0) return node;
  node.down[0] = box - reach;
  while (reach > 0 && box + reach >= boxes) reach >>= 1;
  if (reach > 0) node.down[1] = box + reach;
  return node;
}

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

// Lowers `count` of the `channels` over one of the two trees, all through the GPUs and NICs of the graph's
// channel `c`.
void lower_channel(const Placement& placement, bool second, int c, int count, int channels,
                   UsageBuilder& usage) {
  const auto& boxes = placement.boxes;
  const int found = placement.tuner->facts().tree.channels, n = static_cast<int>(boxes.size());
  const double coefficient = static_cast<double>(count) / channels;
  const auto both_ways = [&](topology::RouteQuery query) {
    usage.add_channels(query, coefficient, count, 2 * found);
    std::swap(query.from, query.to);
    std::swap(query.from_nic, query.to_nic);
    usage.add_channels(query, coefficient, count, 2 * found);
  };
  for (int b = 0; b < n; ++b) {
    const PlacedBox& box = boxes[static_cast<std::size_t>(b)];
    const nccl::ChannelGraph& graph = box.graphs->tree;
    const nccl::Channel& channel = graph.channels[static_cast<std::size_t>(c)];
    for (std::size_t i = 0; i + 1 < channel.gpus.size(); ++i)
      both_ways({.from = box.gpus[static_cast<std::size_t>(channel.gpus[i])],
                 .to = box.gpus[static_cast<std::size_t>(channel.gpus[i + 1])]});
    const TreeNode node = binary_tree(n, b, second);
    if (node.up < 0) continue;
    const PlacedBox& parent = boxes[static_cast<std::size_t>(node.up)];
    const nccl::Channel& above = parent.graphs->tree.channels[static_cast<std::size_t>(c)];
    const nccl::Pattern pattern = parent.graphs->tree.pattern;
    // Which GPU of the parent's chain receives from this child.
    const bool on_second =
        above.gpus.size() > 1 &&
        (node.child_type == 0 ? pattern != nccl::Pattern::tree : pattern == nccl::Pattern::split_tree);
    topology::RouteQuery query{.from = box.gpus[static_cast<std::size_t>(channel.gpus.front())],
                               .to = parent.gpus[static_cast<std::size_t>(above.gpus[on_second ? 1 : 0])],
                               .connection = static_cast<std::uint64_t>((second ? found : 0) + c)};
    const int to_net = on_second ? above.leave_net : above.enter_net;
    if (channel.enter_net >= 0 && to_net >= 0) {
      query.from_nic = box.nics[static_cast<std::size_t>(channel.enter_net)];
      query.to_nic = parent.nics[static_cast<std::size_t>(to_net)];
    }
    both_ways(query);
  }
}

}  // namespace

TreeNode binary_tree(int boxes, int box, bool second) {
  if (!second) return plain_tree(boxes, box);
  const bool shift = boxes % 2 == 1;
  const auto there = [&](int b) { return shift ? (b + boxes - 1) % boxes : boxes - 1 - b; };
  const auto back = [&](int b) { return b < 0 ? -1 : shift ? (b + 1) % boxes : boxes - 1 - b; };
  TreeNode node = plain_tree(boxes, there(box));
  node.up = back(node.up);
  node.down[0] = back(node.down[0]);
  node.down[1] = back(node.down[1]);
  return node;
}

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
      lower_channel(placement, half == 1, c, count, channels, usage);
      end[static_cast<std::size_t>(c)] = usage.mark();
    }
  }
}
}  // namespace topsim::collective
