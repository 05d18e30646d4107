#include "sim/fold/incidence.hpp"

#include <bit>

namespace topsim::fold {
namespace {

constexpr std::uint32_t kNone = System::kNone;
// Labels of memberships, beside which those of links are small numbers.
constexpr std::uint32_t kMember = 0x80000000U, kSender = 0x80010000U, kReceiver = 0x40000000U;

}  // namespace

Incidence::Incidence(const program::Program& program, const topology::Topology& topology,
                     const FoldOptions& options, const std::vector<Group>& groups)
    : program_(program),
      topology_(topology),
      options_(options),
      groups_(groups),
      ranks_(program.ranks),
      slowdown_(program.ranks, 1.0),
      item_of_link_(topology.links().size(), kNone) {
  for (const auto& [rank, factor] : options.slow_ranks) slowdown_[rank.index()] = factor;
  std::vector<Colour> mark(program.ranks, 0);
  for (const RankId rank : options.marked_ranks) mark[rank.index()] = rank.value + 1;
  for (std::uint32_t r = 0; r < program.ranks; ++r) {
    const Colour kind = topology.device(topology.accelerators()[r]).model;
    graph_.add(mix(mix(program.class_of_rank[r], kind), std::bit_cast<std::uint64_t>(slowdown_[r])) +
               mark[r]);
  }
  for (std::size_t g = 0; g < groups.size(); ++g) graph_.add(0);
}

std::uint32_t Incidence::label(std::uint32_t way, double coefficient) {
  const auto key = std::pair(way, std::bit_cast<std::uint64_t>(coefficient));
  if (!shares_.empty() && key == last_key_) return last_label_;
  last_key_ = key;
  last_label_ = labels_.try_emplace(key, static_cast<std::uint32_t>(labels_.size())).first->second;
  if (last_label_ == shares_.size()) shares_.push_back({way, coefficient});
  return last_label_;
}

std::uint32_t Incidence::link_item(LinkId link) {
  std::uint32_t& item = item_of_link_[link.index()];
  if (item == kNone) {
    const topology::Link& what = topology_.link(link);
    Colour colour = std::bit_cast<std::uint64_t>(what.capacity.value());
    // What flows lose where they meet differs by the kind of port (sim/executor/contention.hpp).
    colour = mix(colour, static_cast<Colour>(topology_.device(what.from).kind) << 8 |
                             static_cast<Colour>(topology_.device(what.to).kind));
    colour = mix(colour, what.type);
    for (const auto& [marked, mark] : options_.marked_links) {
      if (marked == link) colour = mix(colour, mark + 1);
    }
    item = graph_.add(mix(colour, 0x11));
    links_.push_back(link);
  }
  return item;
}

void Incidence::add_all_links() {
  for (std::size_t l = 0; l < topology_.links().size(); ++l) link_item(LinkId(l));
}

void Incidence::add(std::uint32_t g, const collective::LoweredCalls& lowered) {
  const Group& group = groups_[g];
  const std::uint32_t item = item_of_group(g);
  Colour colour = mix(static_cast<Colour>(group.dimension), group.slot);
  std::vector<bool> used(lowered.ways.size());
  for (std::size_t s = 0; s < lowered.calls.size(); ++s) {
    const auto& [a, choice, way] = lowered.calls[s];
    const CallShape& call = (*group.calls)[s];
    colour =
        mix(mix(colour, static_cast<Colour>(a.latency.count())), std::bit_cast<std::uint64_t>(a.cap.value()));
    colour = mix(mix(colour, std::bit_cast<std::uint64_t>(a.weight)), static_cast<Colour>(call.bytes));
    colour = mix(mix(colour, static_cast<Colour>(call.kind)), way);
    if (moves_data(call)) used[way] = true;
  }
  graph_.recolour(item, mix(colour, 0x22));
  if (group.is_communicator()) {
    for (const RankId r : program_.members_of(CommunicatorId(group.communicator)))
      graph_.connect(r.value, item, kMember | group.slot);
  } else {
    graph_.connect(group.from.value, item, kSender | group.slot);
    if (group.to.valid()) graph_.connect(group.to.value, item, kReceiver | group.slot);
  }
  for (std::uint32_t way = 0; way < used.size(); ++way) {
    if (!used[way]) continue;
    for (const topology::LinkShare& use : lowered.ways[way])
      graph_.connect(item, link_item(use.link), label(way, use.share));
  }
}
}  // namespace topsim::fold
