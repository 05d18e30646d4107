#include "sim/report/html/step_view.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <map>
#include <numeric>
#include <set>

#include "sim/executor/outcome.hpp"

namespace topsim::report {
namespace {
constexpr std::size_t kTracks = 48, kCells = 24'000, kCellsPerTrack = 4'000;
constexpr std::size_t kRows = 40, kBins = 200;
// The state of time in which the first processor of a rank neither works nor would be idle.
constexpr std::string_view kOtherProcessor = "other_processor";
using Cells = std::vector<StepView::Cell>;

struct Window {
  SimTime begin, end;
};

Window last_step(const Timeline& timeline, Duration step) {
  SimTime end{};
  for (const Slice& slice : timeline.slices) end = std::max(end, slice.end);
  for (const IdleSlice& idle : timeline.idle) end = std::max(end, idle.end);
  return {std::max(SimTime{}, end - step), end};
}

void sort_by_begin(Cells& cells) {
  std::stable_sort(cells.begin(), cells.end(),
                   [](const auto& a, const auto& b) { return a.begin < b.begin; });
}

// Sorts cells by time and joins neighbours of the same state. REQUIRES: no overlaps.
Cells in_order(Cells cells) {
  sort_by_begin(cells);
  Cells joined;
  for (const StepView::Cell& cell : cells) {
    if (!joined.empty() && joined.back().state == cell.state &&
        joined.back().begin + joined.back().length == cell.begin) {
      joined.back().length += cell.length;
    } else {
      joined.push_back(cell);
    }
  }
  return joined;
}

// Runs of cells shorter than `grain` become one cell of at least `grain` with a share for each state.
Cells merge(const Cells& cells, std::int64_t grain, std::size_t states) {
  Cells merged;
  std::vector<std::int64_t> held(states, 0);
  std::int64_t begin = 0, end = 0;
  const auto flush = [&] {
    const std::int64_t sum = std::accumulate(held.begin(), held.end(), std::int64_t{0});
    for (std::size_t state = 0; state < states; ++state) {
      if (held[state] == 0) continue;
      merged.push_back({begin, end - begin, static_cast<std::uint32_t>(state),
                        static_cast<double>(held[state]) / static_cast<double>(sum)});
      held[state] = 0;
    }
    begin = end;
  };
  for (const StepView::Cell& cell : cells) {
    if (cell.length >= grain || cell.begin != end) {
      flush();
      begin = cell.begin;
    }
    held[cell.state] += cell.length;
    end = cell.begin + cell.length;
    if (end - begin >= grain) flush();
  }
  flush();
  return merged;
}

// Adds what of `others` no cell covers. REQUIRES: no cells overlap; `others` may, among themselves too.
void add_where_free(Cells& cells, Cells others) {
  sort_by_begin(cells);
  sort_by_begin(others);
  const std::size_t covering = cells.size();
  std::size_t next = 0;   // the first cell that may end after `free`
  std::int64_t free = 0;  // nothing more is added before it
  for (const StepView::Cell& other : others) {
    const std::int64_t end = other.begin + other.length;
    free = std::max(free, other.begin);
    while (next < covering && cells[next].begin + cells[next].length <= free) ++next;
    while (free < end) {
      const bool more = next < covering && cells[next].begin < end;
      const std::int64_t until = more ? cells[next].begin : end;
      if (free < until) cells.push_back({free, until - free, other.state, 1});
      free = more ? cells[next].begin + cells[next].length : end;
      next += more ? 1 : 0;
    }
  }
}

std::vector<Cells> cells_of_lanes(const Timeline& timeline, const Window& window, StepView& view) {
  std::vector<Cells> lanes(timeline.lanes.size()), others(timeline.lanes.size());
  const auto add = [&](Cells& cells, SimTime from, SimTime to, std::size_t state) {
    from = std::max(from, window.begin);
    to = std::min(to, window.end);
    if (from < to)
      cells.push_back(
          {(from - window.begin).count(), (to - from).count(), static_cast<std::uint32_t>(state), 1});
  };
  std::map<std::string_view, std::size_t> phases;
  for (const Slice& slice : timeline.slices) {
    // Streams other than the first compute only on other processors of a replayed rank.
    if (slice.stream != 0 && !slice.computes) continue;
    const std::string_view state = slice.stream == 0 ? slice.phase : kOtherProcessor;
    const auto [at, fresh] = phases.try_emplace(state, phases.size());
    if (fresh) view.states.emplace_back(state);
    add((slice.stream == 0 ? lanes : others)[slice.lane], slice.begin, slice.end, at->second);
  }
  view.busy_states = view.states.size();
  for (std::size_t i = 0; i < executor::kReasons; ++i) {
    view.states.emplace_back(name_of(static_cast<executor::Reason>(i)));
  }
  for (const IdleSlice& idle : timeline.idle) {
    add(lanes[idle.lane], idle.begin, idle.end, view.busy_states + static_cast<std::size_t>(idle.reason));
  }
  for (std::size_t i = 0; i < lanes.size(); ++i) add_where_free(lanes[i], std::move(others[i]));
  return lanes;
}

void add_tracks(StepView& view, std::vector<Cells> lanes) {
  const std::size_t shown = std::min(kTracks, lanes.size());
  for (std::size_t i = 0; i < shown; ++i) {
    const std::size_t lane = shown < 2 ? 0 : i * (lanes.size() - 1) / (shown - 1);
    StepView::Track track;
    track.lane = static_cast<std::uint32_t>(lane);
    const Cells exact = in_order(std::move(lanes[lane]));
    const std::size_t limit = std::min(kCellsPerTrack, kCells / shown);
    track.cells = exact;
    for (std::int64_t grain = view.length / static_cast<std::int64_t>(limit); track.cells.size() > limit;
         grain += grain / 2 + 1) {
      track.cells = merge(exact, grain, view.states.size());
      track.merged = true;
    }
    view.tracks.push_back(std::move(track));
  }
}

// A sample holds until the next one of its link; a bin is the mean over its length.
void add_rows(StepView& view, const Timeline& timeline, const Window& window,
              const std::vector<std::uint32_t>& wanted) {
  if (timeline.samples.empty() || view.length <= 0) return;
  std::vector<StepView::Row> rows;
  std::vector<double> sums;
  const double bin = static_cast<double>(view.length) / kBins;
  for (std::size_t i = 0; i < timeline.samples.size(); ++i) {
    const CounterSample& sample = timeline.samples[i];
    if (rows.empty() || rows.back().link != sample.link) {
      rows.push_back({sample.link, std::vector<double>(kBins, 0.0)});
      sums.push_back(0);
    }
    const bool last = i + 1 == timeline.samples.size() || timeline.samples[i + 1].link != sample.link;
    const SimTime until = std::min(window.end, last ? window.end : timeline.samples[i + 1].time);
    const SimTime from = std::max(window.begin, sample.time);
    if (from >= until || sample.utilization <= 0) continue;
    double at = static_cast<double>((from - window.begin).count());
    const double end = static_cast<double>((until - window.begin).count());
    sums.back() += (end - at) * sample.utilization;
    for (auto b = static_cast<std::size_t>(at / bin); b < kBins && at < end; ++b) {
      const double stop = std::min(end, bin * static_cast<double>(b + 1));
      rows.back().utilization[b] += (stop - at) / bin * sample.utilization;
      at = stop;
    }
  }
  std::vector<std::size_t> order(rows.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](auto a, auto b) { return sums[a] > sums[b]; });
  const std::set<std::uint32_t> asked_for(wanted.begin(), wanted.end());
  for (std::size_t i : order) {
    if (sums[i] <= 0) continue;
    if (view.shown < kRows) {
      ++view.shown;
    } else if (asked_for.count(rows[i].link) == 0) {
      continue;
    }
    view.rows.push_back(std::move(rows[i]));
  }
}
}  // namespace

StepView make_step_view(const Timeline& timeline, Duration step, const std::vector<std::uint32_t>& wanted) {
  const Window window = last_step(timeline, step);
  StepView view;
  view.length = (window.end - window.begin).count();
  add_tracks(view, cells_of_lanes(timeline, window, view));
  add_rows(view, timeline, window, wanted);
  return view;
}
}  // namespace topsim::report
