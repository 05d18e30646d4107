#include "sim/fold/lookalikes.hpp"

#include <algorithm>

namespace topsim::fold {

Lookalikes::Lookalikes(const program::Program& program, const topology::Router& router,
                       const GroupLowering& lowering)
    : program_(program), router_(router) {
  for (const std::size_t numbers :
       {std::size_t{router.topology().nodes()}, std::size_t{router.sites()}, std::size_t{router.regions()}})
    ordinals_.emplace_back(numbers);
  const std::uint32_t turns = router.turns();
  for (std::uint32_t r = 0; r < program.ranks; ++r) {
    const DeviceId device = lowering.device(RankId(r));
    // All-to-all numbers its connections by device, and shared NICs are assigned in turn by connection.
    const std::uint32_t turn = device.value % turns;
    seats_.push_back({router.topology().device(device).node, router.place_of(device) * turns + turn});
  }
  for (std::uint32_t node = 0; node < router.topology().nodes(); ++node)
    standings_.push_back(router.standing(node));
}

void Lookalikes::begin_block() {
  last_ = {};
  last_edge_ = {};
  where_.clear();
  for (std::size_t k = 0; k < kKinds; ++k) met_[k].clear(), begin_[k].clear();
}

std::uint32_t Lookalikes::number_of(const std::vector<CallShape>* calls) {
  if (calls == last_calls_) return last_number_;
  const auto [entry, fresh] = number_of_calls_.try_emplace(calls, 0);
  last_calls_ = calls;
  if (!fresh) return last_number_ = entry->second;
  const auto same = [&](const std::vector<CallShape>* other) { return *other == *calls; };
  const auto at = std::find_if(calls_.begin(), calls_.end(), same);
  entry->second = static_cast<std::uint32_t>(at - calls_.begin());
  if (at == calls_.end()) calls_.push_back(calls);
  return last_number_ = entry->second;
}

Lookalikes::Meeting Lookalikes::meet(const Group& group) {
  if (group.to.valid()) return meet_edge(group);
  last_edge_ = {};
  return describe(group) ? meet_described() : Meeting{kNone, true};
}

// Edges between two nodes follow each other, one per place: the kind that followed a kind once mostly follows
// it again.
Lookalikes::Meeting Lookalikes::meet_edge(const Group& group) {
  const Seat &from = seats_[group.from.index()], &to = seats_[group.to.index()];
  Edge edge{kNone, from.node, to.node, group.slot, group.dimension, group.calls};
  const std::uint32_t before = last_edge_.like;
  const bool beside = before != kNone && edge.beside(last_edge_);
  if (beside && next_[before].like != kNone && next_[before].from == from.place &&
      next_[before].to == to.place) {
    where_.push_back(where_.back());
    last_edge_.like = next_[before].like;
    return {last_edge_.like, false};
  }
  const Meeting meeting = describe_edge(group) ? meet_described() : Meeting{kNone, true};
  if (beside && meeting.like != kNone) next_[before] = {from.place, to.place, meeting.like};
  edge.like = meeting.like;
  last_edge_ = edge;
  return meeting;
}

Lookalikes::Meeting Lookalikes::meet_described() {
  const auto [entry, fresh] = known_.try_emplace(key_, static_cast<std::uint32_t>(representatives_.size()));
  if (fresh) {
    representatives_.emplace_back();
    next_.emplace_back();
  }
  return {entry->second, fresh};
}

void Lookalikes::meet_others() {
  where_.push_back(static_cast<std::uint32_t>(begin_[0].size()));
  for (std::size_t k = 0; k < kKinds; ++k) begin_[k].push_back(met_[k].size());
}

// Writes the key: everything that determines a sketch, with numbers replaced by ordinals of first occurrence.
bool Lookalikes::describe(const Group& group) {
  constexpr std::size_t kHead = 4, kMember = 5;  // words
  const std::size_t members =
      group.is_communicator() ? program_.members_of(CommunicatorId(group.communicator)).size() : 2;
  key_.resize(kHead + kMember * members);
  auto word = key_.begin();
  *word++ = static_cast<std::uint32_t>(group.dimension);
  *word++ = group.slot;
  *word++ = number_of(group.calls);
  *word++ = group.is_communicator() ? 1 : 0;
  meet_others();
  for (std::size_t k = 0; k < kKinds; ++k) ordinals_[k].begin(&met_[k]);
  bool regular = true;
  Ordinals &nodes = ordinals_[0], &sites = ordinals_[1], &regions = ordinals_[2];
  for_each_member(program_, group, [&](RankId rank, std::uint32_t) {
    const auto [node, place] = seats_[rank.index()];
    const std::uint32_t before = nodes.count(), ordinal = nodes(node);
    *word++ = ordinal;
    *word++ = place;
    if (ordinal < before) return;
    const topology::Router::Standing& standing = standings_[node];
    constexpr std::uint32_t kNowhere = topology::Router::kNowhere;
    regular = regular && standing.site != kNowhere;
    *word++ = standing.kind;
    *word++ = regular ? sites(standing.site) : kNowhere;
    *word++ = regular && standing.region != kNowhere ? regions(standing.region) : kNowhere;
  });
  key_.erase(word, key_.end());
  return regular || nodes.count() == 1;
}

// The same for an edge, the most frequent group: what its two members have in common says everything.
bool Lookalikes::describe_edge(const Group& group) {
  constexpr std::uint32_t kNowhere = topology::Router::kNowhere, kEdge = 2;
  const Seat &from = seats_[group.from.index()], &to = seats_[group.to.index()];
  const bool same_node = from.node == to.node;
  const topology::Router::Standing &a = standings_[from.node], &b = standings_[to.node];
  const bool regular = a.site != kNowhere && b.site != kNowhere;
  const std::uint32_t alike = (same_node ? 1U : 0U) | (regular ? 2U : 0U) | (a.site == b.site ? 4U : 0U) |
                              (a.region == b.region ? 8U : 0U) | (a.region == kNowhere ? 16U : 0U) |
                              (b.region == kNowhere ? 32U : 0U);
  key_.assign({static_cast<std::uint32_t>(group.dimension), group.slot, number_of(group.calls), kEdge,
               from.place, to.place, a.kind, b.kind, alike});
  meet_others();
  const auto meet = [](std::vector<std::uint32_t>& met, std::uint32_t first, std::uint32_t second) {
    if (first != kNowhere) met.push_back(first);
    if (second != kNowhere && second != first) met.push_back(second);
  };
  meet(met_[0], from.node, to.node);
  if (regular) {
    meet(met_[1], a.site, b.site);
    meet(met_[2], a.region, b.region);
  }
  return regular || same_node;
}

void Lookalikes::learn(std::uint32_t like, std::size_t met, Colour colour, std::span<const CellPart> parts) {
  Representative& representative = representatives_[like];
  representative.colour = colour;
  representative.parts.clear();
  std::uint32_t counts[kKinds];
  std::vector<std::uint32_t> again;  // numbers get the ordinals that they had in the key
  Layout layout;
  for (std::size_t k = 0; k < kKinds; ++k) {
    again.clear();
    ordinals_[k].begin(&again);
    for (const std::uint32_t number : numbers(k, met)) static_cast<void>(ordinals_[k](number));
    counts[k] = ordinals_[k].count();
    for (const CellPart& part : parts) {
      const topology::Router::Owner owner = router_.owner(part.cell);
      if (owner.kind == Kind::nobody) return;
      if (static_cast<std::size_t>(owner.kind) != k) continue;
      const std::uint32_t ordinal = ordinals_[k](owner.number);
      if (ordinal >= counts[k]) return;  // belongs to none of its members
      representative.parts.push_back({owner.kind, ordinal, owner.at, part.label});
      layout.push_back({static_cast<std::uint32_t>(k), ordinal, owner.at});
    }
  }
  const auto number = static_cast<std::uint32_t>(layouts_.size());
  representative.layout = layouts_.try_emplace(std::move(layout), number).first->second;
  representative.known = true;
}

std::span<const std::uint32_t> Lookalikes::numbers(std::size_t kind, std::size_t met) const {
  const std::vector<std::size_t>& begin = begin_[kind];
  const std::size_t at = where_[met], end = at + 1 < begin.size() ? begin[at + 1] : met_[kind].size();
  return std::span(met_[kind]).subspan(begin[at], end - begin[at]);
}

std::span<const CellPart> Lookalikes::parts(std::uint32_t like, std::size_t met) {
  const Representative& representative = representatives_[like];
  // Consecutive edges between two nodes mostly touch the same cells.
  bool same = representative.layout == last_.layout;
  for (std::size_t k = 0; k < kKinds && same && where_[met] != where_[last_.met]; ++k) {
    const auto now = numbers(k, met), before = numbers(k, last_.met);
    same = std::equal(now.begin(), now.end(), before.begin(), before.end());
  }
  last_.met = met;
  last_.layout = representative.layout;
  if (!same) last_.parts.resize(representative.parts.size());
  const std::span<CellPart> parts(last_.parts);
  for (std::size_t p = 0; p < parts.size(); ++p) parts[p].label = representative.parts[p].label;
  for (std::size_t p = 0; p < parts.size() && !same; ++p) {
    const Part& part = representative.parts[p];
    const std::uint32_t number = numbers(static_cast<std::size_t>(part.kind), met)[part.ordinal];
    parts[p].cell = part.kind == Kind::node ? number : router_.cell({part.kind, number, part.at});
  }
  return parts;
}
}  // namespace topsim::fold
