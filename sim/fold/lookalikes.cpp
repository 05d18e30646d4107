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
    // All-to-all numbers its connections by device, and NICs that are shared go round by connection.
    const std::uint32_t turn = device.value % turns;
    seats_.push_back({router.topology().device(device).node, router.place_of(device) * turns + turn});
  }
  for (std::uint32_t node = 0; node < router.topology().nodes(); ++node)
    standings_.push_back(router.standing(node));
}

void Lookalikes::begin_block() {
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
  for (std::size_t k = 0; k < kKinds; ++k) {
    begin_[k].push_back(met_[k].size());
    ordinals_[k].begin(&met_[k]);
  }
  if (!describe(group)) return {kNone, true};
  const auto [entry, fresh] = known_.try_emplace(key_, static_cast<std::uint32_t>(faces_.size()));
  if (fresh) faces_.emplace_back();
  return {entry->second, fresh};
}

// Writes the key: everything that a sketch follows from, with ordinals for numbers.
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

void Lookalikes::learn(std::uint32_t like, std::size_t met, Colour colour, std::span<const CellPart> parts) {
  Face& face = faces_[like];
  face.colour = colour;
  face.parts.clear();
  std::uint32_t counts[kKinds];
  std::vector<std::uint32_t> again;  // numbers get the ordinals that they had
  for (std::size_t k = 0; k < kKinds; ++k) {
    const std::size_t end = met + 1 < begin_[k].size() ? begin_[k][met + 1] : met_[k].size();
    again.clear();
    ordinals_[k].begin(&again);
    for (std::size_t i = begin_[k][met]; i < end; ++i) static_cast<void>(ordinals_[k](met_[k][i]));
    counts[k] = ordinals_[k].count();
    for (const CellPart& part : parts) {
      const topology::Router::Owner owner = router_.owner(part.cell);
      if (owner.kind == Kind::nobody) return;
      if (static_cast<std::size_t>(owner.kind) != k) continue;
      const std::uint32_t ordinal = ordinals_[k](owner.number);
      if (ordinal >= counts[k]) return;  // of none of its members
      face.parts.push_back({owner.kind, ordinal, owner.at, part.label});
    }
  }
  face.known = true;
}

void Lookalikes::parts(std::uint32_t like, std::size_t met, std::vector<CellPart>& out) const {
  out.clear();
  for (const Part& part : faces_[like].parts) {
    const auto k = static_cast<std::size_t>(part.kind);
    const std::uint32_t number = met_[k][begin_[k][met] + part.ordinal];
    out.push_back(
        {part.kind == Kind::node ? number : router_.cell({part.kind, number, part.at}), part.label});
  }
}
}  // namespace topsim::fold
