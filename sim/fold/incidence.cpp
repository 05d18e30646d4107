#include "sim/fold/incidence.hpp"

#include <algorithm>
#include <bit>

namespace topsim::fold {
namespace {

constexpr std::uint32_t kNone = System::kNone;
// The label of an edge to a member is kRole plus its role, that of an edge to a link the number of a way.
constexpr std::uint32_t kRole = 0x80000000U;

}  // namespace

RankColours::RankColours(const program::Program& program, const topology::Topology& topology,
                         const FoldOptions& options)
    : slowdown_(program.ranks, 1.0), colours_(program.ranks) {
  for (const auto& [rank, factor] : options.slow_ranks) slowdown_[rank.index()] *= factor;
  for (std::uint32_t r = 0; r < program.ranks; ++r) {
    const Colour kind = topology.device(topology.accelerators()[r]).model;
    colours_[r] = mix(mix(program.class_of_rank[r], kind), std::bit_cast<std::uint64_t>(slowdown_[r]));
  }
  // Mixed in turn, not added: a rank that changes twice must not look like another that changes once.
  for (const RankId rank : options.marked_ranks)
    colours_[rank.index()] = mix(colours_[rank.index()], rank.value + 1);
}

Incidence::Incidence(const program::Program& program, const topology::Topology& topology,
                     const FoldOptions& options, const std::vector<Group>& groups, const RankColours& ranks,
                     const Alike& alike)
    : program_(program),
      topology_(topology),
      options_(options),
      groups_(groups),
      alike_(alike),
      item_of_slot_(alike.slots_of_links(), kNone) {
  for (const Alike::Class& slot : alike.ranks()) graph_.add(ranks[RankId(slot.first)], slot.count);
  for (const Alike::Class& group : alike.groups()) graph_.add(0, group.count);
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
  std::uint32_t& item = item_of_slot_[alike_.slot(link)];
  if (item == kNone) {
    const topology::Link& what = topology_.link(link);
    Colour colour = std::bit_cast<std::uint64_t>(what.capacity.value());
    // How much flows lose by contention depends on the kind of port (sim/executor/contention.hpp).
    colour = mix(colour, static_cast<Colour>(topology_.device(what.from).kind) << 8 |
                             static_cast<Colour>(topology_.device(what.to).kind));
    colour = mix(colour, what.type);
    for (const auto& [marked, mark] : options_.marked_links) {
      if (marked == link) colour = mix(colour, mark + 1);
    }
    item = graph_.add(mix(colour, 0x11), alike_.weight(link));
    links_.push_back(link);
  }
  return item;
}

void Incidence::add_all_links() {
  for (std::size_t l = 0; l < topology_.links().size(); ++l) link_item(LinkId(l));
}

Colour Incidence::colour(const Group& group, std::span<const collective::LoweredCalls::Call> calls) {
  Colour colour = mix(static_cast<Colour>(group.dimension), group.slot);
  for (std::size_t s = 0; s < calls.size(); ++s) {
    const auto& [a, choice, way] = calls[s];
    const CallShape& call = (*group.calls)[s];
    const Colour chosen = static_cast<Colour>(choice.algorithm) << 40 |
                          static_cast<Colour>(choice.protocol) << 32 | choice.channels;
    colour = mix(mix(colour, chosen), static_cast<Colour>(choice.model_time.count()));
    colour = mix(colour, static_cast<Colour>(a.ctas));
    colour = mix(mix(colour, std::bit_cast<std::uint64_t>(a.memory_traffic)),
                 std::bit_cast<std::uint64_t>(a.bus_factor));
    colour =
        mix(mix(colour, static_cast<Colour>(a.latency.count())), std::bit_cast<std::uint64_t>(a.cap.value()));
    colour = mix(mix(colour, std::bit_cast<std::uint64_t>(a.weight)), static_cast<Colour>(call.bytes));
    colour = mix(mix(colour, static_cast<Colour>(call.kind)), way);
  }
  return colour;
}

void Incidence::add(std::uint32_t group_class, const collective::LoweredCalls& lowered) {
  const Group& group = groups_[alike_.groups()[group_class].first];
  const std::uint32_t item = item_of_group(group_class);
  graph_.recolour(item, mix(colour(group, lowered.calls), 0x22));
  for_each_member(program_, group, [&](RankId rank, std::uint32_t role) {
    graph_.connect(item, alike_.slot(rank), label(kRole | role, 0));
  });
  connect(item, *group.calls, lowered, 0);
}

// Adds every way of the calls that loads links.
void Incidence::connect(std::uint32_t item, const std::vector<CallShape>& calls,
                        const collective::LoweredCalls& lowered, std::uint32_t first_way) {
  std::vector<bool> used(lowered.ways.size());
  for (std::size_t s = 0; s < lowered.calls.size(); ++s)
    if (moves_data(calls[s])) used[lowered.calls[s].way] = true;
  for (std::uint32_t way = 0; way < used.size(); ++way) {
    if (!used[way]) continue;
    for (const topology::LinkShare& use : lowered.ways[way])
      graph_.connect(item, link_item(use.link), label(first_way + way, use.share));
  }
}

void Incidence::add(std::uint32_t group_class, const std::vector<Detours::Other>& detours) {
  const Group& group = groups_[alike_.groups()[group_class].first];
  const std::uint32_t item = item_of_group(group_class);
  for (std::uint32_t d = 0; d < detours.size(); ++d) {
    const Detours::Other& other = detours[d];
    if (other.same) continue;
    Colour colour = mix(graph_.colour(item), mix(d, other.cut.empty() ? 1 : 2));
    for (const auto& call : other.lowered.calls)
      colour = mix(mix(colour, static_cast<Colour>(call.activity.latency.count())), call.way);
    graph_.recolour(item, colour);
    if (other.cut.empty()) connect(item, *group.calls, other.lowered, way_on(d, 0));
  }
}

void Incidence::add(std::uint32_t group_class, const std::vector<Side>& sides) {
  const std::uint32_t item = item_of_group(group_class);
  graph_.recolour(item, mix(alike_.groups()[group_class].colour, 0x22));
  ends_.clear();
  for (const Side& side : sides) {
    if (side.link.valid())
      ends_.push_back({link_item(side.link), label(side.way, side.coefficient), side.count});
    else
      ends_.push_back({side.slot, label(kRole | side.way, 0), side.count});
  }
  std::sort(ends_.begin(), ends_.end(), [](const End& a, const End& b) {
    return std::pair(a.item, a.label) < std::pair(b.item, b.label);
  });
  for (std::size_t i = 0; i < ends_.size();) {
    const End& first = ends_[i];
    std::uint32_t count = 0;
    for (; i < ends_.size() && ends_[i].item == first.item && ends_[i].label == first.label; ++i)
      count += ends_[i].count;
    graph_.connect(item, first.item, first.label, count);
  }
}
}  // namespace topsim::fold
