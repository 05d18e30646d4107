#include "sim/fold/alike.hpp"

#include <algorithm>
#include <span>
#include <tuple>

#include "sim/base/mix.hpp"

namespace topsim::fold {
constexpr std::uint32_t kNone = System::kNone;

// Groups that follow each other on the same cells (the edges between two nodes, one per place) are one item,
// a run. Two runs are alike if their first groups are alike, their second groups, and so on. There are few
// kinds of runs, so the contents of the groups are stored once per kind.
class Alike::Runs final : public Sketches::Sink {
 public:
  std::uint32_t add(Colour colour, std::span<const Part> parts) override {
    const auto same_cell = [](std::uint32_t cell, const Part& part) { return cell == part.cell; };
    if (doing_.empty() || !std::equal(cells_.begin() + static_cast<std::ptrdiff_t>(begin_.back()),
                                      cells_.end(), parts.begin(), parts.end(), same_cell)) {
      begin_run(parts);
      doing_.push_back(parts.size());
    }
    doing_.push_back(colour);
    for (const Part& part : parts) doing_.push_back(part.label);
    ++groups_;
    return size() - 1;
  }
  void repeat(std::uint32_t run, std::uint32_t groups, std::span<const Part> parts) override {
    begin_run(parts);
    kind_.push_back(kind_[run]);
    groups_ += groups;
  }
  // To be called after the last group.
  void end_run() {
    if (doing_.empty()) return;
    const auto [known, fresh] = number_of_.try_emplace(doing_, static_cast<std::uint32_t>(kinds_.size()));
    if (fresh) kinds_.push_back(&known->first);  // the address of a map's key stays valid
    kind_.push_back(known->second);
    doing_.clear();
  }

  [[nodiscard]] std::uint32_t size() const { return static_cast<std::uint32_t>(first_.size()); }
  [[nodiscard]] std::size_t edges() const { return cells_.size(); }
  [[nodiscard]] std::uint32_t first(std::uint32_t run) const { return first_[run]; }
  [[nodiscard]] std::uint32_t end(std::uint32_t run) const {
    return run + 1 < size() ? first_[run + 1] : groups_;
  }
  [[nodiscard]] std::span<const std::uint32_t> cells(std::uint32_t run) const {
    const std::size_t end = run + 1 < size() ? begin_[run + 1] : cells_.size();
    return std::span(cells_).subspan(begin_[run], end - begin_[run]);
  }
  // The colour of a group of the run, counted from the run's first group.
  [[nodiscard]] Colour colour(std::uint32_t run, std::uint32_t group) const { return does(run, group)[0]; }
  [[nodiscard]] std::vector<Part> parts(std::uint32_t run, std::uint32_t group) const {
    std::vector<Part> result;
    const auto labels = does(run, group).subspan(1);
    for (std::size_t p = 0; p < labels.size(); ++p)
      result.push_back({cells(run)[p], static_cast<std::uint32_t>(labels[p])});
    return result;
  }

  void connect(LabelledGraph& graph) const {
    struct Kind {
      Colour colour = 0;
      std::vector<std::uint32_t> labels;  // of its edges
    };
    std::vector<Kind> kinds;  // numbered in the order of their first runs
    std::unordered_map<Colour, std::uint32_t> numbers;
    for (std::uint32_t run = 0; run < size(); ++run) {
      const auto cells = this->cells(run);
      if (kind_[run] == kinds.size()) {
        Kind& kind = kinds.emplace_back();
        const std::uint32_t groups = end(run) - first(run);
        for (std::uint32_t g = 0; g < groups; ++g) kind.colour = mix(kind.colour, colour(run, g));
        for (std::size_t p = 0; p < cells.size(); ++p) {
          Colour label = 0;
          for (std::uint32_t g = 0; g < groups; ++g) label = mix(label, does(run, g)[p + 1]);
          const auto number = static_cast<std::uint32_t>(numbers.size());
          kind.labels.push_back(numbers.try_emplace(label, number).first->second);
        }
      }
      const Kind& kind = kinds[kind_[run]];
      const std::uint32_t item = graph.add(mix(kind.colour, 0x22));
      for (std::size_t p = 0; p < cells.size(); ++p) graph.connect(item, cells[p], kind.labels[p]);
    }
  }

 private:
  // The number of cells; then, group by group, its colour and its labels, cell by cell.
  using Doing = std::vector<Colour>;
  struct Hash {
    std::size_t operator()(const Doing& doing) const { return hash_words(doing); }
  };
  [[nodiscard]] std::span<const Colour> does(std::uint32_t run, std::uint32_t group) const {
    const std::size_t each = 1 + cells(run).size();
    return std::span(*kinds_[kind_[run]]).subspan(1 + group * each, each);
  }

  void begin_run(std::span<const Part> parts) {
    end_run();
    begin_.push_back(cells_.size());
    first_.push_back(groups_);
    for (const Part& part : parts) cells_.push_back(part.cell);
  }

  std::uint32_t groups_ = 0;
  std::vector<std::uint32_t> cells_;  // of all runs
  std::vector<std::size_t> begin_;    // by run: its first cell
  std::vector<std::uint32_t> first_;  // by run: its first group
  std::vector<std::uint32_t> kind_;   // by run
  std::vector<const Doing*> kinds_;
  std::unordered_map<Doing, std::uint32_t, Hash> number_of_;
  Doing doing_;  // of the current run
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
  sketches.for_each(groups, runs);
  runs.end_run();
  patterns_ = sketches.take_patterns();
  calls_ = sketches.take_calls();

  LabelledGraph graph;
  graph.reserve(cells + runs.size(), runs.edges());
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
  for (std::uint32_t run = 0; run < runs.size(); ++run) {
    std::uint32_t& id = local[classes[cells + run]];
    const bool fresh = id == kNone;
    if (fresh) id = static_cast<std::uint32_t>(groups_.size());
    const std::uint32_t first = runs.first(run);
    for (std::uint32_t g = first; g < runs.end(run); ++g) {
      if (fresh) {
        groups_.push_back({g, 0, runs.colour(run, g - first)});
        parts_.push_back(runs.parts(run, g - first));
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
  std::vector<Scratch::Seen>& seen = scratch_.seen;
  auto& known = scratch_.known;
  seen.clear(), known.clear();
  for (const Part& part : parts_[group_class]) {
    const auto [entry, fresh] = known.try_emplace(key(cell_class_[part.cell], part.label), seen.size());
    if (fresh) seen.push_back({part, 0});
    ++seen[entry->second].count;
  }
  for (const auto& [part, count] : seen) expand(patterns_[part.label], part.cell, count, out);
}

// Adds up each link's uses exactly as collective::UsageBuilder does, to the last bit.
void Alike::expand(const CellPattern& pattern, std::uint32_t cell, std::uint32_t count,
                   std::vector<Side>& out) const {
  for (const auto& [place, role] : pattern.members)
    out.push_back({rank_slots_.at(key(cell_class_[cell], place)), LinkId(), role, 0, count});
  using Shared = Scratch::Shared;
  std::vector<Shared>& crossings = scratch_.crossings;
  std::vector<topology::LinkShare>& links = scratch_.links;
  crossings.clear();
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
