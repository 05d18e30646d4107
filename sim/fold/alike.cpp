#include "sim/fold/alike.hpp"

#include <algorithm>
#include <span>
#include <tuple>

namespace topsim::fold {
constexpr std::uint32_t kNone = System::kNone;

// Groups that follow each other and have to do with the same cells (the edges between two nodes, one a place)
// are one item: runs are alike where the first of one is like the first of the other, and so on.
struct Alike::Runs {
  std::vector<Part> parts;            // of all groups
  std::vector<std::size_t> begin{0};  // by group, where its parts begin; and where the last one's end
  std::vector<Colour> colours;        // by group
  std::vector<std::uint32_t> first;   // by run: its first group

  void add(Colour colour, std::span<const Part> more) {
    const auto g = static_cast<std::uint32_t>(colours.size());
    parts.insert(parts.end(), more.begin(), more.end());
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
      const std::uint32_t item = graph.add(mix(colour, 0x22));
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
  Sketches sketches(program, router, lowering);
  Runs runs;
  sketches.for_each(groups, [&](Colour colour, std::span<const CellPart> parts) { runs.add(colour, parts); });
  patterns_ = sketches.take_patterns();
  calls_ = sketches.take_calls();

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
  struct Shared {
    std::uint32_t way;
    LinkId link;
    double share;
    std::uint32_t times;
    double wire;
  };
  std::vector<Shared> crossings;
  std::vector<topology::LinkShare> links;
  for (const CellPattern::Use& use : pattern.uses) {
    router_.expand({cell, use.at}, links);
    for (const topology::LinkShare& each : links)
      crossings.push_back({use.way, each.link, each.share * use.share, use.times, use.wire});
  }
  std::sort(crossings.begin(), crossings.end(), [](const Shared& a, const Shared& b) {
    return std::tie(a.way, a.link, a.share) < std::tie(b.way, b.link, b.share);
  });
  for (std::size_t i = 0; i < crossings.size();) {
    const Shared& first = crossings[i];
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
