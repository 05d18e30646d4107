#include "sim/fold/sketcher.hpp"

#include <tuple>

#include "sim/fold/incidence.hpp"

namespace topsim::fold {
namespace {
// Visits the ways of calls that move data, each with a mark that distinguishes its uses.
template <class Take>
void for_each_way(const Group& group, const collective::SketchedCalls& sketched, std::vector<bool>& used,
                  const Take& take) {
  used.assign(sketched.ways.size(), false);
  for (std::size_t s = 0; s < sketched.calls.size(); ++s)
    if (Incidence::moves_data((*group.calls)[s])) used[sketched.calls[s].way] = true;
  for (std::uint32_t way = 0; way < used.size(); ++way) {
    if (!used[way]) continue;
    const double wire = sketched.ways[way].wire;
    take(sketched.routes[sketched.ways[way].route], way, wire, mix(way, std::bit_cast<std::uint64_t>(wire)));
  }
}

// The label of one use; sums of labels stand for multisets, as in refinement.
Colour label_of(std::uint32_t at, double share, Colour mark) {
  return mix(at, mark + std::bit_cast<std::uint64_t>(share)) | 1;  // never zero
}

// Merges equal uses of a place and counts them; sorts the members.
void order(CellPattern& pattern) {
  std::sort(pattern.members.begin(), pattern.members.end());
  auto& uses = pattern.uses;
  const auto what = [](const CellPattern::Use& use) { return std::tie(use.way, use.at, use.share); };
  std::sort(uses.begin(), uses.end(), [&](const auto& a, const auto& b) { return what(a) < what(b); });
  std::size_t kept = 0;
  for (const CellPattern::Use& use : uses) {
    if (kept > 0 && what(uses[kept - 1]) == what(use))
      ++uses[kept - 1].times;
    else
      uses[kept++] = use;
  }
  uses.resize(kept);
}
}  // namespace

void TripLabels::add(const Trip& trip) {
  Known& known = known_.emplace_back(Known{trip.what, trip.coefficient, {}});
  for (const auto& stop : trip.what->stops) {
    const auto same = [&](const Sum& sum) {
      return sum.kind == stop.kind && sum.there == stop.there && sum.of == stop.of;
    };
    auto sum = std::find_if(known.sums.begin(), known.sums.end(), same);
    if (sum == known.sums.end()) sum = known.sums.insert(sum, {stop.kind, stop.there, stop.of, 0});
    sum->label += label_of(stop.at, stop.share * trip.coefficient, mark_);
  }
}

// Sums of mixed values stand for multisets, as in refinement.
GroupSketch Sketcher::operator()(const Group& group) {
  Scratch& scratch = scratch_.local();
  collective::SketchedCalls sketched = lowering_.sketch(group);
  GroupSketch sketch;
  const RankId first =
      group.is_communicator() ? program_.members_of(CommunicatorId(group.communicator)).front() : group.from;
  // Outside a site only what stays inside a node is regular.
  const bool sites = router_.standing(cell_of(first)).site != topology::Router::kNowhere;
  sketch.colour = Incidence::colour(group, sketched.calls);
  for_each_member(program_, group, [&](RankId rank, std::uint32_t role) {
    scratch.add(cell_of(rank), mix(router_.place_of(lowering_.device(rank)), role) | 1);
  });
  for_each_way(group, sketched, scratch.used, [&](const auto& route, std::uint32_t, double, Colour mark) {
    for (const collective::SketchedCalls::Use& use : route.uses) {
      const auto [cell, at] = router_.place(use.stretch);
      scratch.add(cell, label_of(at, use.share, mark));
      sketch.regular = sketch.regular && (sites || use.stretch.index() >= router_.topology().links().size() ||
                                          router_.place_of(use.stretch, cell).has_value());
    }
    scratch.trips.begin(mark);
    for (const TripLabels::Trip& trip : route.trips)
      for (const TripLabels::Sum& sum : scratch.trips(trip)) scratch.add(cell_of(sum, trip), sum.label);
  });
  sketch.parts.reserve(scratch.touched.size());
  for (const std::uint32_t cell : scratch.touched) {
    const Colour label = scratch.label[cell];
    sketch.parts.push_back({cell, label});
    if (scratch.known.insert(label).second) scratch.patterns.try_emplace(cell);
    scratch.label[cell] = 0;
  }
  scratch.touched.clear();
  if (!scratch.patterns.empty()) learn(group, sketched, sketch, scratch);
  sketch.calls = std::move(sketched.calls);
  return sketch;
}

// Labels are sums, so their meaning is kept: the contents of the first cell that has the label.
void Sketcher::learn(const Group& group, const collective::SketchedCalls& sketched, const GroupSketch& sketch,
                     Scratch& scratch) {
  for_each_member(program_, group, [&](RankId rank, std::uint32_t role) {
    const auto fresh = scratch.patterns.find(cell_of(rank));
    if (fresh != scratch.patterns.end())
      fresh->second.members.emplace_back(router_.place_of(lowering_.device(rank)), role);
  });
  for (const auto& each : scratch.patterns) scratch.label[each.first] = 1;
  for_each_way(group, sketched, scratch.used,
               [&](const auto& route, std::uint32_t way, double wire, Colour mark) {
                 const auto use = [&](std::uint32_t cell, std::uint32_t at, double share) {
                   scratch.patterns.at(cell).uses.push_back({way, at, 1, share, wire});
                 };
                 for (const collective::SketchedCalls::Use& each : route.uses) {
                   const auto [cell, at] = router_.place(each.stretch);
                   if (scratch.label[cell] != 0) use(cell, at, each.share);
                 }
                 scratch.trips.begin(mark);
                 for (const TripLabels::Trip& trip : route.trips)
                   for (const TripLabels::Sum& sum : scratch.trips(trip)) {
                     const std::uint32_t cell = cell_of(sum, trip);
                     if (scratch.label[cell] == 0) continue;
                     for (const auto& stop : trip.what->stops)
                       if (stop.kind == sum.kind && stop.there == sum.there && stop.of == sum.of)
                         use(cell, stop.at, stop.share * trip.coefficient);
                   }
               });
  for (auto& [cell, pattern] : scratch.patterns) {
    scratch.label[cell] = 0;
    order(pattern);
  }
  const std::lock_guard lock(mutex_);
  for (const GroupSketch::Part& part : sketch.parts) {
    const auto fresh = scratch.patterns.find(part.cell);
    if (fresh != scratch.patterns.end()) patterns_.try_emplace(part.label, std::move(fresh->second));
  }
  scratch.patterns.clear();
}
}  // namespace topsim::fold
