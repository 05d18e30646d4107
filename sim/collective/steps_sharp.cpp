// Sums in the fabric's switches (SHARP) as messages: CollNet, and NVLS between boxes. Each head's share goes
// up a tree of switches, piece by piece: a switch hands a piece on when it has come from all below it, and
// what leaves the top comes back down the same cables. Inside a box the heads collect their shares first:
// over NVLink from every GPU, or through an NVSwitch that sums.
#include <algorithm>
#include <map>

#include "sim/base/error.hpp"
#include "sim/collective/lowering.hpp"
#include "sim/collective/steps.hpp"

namespace topsim::collective {
namespace {
using topology::DeviceKind;
using Links = std::vector<LinkId>;

struct Way {
  Links links;  // none: as the router says
  Duration latency{};
};

// One head's tree. Positions: a box's head or a switch of the fabric.
struct SumTree {
  struct Node {
    std::uint32_t position;
    std::uint32_t parent = StepBuilder::kNothing;  // a node
    Way up, down;                                  // to the parent and back
    std::vector<std::uint32_t> children;
  };
  std::vector<Node> nodes;  // children before parents
};

class SharpSteps {
 public:
  SharpSteps(const topology::Router& router, const Choice& choice, const Placement& placement,
             const Timing& timing)
      : router_(router),
        topology_(router.topology()),
        placement_(placement),
        timing_(timing),
        nvls_(choice.algorithm == Algorithm::nvls),
        heads_(nvls_ ? placement.tuner->facts().nvls_graph.channels
                     : placement.tuner->facts().collnet_direct.channels) {}

  StepPlan build(std::int64_t bytes) {
    for (int h = 0; h < heads_; ++h) {
      const std::int64_t share = bytes * (h + 1) / heads_ - bytes * h / heads_;
      if (share > 0) add_head(h, share);
    }
    StepPlan plan = plan_.finish();
    plan.ways = std::move(ways_);
    plan.devices = std::move(devices_);
    return plan;
  }

 private:
  // Small against the share, so that a tree's levels cost little; no more pieces than that takes.
  static std::int64_t piece_of(std::int64_t share) {
    return std::clamp<std::int64_t>(share / 16, 4 << 10, 64 << 10);
  }

  [[nodiscard]] const nccl::Channel& channel(const PlacedBox& box, int head) const {
    const auto& graph = nvls_ ? box.graphs->nvls : box.graphs->collnet_direct;
    return graph.channels[static_cast<std::size_t>(head)];
  }
  [[nodiscard]] std::size_t head_of(const PlacedBox& box, int head) const {
    return static_cast<std::size_t>(channel(box, head).gpus.front());
  }

  std::uint32_t position(DeviceId device) {
    const auto [known, fresh] =
        position_.try_emplace(device, placement_.ranks + static_cast<std::uint32_t>(devices_.size()));
    if (fresh) devices_.push_back(device);
    return known->second;
  }

  // Of alternatives the one that fewest heads have taken, and of those the head's own by number, so that all
  // leaves lead one head to one spine: heads whose route divides over all uplinks take one each.
  LinkId least_taken(const std::vector<LinkId>& ways, int head) {
    const std::size_t own = static_cast<std::size_t>(head) % ways.size();
    LinkId best = ways[own];
    for (std::size_t i = 1; i < ways.size(); ++i) {
      const LinkId way = ways[(own + i) % ways.size()];
      if (heads_on_[way] < heads_on_[best]) best = way;
    }
    ++heads_on_[best];
    return best;
  }

  // One path of the route, in parts that end at the fabric's switches and at the receiver, or at the first
  // switch that `known` leads on from.
  template <class Known>
  std::vector<Links> parts(const PlacedBox& from, const PlacedBox& to, int head, const Known& known) {
    const auto nic = [&](const PlacedBox& box) {
      return box.nics[static_cast<std::size_t>(channel(box, head).enter_net)];
    };
    topology::Route route;
    DeviceId at = from.gpus[head_of(from, head)];
    const DeviceId end = to.gpus[head_of(to, head)];
    router_.route({.from = at,
                   .to = end,
                   .connection = static_cast<std::uint64_t>(head),
                   .from_nic = nic(from),
                   .to_nic = nic(to),
                   .one_port = true},
                  route);
    if (!route.reachable()) throw ConfigError(router_.why_unreachable(at, end));
    std::vector<Links> parts(1);
    while (at != end) {
      std::vector<LinkId> ways;
      for (const topology::LinkShare& use : route.links)
        if (topology_.link(use.link).from == at) ways.push_back(use.link);
      if (ways.empty()) throw InternalError("a route of a sum in the fabric ends before its end");
      const LinkId way = least_taken(ways, head);
      parts.back().push_back(way);
      at = topology_.link(way).to;
      if (topology_.device(at).kind != DeviceKind::fabric_switch) continue;
      if (known(at)) break;
      parts.emplace_back();
    }
    return parts;
  }

  // The k-th link from a to b and the k-th from b to a are one cable.
  [[nodiscard]] LinkId other_way(LinkId id) const {
    const topology::Link& link = topology_.link(id);
    std::size_t place = 0;
    for (const LinkId beside : topology_.links_from(link.from))
      if (beside < id && topology_.link(beside).to == link.to) ++place;
    for (const LinkId back : topology_.links_from(link.to))
      if (topology_.link(back).to == link.from && place-- == 0) return back;
    throw ConfigError("a sum in the fabric needs cables of both directions");
  }
  [[nodiscard]] Links turned(const Links& links) const {
    Links back;
    for (auto link = links.rbegin(); link != links.rend(); ++link) back.push_back(other_way(*link));
    return back;
  }

  // All paths lead to the first box's leaf: the union of their cables, as the pipelined form counts them.
  SumTree tree_of(int head) {
    const auto& boxes = placement_.boxes;
    struct Edge {
      DeviceId to;
      Links up;
    };
    std::map<DeviceId, Edge> above;  // of a switch
    std::vector<Edge> of_box(boxes.size());
    DeviceId top{};
    for (std::size_t b = 1; b < boxes.size(); ++b) {
      const auto known = [&](DeviceId at) { return b > 1 && (at == top || above.count(at) > 0); };
      const std::vector<Links> way = parts(boxes[b], boxes[0], head, known);
      DeviceId at = topology_.link(way[0].back()).to;
      of_box[b] = {at, way[0]};
      const bool to_the_end = topology_.link(way.back().back()).to == boxes[0].gpus[head_of(boxes[0], head)];
      for (std::size_t i = 1; i + (to_the_end ? 1 : 0) < way.size(); ++i) {
        const DeviceId next = topology_.link(way[i].back()).to;
        above.try_emplace(at, Edge{next, way[i]});
        at = next;
      }
      if (b > 1) continue;
      top = at;
      of_box[0] = {at, turned(way.back())};
    }
    SumTree tree;
    std::map<DeviceId, std::uint32_t> node_of;
    const auto add = [&](std::uint32_t at, const Edge* edge) {
      tree.nodes.push_back({at, StepBuilder::kNothing, {}, {}, {}});
      if (edge != nullptr)
        tree.nodes.back().up = along(edge->up), tree.nodes.back().down = along(turned(edge->up));
      return static_cast<std::uint32_t>(tree.nodes.size() - 1);
    };
    for (std::size_t b = 0; b < boxes.size(); ++b) add(boxes[b].ranks[head_of(boxes[b], head)], &of_box[b]);
    // Switches by their distance from the top, the furthest first.
    std::vector<std::pair<std::size_t, DeviceId>> switches;
    for (std::size_t b = 0; b < boxes.size(); ++b) {
      for (DeviceId at = of_box[b].to;;) {
        std::size_t distance = 0;
        for (DeviceId up = at; up != top; up = above.at(up).to) {
          if (++distance > above.size()) throw InternalError("the switches of a sum form a circle");
        }
        switches.emplace_back(distance, at);
        if (at == top) break;
        at = above.at(at).to;
      }
    }
    std::sort(switches.begin(), switches.end(), std::greater<>());
    switches.erase(std::unique(switches.begin(), switches.end()), switches.end());
    for (const auto& [distance, device] : switches)
      node_of[device] = add(position(device), device == top ? nullptr : &above.at(device));
    for (std::uint32_t n = 0; n + 1 < tree.nodes.size(); ++n) {
      const DeviceId parent = topology_.link(tree.nodes[n].up.links.back()).to;
      tree.nodes[n].parent = node_of.at(parent);
      tree.nodes[node_of.at(parent)].children.push_back(n);
    }
    return tree;
  }

  // One message that way. `rate` above 0: a source, which sends piece after piece at that rate; its first
  // carries what a call takes before anything moves.
  std::uint32_t send(std::uint32_t from, std::uint32_t to, const Way& way, int head, std::int64_t bytes,
                     double start_us, double rate, std::vector<std::uint32_t> after) {
    StepMessage message{from, to, Bytes(bytes), static_cast<std::uint16_t>(head), 0, 0};
    message.latency = std::max(way.latency, Duration(1)) + from_microseconds(start_us);
    const std::tuple line(from, to, head);
    if (!way.links.empty()) {
      const auto [known, fresh] = way_of_.try_emplace(line, static_cast<std::uint32_t>(ways_.size()));
      if (fresh) ways_.push_back(way.links);
      message.way = known->second;
    }
    if (rate > 0) {
      const double moving = static_cast<double>(bytes) / rate - seconds(way.latency);
      if (moving > 0) message.rate_cap = BytesPerSecond(static_cast<double>(bytes) / moving);
      const auto [last, first] = last_of_.try_emplace(line, StepBuilder::kNothing);
      after.push_back(last->second);
      return last->second = plan_.add(message, after);
    }
    return plan_.add(message, after);
  }

  void add_head(int head, std::int64_t share) {
    constexpr std::size_t kSlots = 8;
    const SumTree tree = tree_of(head);
    const auto& boxes = placement_.boxes;
    double fabric_us = 0;  // the longest way to the top and back
    for (std::uint32_t b = 0; b < boxes.size(); ++b) {
      double us = 0;
      for (std::uint32_t n = b; n != StepBuilder::kNothing; n = tree.nodes[n].parent)
        us += 2 * microseconds(tree.nodes[n].up.latency);
      fabric_us = std::max(fabric_us, us);
    }
    const double rate = timing_.cap / heads_;
    const std::int64_t piece = piece_of(share);
    std::vector<std::vector<std::uint32_t>> sent(tree.nodes.size());  // by node: its pieces to the parent
    for (std::int64_t done = 0; done < share; done += piece) {
      const std::int64_t size = std::min(piece, share - done);
      const double start_us = done == 0 ? std::max(0.0, timing_.latency_us - fabric_us) : 0;
      std::vector<std::uint32_t> up(tree.nodes.size()), down(tree.nodes.size());
      for (std::uint32_t n = 0; n + 1 < tree.nodes.size(); ++n) {
        const SumTree::Node& node = tree.nodes[n];
        std::vector<std::uint32_t> after;
        double first_us = 0, at_rate = 0;
        if (n < boxes.size()) {
          after = collect(boxes[n], head, size, start_us, rate);
          if (after.empty()) first_us = start_us, at_rate = rate;
        }
        for (const std::uint32_t child : node.children) after.push_back(up[child]);
        if (sent[n].size() >= kSlots) after.push_back(sent[n][sent[n].size() - kSlots]);
        up[n] = send(node.position, tree.nodes[node.parent].position, node.up, head, size, first_us, at_rate,
                     after);
        sent[n].push_back(up[n]);
      }
      for (std::uint32_t n = static_cast<std::uint32_t>(tree.nodes.size() - 1); n-- > 0;) {
        const SumTree::Node& node = tree.nodes[n];
        const SumTree::Node& parent = tree.nodes[node.parent];
        std::vector<std::uint32_t> after;
        if (parent.parent == StepBuilder::kNothing) {
          for (const std::uint32_t child : parent.children) after.push_back(up[child]);
        } else {
          after.push_back(down[node.parent]);
        }
        down[n] = send(parent.position, node.position, node.down, head, size, 0, 0, after);
        if (n < boxes.size()) spread(boxes[n], head, size, down[n]);
      }
    }
  }

  // The NVSwitch that sums a head's share; none where GPUs send to the head themselves.
  [[nodiscard]] std::optional<DeviceId> summing_switch(const PlacedBox& box, int head) const {
    std::vector<DeviceId> chips;
    for (const LinkId link : topology_.links_from(box.gpus[head_of(box, head)])) {
      const DeviceId to = topology_.link(link).to;
      if (topology_.device(to).kind == DeviceKind::nvswitch) chips.push_back(to);
    }
    if (!nvls_ || chips.empty()) return std::nullopt;
    return chips[static_cast<std::size_t>(head) % chips.size()];
  }

  [[nodiscard]] Way along(Links links) const {
    Duration latency{};
    for (const LinkId link : links) latency += topology_.link(link).latency;
    return {std::move(links), latency};
  }
  // To or from an NVSwitch over their link, between GPUs as the router says: over all switches at once.
  const Way& inside(DeviceId from, DeviceId to) {
    const auto [known, fresh] = inside_.try_emplace({from, to});
    if (!fresh) return known->second;
    const bool gpus = topology_.device(from).kind == DeviceKind::accelerator &&
                      topology_.device(to).kind == DeviceKind::accelerator;
    if (!gpus) return known->second = along({topology_.find_link(from, to).value()});
    topology::Route route;
    router_.route({.from = from, .to = to}, route);
    known->second.latency = route.latency;
    return known->second;
  }

  // A box's piece at its head: the messages that bring it.
  std::vector<std::uint32_t> collect(const PlacedBox& box, int head, std::int64_t size, double start_us,
                                     double rate) {
    const std::size_t at = head_of(box, head);
    const auto chip = summing_switch(box, head);
    const std::uint32_t to = chip ? position(*chip) : box.ranks[at];
    std::vector<std::uint32_t> brought;
    for (std::size_t g = 0; g < box.gpus.size(); ++g) {
      if (g == at && !chip) continue;
      brought.push_back(send(box.ranks[g], to, inside(box.gpus[g], chip ? *chip : box.gpus[at]), head, size,
                             start_us, rate, {}));
    }
    if (!chip) return brought;
    return {send(to, box.ranks[at], inside(*chip, box.gpus[at]), head, size, 0, 0, brought)};
  }

  void spread(const PlacedBox& box, int head, std::int64_t size, std::uint32_t after) {
    const std::size_t at = head_of(box, head);
    const auto chip = summing_switch(box, head);
    std::uint32_t from = box.ranks[at];
    if (chip) {
      after = send(from, position(*chip), inside(box.gpus[at], *chip), head, size, 0, 0, {after});
      from = position(*chip);
    }
    for (std::size_t g = 0; g < box.gpus.size(); ++g) {
      if (g == at && !chip) continue;
      send(from, box.ranks[g], inside(chip ? *chip : box.gpus[at], box.gpus[g]), head, size, 0, 0, {after});
    }
  }

  const topology::Router& router_;
  const topology::Topology& topology_;
  const Placement& placement_;
  const Timing timing_;
  const bool nvls_;
  const int heads_;
  StepBuilder plan_;
  std::vector<DeviceId> devices_;
  std::map<DeviceId, std::uint32_t> position_;
  std::map<LinkId, int> heads_on_;
  std::vector<Links> ways_;
  std::map<std::tuple<std::uint32_t, std::uint32_t, int>, std::uint32_t> way_of_;
  std::map<std::tuple<std::uint32_t, std::uint32_t, int>, std::uint32_t> last_of_;  // a source's last piece
  std::map<std::pair<DeviceId, DeviceId>, Way> inside_;
};
}  // namespace

StepPlan sharp_steps(const topology::Router& router, std::int64_t bytes, const Choice& choice,
                     const Placement& placement, const Timing& timing) {
  return SharpSteps(router, choice, placement, timing).build(bytes);
}
}  // namespace topsim::collective
