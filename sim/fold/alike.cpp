#include "sim/fold/alike.hpp"

#include <oneapi/tbb/enumerable_thread_specific.h>

#include <algorithm>
#include <bit>
#include <map>
#include <mutex>
#include <span>
#include <tuple>
#include <unordered_set>

#include "sim/base/parallel.hpp"
#include "sim/fold/incidence.hpp"

namespace topsim::fold {
namespace {

constexpr std::uint32_t kNone = System::kNone;

// What one group does, cell by cell.
struct Traits {
  Colour colour = 0;
  struct Part {
    std::uint32_t cell;
    Colour label;
  };
  std::vector<Part> parts;
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

}  // namespace

class Alike::Sketcher {
 public:
  Sketcher(const program::Program& program, const topology::Router& router, const GroupLowering& lowering)
      : program_(program), router_(router), lowering_(lowering), scratch_([&router] {
          return Scratch{std::vector<Colour>(router.cells(), 0), {}, {}, {}, {}};
        }) {}

  // Thread-safe.
  Traits operator()(const Group& group) {
    const auto key = lowering_.key_in_node(group);
    if (!key) return sketch(group).first;
    const std::uint32_t node = cell_of(program_.members_of(CommunicatorId(group.communicator)).front());
    {
      const std::lock_guard lock(mutex_);
      const auto twin = twins_.find(*key);
      if (twin != twins_.end()) return {twin->second.colour, {{node, twin->second.label}}};
    }
    auto [traits, inside] = sketch(group);
    if (inside && traits.parts.size() == 1 && traits.parts.front().cell == node) {
      const std::lock_guard lock(mutex_);
      twins_.emplace(*key, Twin{traits.colour, traits.parts.front().label});
    }
    return std::move(traits);
  }

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
  struct Twin {
    Colour colour, label;
  };

  [[nodiscard]] std::uint32_t cell_of(RankId rank) const {
    return router_.topology().device(lowering_.device(rank)).node;
  }

  // Sums of mixes stand for multisets, as in refinement. Second: no link beyond the inside of a node.
  std::pair<Traits, bool> sketch(const Group& group) {
    Scratch& scratch = scratch_.local();
    const collective::SketchedCalls sketched = lowering_.sketch(group);
    Traits traits;
    bool inside = true;
    traits.colour = Incidence::colour(group, sketched.calls);
    for_each_member(program_, group, [&](RankId rank, std::uint32_t role) {
      scratch.add(cell_of(rank), mix(router_.place_of(lowering_.device(rank)), role));
    });
    for_each_use(group, sketched, scratch.used, [&](const auto& use, std::uint32_t, double, Colour mark) {
      const auto [cell, at] = router_.place(use.stretch);
      scratch.add(cell, mix(at, mark + std::bit_cast<std::uint64_t>(use.share)));
      inside = inside && (use.stretch.index() >= router_.topology().links().size() ||
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
    return {std::move(traits), inside};
  }

  // Labels are sums: what they stand for is kept of the first cell that has one.
  void learn(const Group& group, const collective::SketchedCalls& sketched, const Traits& traits,
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

  const program::Program& program_;
  const topology::Router& router_;
  const GroupLowering& lowering_;
  oneapi::tbb::enumerable_thread_specific<Scratch> scratch_;
  std::mutex mutex_;
  std::map<std::vector<std::uint64_t>, Twin> twins_;
  std::unordered_map<Colour, CellPattern> patterns_;
};

// Groups that follow each other and have to do with the same cells (the edges between two nodes, one a place)
// are one item: runs are alike where the first of one is like the first of the other, and so on.
struct Alike::Runs {
  std::vector<Part> parts;            // of all groups
  std::vector<std::size_t> begin{0};  // by group, where its parts begin; and where the last one's end
  std::vector<Colour> colours;        // by group
  std::vector<std::uint32_t> first;   // by run: its first group

  // The parts of one more group have been added.
  void add(Colour colour) {
    const auto g = static_cast<std::uint32_t>(colours.size());
    colours.push_back(colour);
    begin.push_back(parts.size());
    const auto same_cell = [](const Part& a, const Part& b) { return a.cell == b.cell; };
    const auto here = parts_of(g);
    if (g > 0) {
      const auto before = parts_of(g - 1);
      if (std::equal(here.begin(), here.end(), before.begin(), before.end(), same_cell)) return;
    }
    first.push_back(g);
  }
  [[nodiscard]] std::span<const Part> parts_of(std::uint32_t g) const {
    return std::span(parts).subspan(begin[g], begin[g + 1] - begin[g]);
  }
  [[nodiscard]] std::uint32_t end(std::uint32_t run) const {
    return run + 1 < first.size() ? first[run + 1] : static_cast<std::uint32_t>(colours.size());
  }
  void connect(LabelledGraph& graph) const {
    std::unordered_map<Colour, std::uint32_t> labels;
    for (std::uint32_t run = 0; run < first.size(); ++run) {
      Colour colour = 0;
      for (std::uint32_t g = first[run]; g < end(run); ++g) colour = mix(colour, colours[g]);
      const std::uint32_t item = graph.add(colour);
      const std::size_t cells = parts_of(first[run]).size();
      for (std::size_t p = 0; p < cells; ++p) {
        Colour label = 0;
        for (std::uint32_t g = first[run]; g < end(run); ++g) label = mix(label, parts_of(g)[p].label);
        const auto number = static_cast<std::uint32_t>(labels.size());
        graph.connect(item, parts_of(first[run])[p].cell, labels.try_emplace(label, number).first->second);
      }
    }
  }
};

Alike::Alike(const program::Program& program, const topology::Router& router, std::size_t groups)
    : router_(router), rank_slot_(program.ranks) {
  for (std::uint32_t g = 0; g < groups; ++g) groups_.push_back({g, 1, 0});
  for (std::uint32_t r = 0; r < program.ranks; ++r) {
    ranks_.push_back({r, 1, 0});
    rank_slot_[r] = r;
  }
  link_slots_ = static_cast<std::uint32_t>(router.topology().links().size());
}

Alike::Alike(const program::Program& program, const topology::Router& router, const GroupLowering& lowering,
             const std::vector<Group>& groups, const std::vector<Colour>& ranks,
             const std::vector<std::pair<LinkId, std::uint32_t>>& marked_links)
    : router_(router), rank_slot_(program.ranks) {
  const std::uint32_t cells = router.cells();
  std::vector<Colour> colours(cells);
  for (std::uint32_t c = 0; c < cells; ++c) colours[c] = mix(router.kind_of_cell(c), 0x33);
  for (std::uint32_t r = 0; r < program.ranks; ++r) {
    const DeviceId device = lowering.device(RankId(r));
    colours[router.topology().device(device).node] += mix(ranks[r], router.place_of(device));
  }
  for (const auto& [link, mark] : marked_links)
    colours[router.place(link).cell] += mix(mix(router.place(link).at, mark), 0x44);
  // Parallel in blocks, merged in order, so any thread count gives the same graph.
  Sketcher sketcher(program, router, lowering);
  constexpr std::size_t kBlock = 2048;
  std::vector<Traits> block(std::min(kBlock, groups.size()));
  std::unordered_map<Colour, std::uint32_t> labels;
  Runs runs;
  for (std::size_t begin = 0; begin < groups.size(); begin += kBlock) {
    const std::size_t end = std::min(begin + kBlock, groups.size());
    parallel::for_each(end - begin, [&](std::size_t i) { block[i] = sketcher(groups[begin + i]); });
    for (std::size_t i = 0; i < end - begin; ++i) {
      for (const Traits::Part& part : block[i].parts) {
        const auto number = static_cast<std::uint32_t>(labels.size());
        runs.parts.push_back({part.cell, labels.try_emplace(part.label, number).first->second});
      }
      runs.add(mix(block[i].colour, 0x22));
    }
  }
  patterns_.resize(labels.size());
  for (const auto& [label, number] : labels) patterns_[number] = sketcher.take_pattern(label);

  LabelledGraph graph;
  graph.reserve(cells + runs.first.size(), runs.parts.size());
  for (const Colour colour : colours) graph.add(colour);
  runs.connect(graph);
  const std::vector<std::uint32_t> classes = graph.classes(true);
  std::vector<std::uint32_t> local(classes.size(), kNone);
  cell_class_.resize(cells);
  for (std::uint32_t c = 0; c < cells; ++c) {
    std::uint32_t& id = local[classes[c]];
    if (id == kNone) {
      id = static_cast<std::uint32_t>(cells_.size());
      cells_.push_back({link_slots_, 0});
      link_slots_ += router.links_of_cell(c);
    }
    ++cells_[id].count;
    cell_class_[c] = id;
  }
  for (std::uint32_t run = 0; run < runs.first.size(); ++run) {
    std::uint32_t& id = local[classes[cells + run]];
    const bool fresh = id == kNone;
    if (fresh) id = static_cast<std::uint32_t>(groups_.size());
    const std::uint32_t first = runs.first[run];
    for (std::uint32_t g = first; g < runs.end(run); ++g) {
      if (fresh) {
        const auto parts = runs.parts_of(g);
        groups_.push_back({g, 0, runs.colours[g]});
        parts_.emplace_back(parts.begin(), parts.end());
      }
      ++groups_[id + g - first].count;
    }
  }
  for (std::uint32_t r = 0; r < program.ranks; ++r) {
    const DeviceId device = lowering.device(RankId(r));
    const auto [entry, fresh] = rank_slots_.try_emplace(
        key(cell_class_[router.topology().device(device).node], router.place_of(device)),
        static_cast<std::uint32_t>(ranks_.size()));
    if (fresh) ranks_.push_back({r, 0, 0});
    rank_slot_[r] = entry->second;
    ++ranks_[entry->second].count;
  }
}

void Alike::sides(std::uint32_t group_class, std::vector<Side>& out) const {
  out.clear();
  struct Seen {
    Part part;
    std::uint32_t count;
  };
  std::vector<Seen> seen;  // one cell a class of cells and label
  std::unordered_map<std::uint64_t, std::size_t> known;
  for (const Part& part : parts_[group_class]) {
    const auto [entry, fresh] = known.try_emplace(key(cell_class_[part.cell], part.label), seen.size());
    if (fresh) seen.push_back({part, 0});
    ++seen[entry->second].count;
  }
  for (const auto& [part, count] : seen) expand(patterns_[part.label], part.cell, count, out);
}

// Sums at each link as collective::UsageBuilder makes them, to the bit.
void Alike::expand(const CellPattern& pattern, std::uint32_t cell, std::uint32_t count,
                   std::vector<Side>& out) const {
  for (const auto& [place, role] : pattern.members)
    out.push_back({rank_slots_.at(key(cell_class_[cell], place)), LinkId(), role, 0, count});
  struct Crossing {
    std::uint32_t way;
    LinkId link;
    double share;
    std::uint32_t times;
    double wire;
  };
  std::vector<Crossing> crossings;
  std::vector<topology::LinkShare> links;
  for (const CellPattern::Use& use : pattern.uses) {
    router_.expand({cell, use.at}, links);
    for (const topology::LinkShare& each : links)
      crossings.push_back({use.way, each.link, each.share * use.share, use.times, use.wire});
  }
  std::sort(crossings.begin(), crossings.end(), [](const Crossing& a, const Crossing& b) {
    return std::tie(a.way, a.link, a.share) < std::tie(b.way, b.link, b.share);
  });
  for (std::size_t i = 0; i < crossings.size();) {
    const Crossing& first = crossings[i];
    double total = 0;
    while (i < crossings.size() && crossings[i].way == first.way && crossings[i].link == first.link) {
      const double share = crossings[i].share;
      std::uint32_t times = 0;
      for (; i < crossings.size() && crossings[i].way == first.way && crossings[i].link == first.link &&
             crossings[i].share == share;
           ++i)
        times += crossings[i].times;
      total += times * share;
    }
    out.push_back({slot(first.link), first.link, first.way, total * first.wire, count});
  }
}
}  // namespace topsim::fold
