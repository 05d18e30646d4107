#include "sim/fold/lookalikes.hpp"

#include <algorithm>

namespace topsim::fold {

Lookalikes::Lookalikes(const program::Program& program, const topology::Router& router,
                       const GroupLowering& lowering)
    : program_(program), router_(router), lowering_(lowering) {
  for (const std::size_t numbers :
       {std::size_t{router.topology().nodes()}, std::size_t{router.sites()}, std::size_t{router.regions()}})
    ordinals_.emplace_back(numbers);
}

void Lookalikes::begin_block() {
  for (std::size_t k = 0; k < kKinds; ++k) met_[k].clear(), begin_[k].clear();
}

std::uint32_t Lookalikes::number_of(const std::vector<CallShape>* calls) {
  const auto [entry, fresh] = number_of_calls_.try_emplace(calls, 0);
  if (!fresh) return entry->second;
  const auto same = [&](const std::vector<CallShape>* other) { return *other == *calls; };
  const auto at = std::find_if(calls_.begin(), calls_.end(), same);
  entry->second = static_cast<std::uint32_t>(at - calls_.begin());
  if (at == calls_.end()) calls_.push_back(calls);
  return entry->second;
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
  key_.assign({static_cast<std::uint32_t>(group.dimension), group.slot, number_of(group.calls),
               group.is_communicator() ? 1U : 0U});
  bool regular = true;
  const topology::Topology& topology = router_.topology();
  Ordinals &nodes = ordinals_[0], &sites = ordinals_[1], &regions = ordinals_[2];
  for_each_member(program_, group, [&](RankId rank, std::uint32_t) {
    const DeviceId device = lowering_.device(rank);
    const std::uint32_t node = topology.device(device).node, before = nodes.count();
    const std::uint32_t ordinal = nodes(node);
    key_.push_back(ordinal);
    key_.push_back(router_.place_of(device));
    if (ordinal < before) return;
    const topology::Router::Standing standing = router_.standing(node);
    key_.push_back(standing.kind);
    if (standing.site == topology::Router::kNowhere) {
      regular = false;
      return;
    }
    key_.push_back(sites(standing.site));
    key_.push_back(standing.region == topology::Router::kNowhere ? kNone : regions(standing.region));
  });
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
