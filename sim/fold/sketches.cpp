#include "sim/fold/sketches.hpp"

#include <oneapi/tbb/enumerable_thread_specific.h>

#include <algorithm>
#include <array>
#include <bit>
#include <mutex>
#include <tuple>
#include <unordered_map>
#include <unordered_set>

#include "sim/base/mix.hpp"
#include "sim/base/parallel.hpp"
#include "sim/fold/incidence.hpp"
#include "sim/fold/lookalikes.hpp"

namespace topsim::fold {
namespace {

// What one group does, cell by cell.
struct Traits {
  Colour colour = 0;
  Sketches::Calls calls;
  struct Part {
    std::uint32_t cell;
    Colour label;
  };
  std::vector<Part> parts;
  // Nothing that hangs on more than where its members stand (Router::standing).
  bool regular = true;
};

// The ways of calls that move data, with what tells their uses apart.
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

// Of one use; sums of them stand for multisets, as in refinement.
Colour label_of(std::uint32_t at, double share, Colour mark) {
  return mix(at, mark + std::bit_cast<std::uint64_t>(share)) | 1;  // never nothing
}

// What trips of one kind and coefficient add to the labels of cells, all stops in one of them together.
class TripLabels {
 public:
  using Trip = collective::SketchedCalls::Trip;
  struct Sum {
    topology::Router::Owner::Kind kind;
    bool there;
    std::uint32_t of;
    Colour label;
  };
  void begin(Colour mark) {
    mark_ = mark;
    known_.clear();
    slots_.fill(0);
  }
  // Valid until the next one is asked for.
  std::span<const Sum> operator()(const Trip& trip) {
    std::size_t& slot = slots_[slot_of(trip)];
    if (slot >= known_.size() || !known_[slot].is(trip)) {
      slot = static_cast<std::size_t>(
          std::find_if(known_.begin(), known_.end(), [&](const Known& k) { return k.is(trip); }) -
          known_.begin());
      if (slot == known_.size()) add(trip);
    }
    return known_[slot].sums;
  }

 private:
  struct Known {
    const topology::Router::Trip* what;
    double coefficient;
    std::vector<Sum> sums;
    [[nodiscard]] bool is(const Trip& trip) const {
      return what == trip.what && coefficient == trip.coefficient;
    }
  };
  static constexpr std::size_t kSlots = 64;
  [[nodiscard]] static std::size_t slot_of(const Trip& trip) {
    const Colour hash = std::bit_cast<std::uintptr_t>(trip.what) ^ std::bit_cast<Colour>(trip.coefficient);
    return (hash * kGoldenGamma) >> 58;
  }
  void add(const Trip& trip) {
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

  Colour mark_ = 0;
  std::vector<Known> known_;
  std::array<std::size_t, kSlots> slots_{};  // of known_, to find most at once
};

// Same uses of one place follow each other, counted; members come in order.
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

// One group at a time.
class Sketcher {
 public:
  Sketcher(const program::Program& program, const topology::Router& router, const GroupLowering& lowering)
      : program_(program),
        router_(router),
        lowering_(lowering),
        scratch_([&router] { return Scratch{std::vector<Colour>(router.cells(), 0), {}, {}, {}, {}, {}}; }) {}

  // Thread-safe.
  Traits operator()(const Group& group);

  // What a label that some sketch has given stands for.
  CellPattern take_pattern(Colour label) { return std::move(patterns_.at(label)); }

 private:
  struct Scratch {
    std::vector<Colour> label;  // by cell
    std::vector<std::uint32_t> touched;
    std::vector<bool> used;                                   // by way
    std::unordered_set<Colour> known;                         // labels whose patterns are kept
    std::unordered_map<std::uint32_t, CellPattern> patterns;  // new ones, by cell
    TripLabels trips;
    void add(std::uint32_t cell, Colour what) {
      if (label[cell] == 0) touched.push_back(cell);
      label[cell] += what;
    }
  };
  [[nodiscard]] std::uint32_t cell_of(RankId rank) const {
    return router_.topology().device(lowering_.device(rank)).node;
  }

  [[nodiscard]] std::uint32_t cell_of(const TripLabels::Sum& sum, const TripLabels::Trip& trip) const {
    using Kind = topology::Router::Owner::Kind;
    const std::uint32_t node = sum.there ? trip.to : trip.from;
    if (sum.kind == Kind::node) return node;
    const topology::Router::Standing standing = router_.standing(node);
    return router_.cell({sum.kind, sum.kind == Kind::site ? standing.site : standing.region, sum.of});
  }
  void learn(const Group& group, const collective::SketchedCalls& sketched, const Traits& traits,
             Scratch& scratch);

  const program::Program& program_;
  const topology::Router& router_;
  const GroupLowering& lowering_;
  oneapi::tbb::enumerable_thread_specific<Scratch> scratch_;
  std::mutex mutex_;
  std::unordered_map<Colour, CellPattern> patterns_;
};

// Sums of mixes stand for multisets, as in refinement.
Traits Sketcher::operator()(const Group& group) {
  Scratch& scratch = scratch_.local();
  collective::SketchedCalls sketched = lowering_.sketch(group);
  Traits traits;
  const RankId first =
      group.is_communicator() ? program_.members_of(CommunicatorId(group.communicator)).front() : group.from;
  // Beyond such sites only what stays inside a node.
  const bool sites = router_.standing(cell_of(first)).site != topology::Router::kNowhere;
  traits.colour = Incidence::colour(group, sketched.calls);
  for_each_member(program_, group, [&](RankId rank, std::uint32_t role) {
    scratch.add(cell_of(rank), mix(router_.place_of(lowering_.device(rank)), role) | 1);
  });
  for_each_way(group, sketched, scratch.used, [&](const auto& route, std::uint32_t, double, Colour mark) {
    for (const collective::SketchedCalls::Use& use : route.uses) {
      const auto [cell, at] = router_.place(use.stretch);
      scratch.add(cell, label_of(at, use.share, mark));
      traits.regular = traits.regular && (sites || use.stretch.index() >= router_.topology().links().size() ||
                                          router_.place_of(use.stretch, cell).has_value());
    }
    scratch.trips.begin(mark);
    for (const TripLabels::Trip& trip : route.trips)
      for (const TripLabels::Sum& sum : scratch.trips(trip)) scratch.add(cell_of(sum, trip), sum.label);
  });
  traits.parts.reserve(scratch.touched.size());
  for (const std::uint32_t cell : scratch.touched) {
    const Colour label = scratch.label[cell];
    traits.parts.push_back({cell, label});
    if (scratch.known.insert(label).second) scratch.patterns.try_emplace(cell);
    scratch.label[cell] = 0;
  }
  scratch.touched.clear();
  if (!scratch.patterns.empty()) learn(group, sketched, traits, scratch);
  traits.calls = std::move(sketched.calls);
  return traits;
}

// Labels are sums: what they stand for is kept of the first cell that has one.
void Sketcher::learn(const Group& group, const collective::SketchedCalls& sketched, const Traits& traits,
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
  for (const Traits::Part& part : traits.parts) {
    const auto fresh = scratch.patterns.find(part.cell);
    if (fresh != scratch.patterns.end()) patterns_.try_emplace(part.label, std::move(fresh->second));
  }
  scratch.patterns.clear();
}

}  // namespace

struct Sketches::Impl {
  Impl(const program::Program& program, const topology::Router& router, const GroupLowering& lowering)
      : sketcher(program, router, lowering), lookalikes(program, router, lowering) {}

  void for_each(std::span<const Group> block, Taker& taker);
  void take(std::uint32_t group, std::span<const Group> block, Taker& taker);
  [[nodiscard]] std::uint32_t end_of_row(std::uint32_t group) const;
  [[nodiscard]] bool as_before(std::uint32_t first, std::uint32_t end) const;
  [[nodiscard]] bool follows(std::uint32_t first, std::uint32_t end) const;
  void keep_row(std::uint32_t run);
  void number_labels(const Traits& traits);

  Sketcher sketcher;
  Lookalikes lookalikes;
  std::unordered_map<Colour, std::uint32_t> labels;
  std::unordered_map<Colour, Calls> calls;
  // Of the block at hand: whom each group looks like, those to be sketched, and what they do.
  std::vector<std::uint32_t> like, drawn;
  std::vector<Traits> traits;
  std::size_t next = 0;         // of `traits`
  std::vector<CellPart> parts;  // of the group at hand
  // Edges between two nodes, one a place, come in rows that are mostly like the row of another pair.
  static constexpr std::uint32_t kNoRun = 0xffffffffU;
  struct Row {
    std::vector<std::uint32_t> like;
    std::uint32_t run = kNoRun;  // that it has been
  };
  Row row;                                      // the last, of which it is not known yet where its run ends
  std::unordered_map<std::uint32_t, Row> rows;  // by the first group's like
  std::uint32_t last_run = kNoRun;              // of the group taken last
};

void Sketches::Impl::number_labels(const Traits& of) {
  parts.clear();
  for (const Traits::Part& part : of.parts) {
    const auto number = static_cast<std::uint32_t>(labels.size());
    parts.push_back({part.cell, labels.try_emplace(part.label, number).first->second});
  }
}

// Met one by one, sketched side by side, taken in order.
void Sketches::Impl::for_each(std::span<const Group> block, Taker& taker) {
  like.clear(), drawn.clear();
  lookalikes.begin_block();
  for (std::uint32_t i = 0; i < block.size(); ++i) {
    const auto [whom, fresh] = lookalikes.meet(block[i]);
    like.push_back(whom);
    if (fresh) drawn.push_back(i);
  }
  traits.resize(drawn.size());
  const auto draw = [&](std::size_t d) { traits[d] = sketcher(block[drawn[d]]); };
  // Few are edges, which are soon done: a thread that is woken for them then waits, busy, for the next block.
  constexpr std::size_t kFew = 32;
  if (drawn.size() < kFew)
    for (std::size_t d = 0; d < drawn.size(); ++d) draw(d);
  else
    parallel::for_each(drawn.size(), draw);
  next = 0;
  for (std::uint32_t i = 0; i < block.size();) {
    const std::uint32_t first = i, end = end_of_row(i);
    if (as_before(first, end)) {
      taker.take_again(rows.at(like[first]).run, end - first, lookalikes.parts(like[first], first));
      keep_row(kNoRun);
      i = end;
      continue;
    }
    const std::uint32_t before = last_run;
    take(i++, block, taker);
    keep_row(last_run);
    const std::uint32_t run = last_run;
    while (i < end) take(i++, block, taker);
    if (run != before && run == last_run && follows(first, end))
      row = {std::vector(like.begin() + first, like.begin() + end), run};
  }
}

// The row taken last, unless this run goes on with it: then it is more than a row.
void Sketches::Impl::keep_row(std::uint32_t run) {
  if (row.run != kNoRun && row.run != run) rows[row.like.front()] = std::move(row);
  row.run = kNoRun;
}

// Behind the groups from this one on that have to do with the same cells for sure.
std::uint32_t Sketches::Impl::end_of_row(std::uint32_t group) const {
  std::uint32_t end = group + 1;
  while (end < like.size() && lookalikes.beside(end - 1, end)) ++end;
  return end;
}

// Whether such a row has been taken.
bool Sketches::Impl::as_before(std::uint32_t first, std::uint32_t end) const {
  if (end - first == 1) return false;
  const auto known = rows.find(like[first]);
  return known != rows.end() && std::equal(known->second.like.begin(), known->second.like.end(),
                                           like.begin() + first, like.begin() + end);
}

// Whether the cells of all groups follow from where their members stand, and are the first one's.
bool Sketches::Impl::follows(std::uint32_t first, std::uint32_t end) const {
  for (std::uint32_t i = first; i < end; ++i)
    if (like[i] == Lookalikes::kNone || !lookalikes.same_layout(like[first], like[i])) return false;
  return end - first > 1;
}

void Sketches::Impl::take(std::uint32_t group, std::span<const Group> block, Taker& taker) {
  constexpr std::uint32_t kNobody = Lookalikes::kNone;
  const std::uint32_t whom = like[group];
  const bool fresh = next < drawn.size() && drawn[next] == group;
  const bool seen = !fresh && whom != kNobody && lookalikes.knows(whom);
  Colour colour = seen ? lookalikes.colour(whom) : 0;
  if (!seen) {
    Traits here = fresh ? std::move(traits[next++]) : sketcher(block[group]);
    colour = here.colour;
    calls.try_emplace(colour, std::move(here.calls));
    number_labels(here);
    if (fresh && whom != kNobody && here.regular) lookalikes.learn(whom, group, colour, parts);
  }
  const bool known = whom != kNobody && lookalikes.knows(whom);
  last_run = taker.take(colour, known ? lookalikes.parts(whom, group) : parts);
}

Sketches::Sketches(const program::Program& program, const topology::Router& router,
                   const GroupLowering& lowering)
    : impl_(std::make_unique<Impl>(program, router, lowering)) {}
Sketches::~Sketches() = default;

void Sketches::for_each(std::span<const Group> groups, Taker& taker) {
  constexpr std::size_t kBlock = 2048;
  for (std::size_t begin = 0; begin < groups.size(); begin += kBlock)
    impl_->for_each(groups.subspan(begin, std::min(kBlock, groups.size() - begin)), taker);
}

std::unordered_map<Colour, Sketches::Calls> Sketches::take_calls() {
  return std::move(impl_->calls);
}

std::vector<CellPattern> Sketches::take_patterns() {
  std::vector<CellPattern> patterns(impl_->labels.size());
  for (const auto& [label, number] : impl_->labels) patterns[number] = impl_->sketcher.take_pattern(label);
  return patterns;
}
}  // namespace topsim::fold
