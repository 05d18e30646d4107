#include <algorithm>
#include <cmath>
#include <optional>

#include "sim/collective/nccl/tuner_constants.hpp"
#include "sim/collective/steps.hpp"
#include "sim/collective/wiring.hpp"

namespace topsim::collective {
namespace {

struct Node {
  std::optional<Hop> up;  // to the parent; none: the root
  std::vector<std::uint32_t> children;
};

// The tree of one channel by rank, and the ranks with parents before children.
std::vector<Node> nodes_of(const Placement& placement, int channel, std::vector<std::uint32_t>& order) {
  std::vector<Node> nodes(placement.ranks);
  for (const Hop& hop : tree_of(placement, channel)) {
    nodes[hop.from_rank].up = hop;
    nodes[hop.to_rank].children.push_back(hop.from_rank);
  }
  const auto root = std::find_if(nodes.begin(), nodes.end(), [](const Node& node) { return !node.up; });
  order = {static_cast<std::uint32_t>(root - nodes.begin())};
  for (std::size_t i = 0; i < order.size(); ++i)
    for (const std::uint32_t child : nodes[order[i]].children) order.push_back(child);
  return nodes;
}

}  // namespace

// Leaves send at the rate of the whole tree, other nodes pass on what has arrived: so the pipeline fills at
// the speed of a hop and then runs at the tree's rate. At most eight pieces (slots) are on an edge.
StepPlan tree_steps(std::int64_t bytes, const Choice& choice, const Placement& placement,
                    const TreePipeline& pipe, double wire, const StepTiming& steps) {
  constexpr std::size_t kSlots = nccl::kSlots;
  const std::int64_t channels = choice.channels;
  const auto piece = std::max<std::int64_t>(1, std::llround(pipe.piece));
  StepBuilder plan;
  for (std::int64_t c = 0; c < channels; ++c) {
    std::vector<std::uint32_t> order;
    const std::vector<Node> nodes = nodes_of(placement, static_cast<int>(c), order);
    const std::int64_t begin = bytes * c / channels, share = bytes * (c + 1) / channels - begin;
    // Indexed by the lower end of the edge; one entry per piece.
    std::vector<std::vector<std::uint32_t>> up(nodes.size()), down(nodes.size());
    for (std::int64_t done = 0; done < share; done += piece) {
      const auto size = static_cast<double>(std::min(piece, share - done));
      const auto send = [&](std::uint32_t child, bool upwards, std::vector<std::uint32_t> after) {
        const Hop hop = upwards ? *nodes[child].up : nodes[child].up->back();
        auto& line = (upwards ? up : down)[child];
        const bool leaf = upwards && nodes[child].children.empty();
        double latency = (hop.between() ? steps.between : steps.inside).count() * 1e-6;
        double time = pipe.rate > 0 ? size / (hop.between() ? pipe.between_rate : pipe.inside_rate) : 0;
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
        StepMessage message{hop.from_rank,
                            hop.to_rank,
                            Bytes(std::llround(size * wire)),
                            static_cast<std::uint16_t>(c),
                            0,
                            0,
                            from_microseconds(latency * 1e6),
                            BytesPerSecond(time > 0 ? size * wire / time : 0),
                            hop.from_nic,
                            hop.to_nic};
        line.push_back(plan.add(message, after));
      };
      std::vector<std::uint32_t> at_root;
      for (auto r = order.rbegin(); r != order.rend(); ++r) {  // reduction from the leaves up
        std::vector<std::uint32_t> after;
        for (const std::uint32_t child : nodes[*r].children) after.push_back(up[child].back());
        if (nodes[*r].up)
          send(*r, true, after);
        else
          at_root = after;
      }
      for (const std::uint32_t r : order)  // the result back down
        for (const std::uint32_t child : nodes[r].children)
          send(child, false, r == order.front() ? at_root : std::vector<std::uint32_t>{down[r].back()});
    }
  }
  return plan.finish();
}
}  // namespace topsim::collective
