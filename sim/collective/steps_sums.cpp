// Reductions over trees as messages: in the fabric's switches (CollNet, NVLS between boxes with SHARP) and in
// the heads of boxes (NVLSTree). Each head's share goes up its tree piece by piece: a node forwards a piece
// when it has arrived from all nodes below, and the result at the top returns by the same path. Inside a box
// the heads collect their shares first: over NVLink from every GPU, or through an NVSwitch that reduces.
#include <algorithm>
#include <map>

#include "sim/collective/nccl/tuner_constants.hpp"
#include "sim/collective/steps.hpp"
#include "sim/collective/sum_tree.hpp"

namespace topsim::collective {
namespace {
using topology::DeviceKind;

class SumSteps {
 public:
  SumSteps(const topology::Router& router, const Choice& choice, const Placement& placement,
           const Timing& timing)
      : router_(router),
        topology_(router.topology()),
        placement_(placement),
        timing_(timing),
        over_boxes_(choice.algorithm == Algorithm::nvls_tree),
        nvls_(over_boxes_ || choice.algorithm == Algorithm::nvls),
        trees_(router, placement, nvls_),
        heads_(trees_.heads()) {}

  StepPlan build(std::int64_t bytes) {
    for (int h = 0; h < heads_; ++h) {
      const std::int64_t share = bytes * (h + 1) / heads_ - bytes * h / heads_;
      if (share == 0) continue;
      if (!over_boxes_) {
        add_tree(trees_.in_fabric(h), h, h, share, timing_.cap / heads_);
        continue;
      }
      for (const bool second : {false, true})
        add_tree(trees_.over_boxes(h, second), h, 2 * h + (second ? 1 : 0),
                 second ? share - share / 2 : share / 2, timing_.cap / heads_ / 2);
    }
    StepPlan plan = plan_.finish();
    plan.ways = std::move(ways_);
    plan.devices = std::move(devices_);
    return plan;
  }

 private:
  // Small compared with the share, so that the levels of a tree cost little, but no smaller than that
  // requires.
  static std::int64_t piece_of(std::int64_t share) {
    return std::clamp<std::int64_t>(share / 16, 4 << 10, 64 << 10);
  }

  std::uint32_t position(DeviceId device) {
    const auto [known, fresh] =
        position_.try_emplace(device, placement_.ranks + static_cast<std::uint32_t>(devices_.size()));
    if (fresh) devices_.push_back(device);
    return known->second;
  }

  // Sends one message along `way`. With `rate` above 0 the sender is a source, which sends piece after piece
  // at that rate; its first piece includes the time that a call takes before anything moves.
  std::uint32_t send(std::uint32_t from, std::uint32_t to, const SumWay& way, int flow, std::int64_t bytes,
                     Microseconds start, double rate, std::vector<std::uint32_t> after) {
    StepMessage message{from, to, Bytes(bytes), static_cast<std::uint16_t>(flow), 0, 0};
    message.latency = way.latency + nearest_picosecond(start);
    message.from_nic = way.from_nic, message.to_nic = way.to_nic;
    const std::tuple line(from, to, flow);
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

  // Adds the part of a head's share that one tree carries, as a flow of its own.
  void add_tree(const SumTree& tree, int head, int flow, std::int64_t share, double rate) {
    constexpr std::size_t kSlots = nccl::kSlots;
    const std::vector<SumTree::Node>& nodes = tree.nodes;
    const auto size_of = static_cast<std::uint32_t>(nodes.size());
    const auto box_of = [&](std::uint32_t n) {
      return nodes[n].box == SumTree::kNone ? nullptr : &placement_.boxes[nodes[n].box];
    };
    std::vector<std::uint32_t> at(size_of);
    Microseconds fabric{};  // of the longest path to the top and back
    for (std::uint32_t n = 0; n < size_of; ++n) {
      const PlacedBox* box = box_of(n);
      at[n] = box != nullptr ? box->ranks[trees_.head_of(*box, head)] : position(nodes[n].device);
      Microseconds way{};
      for (std::uint32_t up = n; up != SumTree::kNone; up = nodes[up].parent)
        way += 2 * in_microseconds(nodes[up].up.latency);
      fabric = std::max(fabric, way);
    }
    const std::int64_t piece = piece_of(share);
    std::vector<std::vector<std::uint32_t>> sent(size_of);  // by node: its pieces to the parent
    for (std::int64_t done = 0; done < share; done += piece) {
      const std::int64_t size = std::min(piece, share - done);
      const Microseconds start =
          done == 0 ? std::max(Microseconds{}, timing_.latency - fabric) : Microseconds{};
      std::vector<std::uint32_t> up(size_of), down(size_of), summed;
      for (std::uint32_t n = 0; n < size_of; ++n) {
        const SumTree::Node& node = nodes[n];
        summed.clear();
        if (const PlacedBox* box = box_of(n)) summed = collect(*box, head, flow, size, start, rate);
        for (const std::uint32_t child : node.children) summed.push_back(up[child]);
        if (node.parent == SumTree::kNone) break;  // the top is the last node
        const bool source = summed.empty();
        if (sent[n].size() >= kSlots) summed.push_back(sent[n][sent[n].size() - kSlots]);
        up[n] = send(at[n], at[node.parent], node.up, flow, size, source ? start : Microseconds{},
                     source ? rate : 0, summed);
        sent[n].push_back(up[n]);
      }
      for (std::uint32_t n = size_of; n-- > 0;) {
        const SumTree::Node& node = nodes[n];
        std::vector<std::uint32_t> come = summed;
        if (node.parent != SumTree::kNone) {
          if (nodes[node.parent].parent != SumTree::kNone) come = {down[node.parent]};
          down[n] = send(at[node.parent], at[n], node.down, flow, size, {}, 0, come);
          come = {down[n]};
        }
        if (const PlacedBox* box = box_of(n)) spread(*box, head, flow, size, come);
      }
    }
  }

  // The NVSwitch that reduces a head's share; none if GPUs send to the head themselves.
  [[nodiscard]] std::optional<DeviceId> summing_switch(const PlacedBox& box, int head) const {
    std::vector<DeviceId> chips;
    for (const LinkId link : topology_.links_from(box.gpus[trees_.head_of(box, head)])) {
      const DeviceId to = topology_.link(link).to;
      if (topology_.device(to).kind == DeviceKind::nvswitch) chips.push_back(to);
    }
    if (!nvls_ || chips.empty()) return std::nullopt;
    return chips[static_cast<std::size_t>(head) % chips.size()];
  }

  // To or from an NVSwitch over their link; between GPUs as the router says, over all switches at once.
  const SumWay& inside(DeviceId from, DeviceId to) {
    const auto [known, fresh] = inside_.try_emplace({from, to});
    if (!fresh) return known->second;
    const bool gpus = topology_.device(from).kind == DeviceKind::accelerator &&
                      topology_.device(to).kind == DeviceKind::accelerator;
    if (!gpus) return known->second = trees_.along({topology_.find_link(from, to).value()});
    topology::Route route;
    router_.route({.from = from, .to = to}, route);
    known->second.latency = route.latency;
    return known->second;
  }

  // The messages that bring a box's piece to its head.
  std::vector<std::uint32_t> collect(const PlacedBox& box, int head, int flow, std::int64_t size,
                                     Microseconds start, double rate) {
    const std::size_t at = trees_.head_of(box, head);
    const auto chip = summing_switch(box, head);
    const std::uint32_t to = chip ? position(*chip) : box.ranks[at];
    std::vector<std::uint32_t> brought;
    for (std::size_t g = 0; g < box.gpus.size(); ++g) {
      if (g == at && !chip) continue;
      brought.push_back(send(box.ranks[g], to, inside(box.gpus[g], chip ? *chip : box.gpus[at]), flow, size,
                             start, rate, {}));
    }
    if (!chip) return brought;
    return {send(to, box.ranks[at], inside(*chip, box.gpus[at]), flow, size, {}, 0, brought)};
  }

  void spread(const PlacedBox& box, int head, int flow, std::int64_t size, std::vector<std::uint32_t> after) {
    const std::size_t at = trees_.head_of(box, head);
    const auto chip = summing_switch(box, head);
    std::uint32_t from = box.ranks[at];
    if (chip) {
      after = {send(from, position(*chip), inside(box.gpus[at], *chip), flow, size, {}, 0, after)};
      from = position(*chip);
    }
    for (std::size_t g = 0; g < box.gpus.size(); ++g) {
      if (g == at && !chip) continue;
      send(from, box.ranks[g], inside(chip ? *chip : box.gpus[at], box.gpus[g]), flow, size, {}, 0, after);
    }
  }

  const topology::Router& router_;
  const topology::Topology& topology_;
  const Placement& placement_;
  const Timing timing_;
  const bool over_boxes_, nvls_;
  SumTrees trees_;
  const int heads_;
  StepBuilder plan_;
  std::vector<DeviceId> devices_;
  std::map<DeviceId, std::uint32_t> position_;
  std::vector<std::vector<LinkId>> ways_;
  std::map<std::tuple<std::uint32_t, std::uint32_t, int>, std::uint32_t> way_of_;
  std::map<std::tuple<std::uint32_t, std::uint32_t, int>, std::uint32_t> last_of_;  // a source's last piece
  std::map<std::pair<DeviceId, DeviceId>, SumWay> inside_;
};
}  // namespace

StepPlan sum_steps(const topology::Router& router, std::int64_t bytes, const Choice& choice,
                   const Placement& placement, const Timing& timing) {
  return SumSteps(router, choice, placement, timing).build(bytes);
}
}  // namespace topsim::collective
