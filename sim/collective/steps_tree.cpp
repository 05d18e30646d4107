#include <algorithm>
#include <cmath>

#include "sim/collective/lowering.hpp"
#include "sim/collective/steps.hpp"

namespace topsim::collective {
namespace {

struct Node {
  std::uint32_t parent = StepBuilder::kNothing;
  std::vector<std::uint32_t> children;
  DeviceId nic{}, parent_nic{};
  bool between = false;  // the edge to the parent leaves the box
};

// The tree of one channel over ranks: a chain in each box, a binary tree over the boxes.
std::vector<Node> tree_of(const Placement& placement, int channel, std::vector<std::uint32_t>& order) {
  const auto& boxes = placement.boxes;
  const int found = placement.tuner->facts().tree.channels, n = static_cast<int>(boxes.size());
  const auto c = static_cast<std::size_t>(channel % found);
  const bool second = channel / found % 2 == 1;
  std::vector<Node> nodes(placement.ranks);
  const auto attach = [&](std::uint32_t rank, std::uint32_t parent) {
    nodes[rank].parent = parent;
    nodes[parent].children.push_back(rank);
  };
  std::uint32_t root = 0;
  for (int b = 0; b < n; ++b) {
    const PlacedBox& box = boxes[static_cast<std::size_t>(b)];
    const nccl::Channel& chain = box.graphs->tree.channels[c];
    const auto rank = [](const PlacedBox& of, int gpu) { return of.ranks[static_cast<std::size_t>(gpu)]; };
    for (std::size_t i = 0; i + 1 < chain.gpus.size(); ++i)
      attach(rank(box, chain.gpus[i + 1]), rank(box, chain.gpus[i]));
    const TreeNode node = binary_tree(n, b, second);
    const std::uint32_t head = rank(box, chain.gpus.front());
    if (node.up < 0) {
      root = head;
      continue;
    }
    const PlacedBox& parent = boxes[static_cast<std::size_t>(node.up)];
    const nccl::Channel& above = parent.graphs->tree.channels[c];
    const nccl::Pattern pattern = parent.graphs->tree.pattern;
    const bool on_second =
        above.gpus.size() > 1 &&
        (node.child_type == 0 ? pattern != nccl::Pattern::tree : pattern == nccl::Pattern::split_tree);
    attach(head, rank(parent, above.gpus[on_second ? 1 : 0]));
    nodes[head].between = true;
    const int to_net = on_second ? above.leave_net : above.enter_net;
    if (chain.enter_net >= 0 && to_net >= 0) {
      nodes[head].nic = box.nics[static_cast<std::size_t>(chain.enter_net)];
      nodes[head].parent_nic = parent.nics[static_cast<std::size_t>(to_net)];
    }
  }
  order = {root};  // parents before children
  for (std::size_t i = 0; i < order.size(); ++i)
    for (const std::uint32_t child : nodes[order[i]].children) order.push_back(child);
  return nodes;
}

}  // namespace

// Leaves send at the rate of the whole tree, other nodes pass on what has arrived: so the pipeline fills at
// the speed of a hop and then runs at the tree's rate. At most eight pieces (slots) are on an edge.
StepPlan tree_steps(std::int64_t bytes, const Choice& choice, const Placement& placement,
                    const TreePipeline& pipe, double wire, const StepTiming& steps) {
  constexpr std::size_t kSlots = 8;
  const std::int64_t channels = choice.channels;
  const auto piece = std::max<std::int64_t>(1, std::llround(pipe.piece));
  StepBuilder plan;
  for (std::int64_t c = 0; c < channels; ++c) {
    std::vector<std::uint32_t> order;
    const std::vector<Node> nodes = tree_of(placement, static_cast<int>(c), order);
    const std::int64_t begin = bytes * c / channels, share = bytes * (c + 1) / channels - begin;
    // Indexed by the lower end of the edge; one entry per piece.
    std::vector<std::vector<std::uint32_t>> up(nodes.size()), down(nodes.size());
    for (std::int64_t done = 0; done < share; done += piece) {
      const auto size = static_cast<double>(std::min(piece, share - done));
      const auto send = [&](std::uint32_t child, bool upwards, std::vector<std::uint32_t> after) {
        const Node& node = nodes[child];
        auto& line = (upwards ? up : down)[child];
        const bool leaf = upwards && node.children.empty();
        double latency = (node.between ? steps.between : steps.inside).count() * 1e-6;
        double time = pipe.rate > 0 ? size / pipe.hop_rate : 0;
        std::size_t window = kSlots;
        if (leaf && pipe.rate > 0) {
          // Piece k arrives k periods after the first, so as many pieces are in flight as a piece takes
          // periods.
          const double period = size / pipe.rate;
          window = std::min(kSlots, static_cast<std::size_t>(std::ceil((latency + time) / period - 1e-9)));
          time = line.size() < window ? time + static_cast<double>(line.size()) * period
                                      : std::max(time, static_cast<double>(window) * period - latency);
        }
        if (leaf && line.empty()) latency += steps.start.count() * 1e-6;
        if (line.size() >= window) after.push_back(line[line.size() - window]);
        StepMessage message{upwards ? child : node.parent,
                            upwards ? node.parent : child,
                            Bytes(std::llround(size * wire)),
                            static_cast<std::uint16_t>(c),
                            0,
                            0,
                            from_microseconds(latency * 1e6),
                            BytesPerSecond(time > 0 ? size * wire / time : 0),
                            upwards ? node.nic : node.parent_nic,
                            upwards ? node.parent_nic : node.nic};
        line.push_back(plan.add(message, after));
      };
      std::vector<std::uint32_t> at_root;
      for (auto r = order.rbegin(); r != order.rend(); ++r) {  // reduction from the leaves up
        std::vector<std::uint32_t> after;
        for (const std::uint32_t child : nodes[*r].children) after.push_back(up[child].back());
        if (nodes[*r].parent == StepBuilder::kNothing) {
          at_root = after;
        } else {
          send(*r, true, after);
        }
      }
      for (const std::uint32_t r : order)  // the result back down
        for (const std::uint32_t child : nodes[r].children)
          send(child, false, r == order.front() ? at_root : std::vector<std::uint32_t>{down[r].back()});
    }
  }
  return plan.finish();
}
}  // namespace topsim::collective
