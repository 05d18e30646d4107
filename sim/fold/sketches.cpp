#include "sim/fold/sketches.hpp"

#include <oneapi/tbb/enumerable_thread_specific.h>

#include <algorithm>
#include <bit>
#include <mutex>
#include <tuple>
#include <unordered_map>
#include <unordered_set>

#include "sim/base/parallel.hpp"
#include "sim/fold/incidence.hpp"
#include "sim/fold/lookalikes.hpp"

namespace topsim::fold {
namespace {

// What one group does, cell by cell.
struct Traits {
  Colour colour = 0;
  struct Part {
    std::uint32_t cell;
    Colour label;
  };
  std::vector<Part> parts;
  // Nothing that hangs on more than where its members stand (Router::standing).
  bool regular = true;
};

// The uses of calls that move data, with the way they belong to and its bytes on the wire.
template <class Take>
void for_each_use(const Group& group, const collective::SketchedCalls& sketched, std::vector<bool>& used,
                  const Take& take) {
  used.assign(sketched.ways.size(), false);
  for (std::size_t s = 0; s < sketched.calls.size(); ++s)
    if (Incidence::moves_data((*group.calls)[s])) used[sketched.calls[s].way] = true;
  for (std::uint32_t way = 0; way < used.size(); ++way) {
    if (!used[way]) continue;
    const double wire = sketched.ways[way].wire;
    const Colour mark = mix(way, std::bit_cast<std::uint64_t>(wire));
    for (const collective::SketchedCalls::Use& use : sketched.routes[sketched.ways[way].route])
      take(use, way, wire, mark);
  }
}

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
      : program_(program), router_(router), lowering_(lowering), scratch_([&router] {
          return Scratch{std::vector<Colour>(router.cells(), 0), {}, {}, {}, {}};
        }) {}

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
    void add(std::uint32_t cell, Colour what) {
      if (label[cell] == 0) touched.push_back(cell);
      label[cell] += what | 1;  // never nothing
    }
  };
  [[nodiscard]] std::uint32_t cell_of(RankId rank) const {
    return router_.topology().device(lowering_.device(rank)).node;
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
  const collective::SketchedCalls sketched = lowering_.sketch(group);
  Traits traits;
  const RankId first =
      group.is_communicator() ? program_.members_of(CommunicatorId(group.communicator)).front() : group.from;
  // Beyond such sites only what stays inside a node.
  const bool sites = router_.standing(cell_of(first)).site != topology::Router::kNowhere;
  traits.colour = Incidence::colour(group, sketched.calls);
  for_each_member(program_, group, [&](RankId rank, std::uint32_t role) {
    scratch.add(cell_of(rank), mix(router_.place_of(lowering_.device(rank)), role));
  });
  for_each_use(group, sketched, scratch.used, [&](const auto& use, std::uint32_t, double, Colour mark) {
    const auto [cell, at] = router_.place(use.stretch);
    scratch.add(cell, mix(at, mark + std::bit_cast<std::uint64_t>(use.share)));
    traits.regular = traits.regular && (sites || use.stretch.index() >= router_.topology().links().size() ||
                                        router_.place_of(use.stretch, cell).has_value());
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
  for_each_use(group, sketched, scratch.used, [&](const auto& use, std::uint32_t way, double wire, Colour) {
    const auto [cell, at] = router_.place(use.stretch);
    if (scratch.label[cell] != 0) scratch.patterns.at(cell).uses.push_back({way, at, 1, use.share, wire});
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

  void for_each(std::span<const Group> block, const Take& take);
  void number_labels(const Traits& traits);

  Sketcher sketcher;
  Lookalikes lookalikes;
  std::unordered_map<Colour, std::uint32_t> labels;
  // Of the block at hand: whom each group looks like, those to be sketched, and what they do.
  std::vector<std::uint32_t> like, drawn;
  std::vector<Traits> traits;
  std::vector<CellPart> parts;  // of the group at hand
};

void Sketches::Impl::number_labels(const Traits& of) {
  parts.clear();
  for (const Traits::Part& part : of.parts) {
    const auto number = static_cast<std::uint32_t>(labels.size());
    parts.push_back({part.cell, labels.try_emplace(part.label, number).first->second});
  }
}

// Met one by one, sketched side by side, taken in order.
void Sketches::Impl::for_each(std::span<const Group> block, const Take& take) {
  constexpr std::uint32_t kNobody = Lookalikes::kNone;
  like.clear(), drawn.clear();
  lookalikes.begin_block();
  for (std::uint32_t i = 0; i < block.size(); ++i) {
    const auto [whom, fresh] = lookalikes.meet(block[i]);
    like.push_back(whom);
    if (fresh) drawn.push_back(i);
  }
  traits.resize(drawn.size());
  parallel::for_each(drawn.size(), [&](std::size_t d) { traits[d] = sketcher(block[drawn[d]]); });
  std::size_t next = 0;
  for (std::uint32_t i = 0; i < block.size(); ++i) {
    const bool fresh = next < drawn.size() && drawn[next] == i;
    const bool seen = !fresh && like[i] != kNobody && lookalikes.knows(like[i]);
    Colour colour = seen ? lookalikes.colour(like[i]) : 0;
    if (!seen) {
      const Traits here = fresh ? std::move(traits[next++]) : sketcher(block[i]);
      colour = here.colour;
      number_labels(here);
      if (fresh && like[i] != kNobody && here.regular) lookalikes.learn(like[i], i, colour, parts);
    }
    if (like[i] != kNobody && lookalikes.knows(like[i])) lookalikes.parts(like[i], i, parts);
    take(colour, parts);
  }
}

Sketches::Sketches(const program::Program& program, const topology::Router& router,
                   const GroupLowering& lowering)
    : impl_(std::make_unique<Impl>(program, router, lowering)) {}
Sketches::~Sketches() = default;

void Sketches::for_each(std::span<const Group> groups, const Take& take) {
  constexpr std::size_t kBlock = 2048;
  for (std::size_t begin = 0; begin < groups.size(); begin += kBlock)
    impl_->for_each(groups.subspan(begin, std::min(kBlock, groups.size() - begin)), take);
}

std::vector<CellPattern> Sketches::take_patterns() {
  std::vector<CellPattern> patterns(impl_->labels.size());
  for (const auto& [label, number] : impl_->labels) patterns[number] = impl_->sketcher.take_pattern(label);
  return patterns;
}
}  // namespace topsim::fold
