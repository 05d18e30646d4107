#include "sim/fold/sketches.hpp"

#include <algorithm>

#include "sim/base/parallel.hpp"
#include "sim/fold/lookalikes.hpp"
#include "sim/fold/sketcher.hpp"

namespace topsim::fold {

struct Sketches::Impl {
  Impl(const program::Program& program, const topology::Router& router, const GroupLowering& lowering)
      : sketcher(program, router, lowering), lookalikes(program, router, lowering) {}

  void for_each(std::span<const Group> block, Sink& sink);
  void take(std::uint32_t group, std::span<const Group> block, Sink& sink);
  [[nodiscard]] std::uint32_t end_of_row(std::uint32_t group) const;
  [[nodiscard]] bool as_before(std::uint32_t first, std::uint32_t end) const;
  [[nodiscard]] bool follows(std::uint32_t first, std::uint32_t end) const;
  void keep_row(std::uint32_t run);
  void number_labels(const GroupSketch& sketch);

  Sketcher sketcher;
  Lookalikes lookalikes;
  std::unordered_map<Colour, std::uint32_t> labels;
  std::unordered_map<Colour, Calls> calls;
  // Of the current block: the representative of each group, the groups to be sketched, and their sketches.
  std::vector<std::uint32_t> like, to_sketch;
  std::vector<GroupSketch> fresh_sketches;
  std::size_t next = 0;         // index into `fresh_sketches`
  std::vector<CellPart> parts;  // of the current group
  // Edges between two nodes, one per place, come in rows; most rows equal the row of another pair of nodes.
  static constexpr std::uint32_t kNoRun = 0xffffffffU;
  struct Row {
    std::vector<std::uint32_t> like;
    std::uint32_t run = kNoRun;  // the run that the row became
  };
  Row row;                                      // the last one; it is not yet known where its run ends
  std::unordered_map<std::uint32_t, Row> rows;  // by the representative of the first group
  std::uint32_t last_run = kNoRun;              // of the last group taken
};

void Sketches::Impl::number_labels(const GroupSketch& of) {
  parts.clear();
  for (const GroupSketch::Part& part : of.parts) {
    const auto number = static_cast<std::uint32_t>(labels.size());
    parts.push_back({part.cell, labels.try_emplace(part.label, number).first->second});
  }
}

// Groups are looked up one by one, sketched in parallel, and taken in order.
void Sketches::Impl::for_each(std::span<const Group> block, Sink& sink) {
  like.clear(), to_sketch.clear();
  lookalikes.begin_block();
  for (std::uint32_t i = 0; i < block.size(); ++i) {
    const auto [representative, fresh] = lookalikes.meet(block[i]);
    like.push_back(representative);
    if (fresh) to_sketch.push_back(i);
  }
  fresh_sketches.resize(to_sketch.size());
  const auto sketch_one = [&](std::size_t d) { fresh_sketches[d] = sketcher(block[to_sketch[d]]); };
  // A small block holds edges, which take little time: a woken thread would then spin until the next block.
  constexpr std::size_t kFew = 32;
  if (to_sketch.size() < kFew)
    for (std::size_t d = 0; d < to_sketch.size(); ++d) sketch_one(d);
  else
    parallel::for_each(to_sketch.size(), sketch_one);
  next = 0;
  for (std::uint32_t i = 0; i < block.size();) {
    const std::uint32_t first = i, end = end_of_row(i);
    if (as_before(first, end)) {
      sink.repeat(rows.at(like[first]).run, end - first, lookalikes.parts(like[first], first));
      keep_row(kNoRun);
      i = end;
      continue;
    }
    const std::uint32_t before = last_run;
    take(i++, block, sink);
    keep_row(last_run);
    const std::uint32_t run = last_run;
    while (i < end) take(i++, block, sink);
    if (run != before && run == last_run && follows(first, end))
      row = {std::vector(like.begin() + first, like.begin() + end), run};
  }
}

// Stores the last row, unless this run continues it: then the run is more than a row.
void Sketches::Impl::keep_row(std::uint32_t run) {
  if (row.run != kNoRun && row.run != run) rows[row.like.front()] = std::move(row);
  row.run = kNoRun;
}

// The end of the groups from this one on that certainly touch the same cells.
std::uint32_t Sketches::Impl::end_of_row(std::uint32_t group) const {
  std::uint32_t end = group + 1;
  while (end < like.size() && lookalikes.beside(end - 1, end)) ++end;
  return end;
}

// Whether such a row was taken before.
bool Sketches::Impl::as_before(std::uint32_t first, std::uint32_t end) const {
  if (end - first == 1) return false;
  const auto known = rows.find(like[first]);
  return known != rows.end() && std::equal(known->second.like.begin(), known->second.like.end(),
                                           like.begin() + first, like.begin() + end);
}

// Whether the cells of all groups are those of the first one, and follow from the places of the members.
bool Sketches::Impl::follows(std::uint32_t first, std::uint32_t end) const {
  for (std::uint32_t i = first; i < end; ++i)
    if (like[i] == Lookalikes::kNone || !lookalikes.same_layout(like[first], like[i])) return false;
  return end - first > 1;
}

void Sketches::Impl::take(std::uint32_t group, std::span<const Group> block, Sink& sink) {
  constexpr std::uint32_t kNobody = Lookalikes::kNone;
  const std::uint32_t representative = like[group];
  const bool fresh = next < to_sketch.size() && to_sketch[next] == group;
  const bool seen = !fresh && representative != kNobody && lookalikes.knows(representative);
  Colour colour = seen ? lookalikes.colour(representative) : 0;
  if (!seen) {
    GroupSketch here = fresh ? std::move(fresh_sketches[next++]) : sketcher(block[group]);
    colour = here.colour;
    calls.try_emplace(colour, std::move(here.calls));
    number_labels(here);
    if (fresh && representative != kNobody && here.regular)
      lookalikes.learn(representative, group, colour, parts);
  }
  const bool known = representative != kNobody && lookalikes.knows(representative);
  last_run = sink.add(colour, known ? lookalikes.parts(representative, group) : parts);
}

Sketches::Sketches(const program::Program& program, const topology::Router& router,
                   const GroupLowering& lowering)
    : impl_(std::make_unique<Impl>(program, router, lowering)) {}
Sketches::~Sketches() = default;

void Sketches::for_each(std::span<const Group> groups, Sink& sink) {
  constexpr std::size_t kBlock = 2048;
  for (std::size_t begin = 0; begin < groups.size(); begin += kBlock)
    impl_->for_each(groups.subspan(begin, std::min(kBlock, groups.size() - begin)), sink);
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
