#include "sim/collective/wiring.hpp"

namespace topsim::collective {
namespace {

// A GPU of a box and the NIC by which its channel leaves or enters; positions are those of nccl::System.
struct End {
  std::size_t box;
  int gpu;
  int net = -1;
};

Hop join(const Placement& placement, const End& from, const End& to) {
  const PlacedBox &a = placement.boxes[from.box], &b = placement.boxes[to.box];
  const auto from_gpu = static_cast<std::size_t>(from.gpu), to_gpu = static_cast<std::size_t>(to.gpu);
  Hop hop{a.gpus[from_gpu], b.gpus[to_gpu], a.ranks[from_gpu], b.ranks[to_gpu], from.box, to.box};
  if (hop.between() && from.net >= 0 && to.net >= 0) {
    hop.from_nic = a.nics[static_cast<std::size_t>(from.net)];
    hop.to_nic = b.nics[static_cast<std::size_t>(to.net)];
  }
  return hop;
}

// A box's place in a binary tree over the boxes.
struct TreePlace {
  int parent = -1;            // none: the root
  bool second_child = false;  // of its parent
};

TreePlace in_first_tree(int boxes, int box) {
  if (box == 0) return {};
  const int bit = box & -box;
  int parent = (box ^ bit) | (bit << 1);
  if (parent >= boxes) parent = box ^ bit;
  return {parent, box > parent};
}

// The second tree is the first one shifted by a box or, over an even number of boxes, mirrored.
TreePlace in_tree(int boxes, int box, bool second) {
  if (!second) return in_first_tree(boxes, box);
  const bool shift = boxes % 2 == 1;
  TreePlace place = in_first_tree(boxes, shift ? (box + boxes - 1) % boxes : boxes - 1 - box);
  if (place.parent >= 0) place.parent = shift ? (place.parent + 1) % boxes : boxes - 1 - place.parent;
  return place;
}

// Which GPU of the parent's chain receives from a child in another box: the first or the second.
bool on_second_gpu(const nccl::ChannelGraph& parent, const nccl::Channel& chain, bool second_child) {
  if (chain.gpus.size() < 2) return false;
  return second_child ? parent.pattern == nccl::Pattern::split_tree : parent.pattern != nccl::Pattern::tree;
}

}  // namespace

std::vector<Hop> ring_of(const Placement& placement, int channel) {
  const auto& boxes = placement.boxes;
  const int found = placement.tuner->facts().ring.channels, c = channel % found;
  // On every other box, channels of a pair swap places where that keeps them on their rail.
  const auto in_box = [&](std::size_t b) -> const nccl::Channel& {
    const nccl::ChannelGraph& ring = boxes[b].graphs->ring;
    const bool swap = ring.cross_nic == 2 && found % 2 == 0 && b % 2 == 1;
    return ring.channels[static_cast<std::size_t>(swap ? c ^ 1 : c)];
  };
  std::vector<Hop> hops;
  hops.reserve(placement.ranks);
  for (std::size_t b = 0; b < boxes.size(); ++b) {
    const std::size_t next = (b + 1) % boxes.size();
    const nccl::Channel &here = in_box(b), &there = in_box(next);
    for (std::size_t i = 0; i + 1 < here.gpus.size(); ++i)
      hops.push_back(join(placement, {b, here.gpus[i]}, {b, here.gpus[i + 1]}));
    hops.push_back(
        join(placement, {b, here.gpus.back(), here.leave_net}, {next, there.gpus.front(), there.enter_net}));
  }
  return hops;
}

std::vector<Hop> tree_of(const Placement& placement, int channel) {
  const auto& boxes = placement.boxes;
  const int found = placement.tuner->facts().tree.channels;
  const bool second = channel / found % 2 == 1;
  const auto in_box = [&](std::size_t b) -> const nccl::Channel& {
    return boxes[b].graphs->tree.channels[static_cast<std::size_t>(channel % found)];
  };
  std::vector<Hop> hops;
  hops.reserve(placement.ranks);
  for (std::size_t b = 0; b < boxes.size(); ++b) {
    const nccl::Channel& chain = in_box(b);
    for (std::size_t i = 0; i + 1 < chain.gpus.size(); ++i)
      hops.push_back(join(placement, {b, chain.gpus[i + 1]}, {b, chain.gpus[i]}));
    const TreePlace place = in_tree(static_cast<int>(boxes.size()), static_cast<int>(b), second);
    if (place.parent < 0) continue;
    const auto parent = static_cast<std::size_t>(place.parent);
    const nccl::Channel& above = in_box(parent);
    const bool on_second = on_second_gpu(boxes[parent].graphs->tree, above, place.second_child);
    hops.push_back(
        join(placement, {b, chain.gpus.front(), chain.enter_net},
             {parent, above.gpus[on_second ? 1 : 0], on_second ? above.leave_net : above.enter_net}));
  }
  return hops;
}

std::vector<Hop> head_tree_of(const Placement& placement, int head, bool second) {
  const auto& boxes = placement.boxes;
  const auto end = [&](std::size_t b) -> End {
    const nccl::Channel& channel = boxes[b].graphs->nvls.channels[static_cast<std::size_t>(head)];
    return {b, channel.gpus.front(), channel.enter_net};
  };
  std::vector<Hop> hops;
  for (std::size_t b = 0; b < boxes.size(); ++b) {
    const TreePlace place = in_tree(static_cast<int>(boxes.size()), static_cast<int>(b), second);
    if (place.parent < 0) continue;
    hops.push_back(join(placement, end(b), end(static_cast<std::size_t>(place.parent))));
  }
  return hops;
}
}  // namespace topsim::collective
