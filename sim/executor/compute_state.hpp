// The run of kernels on an accelerator: its progress, and when it ends.
//
// A run is `count` equal cells (program::Grids): S of work whose blocks share units as they come free, then
// one persistent grid, P long alone. Communication that holds units when the grid is launched keeps some of
// its blocks from starting: they start when the others end or when the communication does, whatever comes
// first, and take L. With c left of the communication at the launch the cell takes
//     s S + g max(P, min(P, c) + L)          s, g: how much longer shared work and a grid take beside it
// A grid that was launched before holds its units and goes on as it did; the communication's blocks wait
// (RankState::wait_for_units).
//
// The second wave: "matmuls take 2x as long" beside NCCL on H100 (pytorch/pytorch issue 143988, pull request
// 144974); 132 blocks beside 24 of an all-gather, 80 % -> 47 % of the peak (forums.developer.nvidia.com
// 337991); NVIDIA/cutlass issue 2471.
#pragma once

#include <algorithm>

#include "sim/base/nearest.hpp"
#include "sim/engine/engine.hpp"
#include "sim/program/program.hpp"

namespace topsim::executor {

// The current pace of a run.
struct Pace {
  double throttle = 1;   // all of it takes so many times longer
  double shared = 1;     // work that shares units, the throttle included
  double grid = 1;       // persistent grids and what they leave over, the throttle included
  double left_over = 0;  // L, of a cell's time
  bool beside = false;   // communication holds units
  double filling = 0;    // part of the time in which kernels take all that the memory moves
  bool operator==(const Pace&) const = default;
};
[[nodiscard]] inline Pace throttled(double factor) {
  return {factor, factor, factor};
}

struct ComputeState {
  bool running = false;
  std::uint32_t op = 0xffffffffU;
  // Picoseconds at full pace: of the current cell, of each that follows.
  std::int64_t shared = 0, grid = 0, left_over = 0;
  std::int64_t cell_shared = 0, cell_grid = 0;
  std::uint32_t cells = 0;  // that follow
  std::int64_t alone = 0;   // what the whole run would take without communication, at the throttles it met
  bool placed = true;       // all blocks of the grid under way have units
  Pace pace;
  std::int64_t filled = 0;  // picoseconds in which runs so far filled the memory
  SimTime begun{};
  SimTime since{};  // all this holds at this time
  engine::Handle event = engine::kNoHandle;

  void start(std::uint32_t index, std::int64_t work, const program::Grids* grids, const Pace& first,
             SimTime now) {
    running = true;
    op = index;
    const bool persists = grids != nullptr && grids->count > 0;
    cells = persists ? grids->count - 1 : 0;
    const std::int64_t cell = persists ? work / grids->count : work;
    cell_grid = persists ? nearest(static_cast<double>(cell) * static_cast<double>(grids->persistent)) : 0;
    cell_shared = cell - cell_grid;
    grid = cell_grid;
    shared = work - cell * cells - cell_grid;
    left_over = 0;
    placed = true;
    pace = first;
    begun = since = now;
    alone = scaled(work, pace.throttle);
  }

  [[nodiscard]] SimTime end() const {
    std::int64_t left = scaled(shared, pace.shared);
    if (launched())
      left += scaled(serial() ? grid + left_over : std::max(grid, left_over), pace.grid);
    else
      left += grid_alone();
    return engine::later(since, Duration(left + cells * whole_cell()));
  }

  // The end may move. Also called where the pace stays: rounding must not depend on the order of events at
  // one instant.
  void change(const Pace& next, SimTime now) {
    filled = filled_at(now);
    advance((now - since).count());
    since = now;
    if (next.throttle != pace.throttle)
      alone += scaled(left(), next.throttle) - scaled(left(), pace.throttle);
    pace = next;
  }

  void stop(SimTime now) {
    filled = filled_at(now);
    running = false;
  }

  [[nodiscard]] std::int64_t filled_at(SimTime now) const {
    return running && pace.filling > 0
               ? filled + nearest(static_cast<double>((now - since).count()) * pace.filling)
               : filled;
  }

  // The part of a run's time `took` that communication beside it cost.
  [[nodiscard]] Duration slowed(Duration took) const { return std::max(Duration{}, took - Duration(alone)); }

  [[nodiscard]] bool same(const ComputeState& other) const {
    return running == other.running && op == other.op && shared == other.shared && grid == other.grid &&
           left_over == other.left_over && cells == other.cells && placed == other.placed &&
           pace == other.pace && since == other.since && alone == other.alone;
  }

 private:
  [[nodiscard]] std::int64_t left() const { return shared + grid + cells * (cell_shared + cell_grid); }
  [[nodiscard]] static std::int64_t scaled(std::int64_t work, double pace) {
    return pace == 1 ? work : nearest(static_cast<double>(work) * pace);
  }
  // Does `work` for up to `time`; returns whether it is done, and leaves the rest of the time.
  static bool take(std::int64_t& work, double pace, std::int64_t& time) {
    const std::int64_t needed = scaled(work, pace);
    if (time < needed) {
      work = std::max<std::int64_t>(0, work - (pace == 1 ? time : nearest(static_cast<double>(time) / pace)));
      time = 0;
      return false;
    }
    time -= needed;
    work = 0;
    return true;
  }
  [[nodiscard]] bool launched() const { return grid < cell_grid || cell_grid == 0; }
  [[nodiscard]] bool serial() const { return pace.beside && !placed; }
  [[nodiscard]] std::int64_t second_wave() const {
    return pace.beside ? scaled(cell_shared + cell_grid, pace.left_over) : 0;
  }
  [[nodiscard]] std::int64_t grid_alone() const {
    return cell_grid == 0 ? 0 : scaled(cell_grid + second_wave(), pace.grid);
  }
  [[nodiscard]] std::int64_t whole_cell() const { return scaled(cell_shared, pace.shared) + grid_alone(); }

  void advance(std::int64_t time) {
    placed |= time > 0 && !pace.beside;
    while (time > 0) {
      if (!take(shared, pace.shared, time) || time == 0) return;
      if (!launched()) {
        left_over = second_wave();
        placed = !pace.beside;
      }
      if (serial()) {
        if (!take(grid, pace.grid, time) || !take(left_over, pace.grid, time)) return;
      } else {
        std::int64_t both = time;
        const bool blocks_done = take(left_over, pace.grid, both);
        if (!take(grid, pace.grid, time) || !blocks_done) return;
        time = std::min(time, both);
      }
      if (cells == 0) return;
      const std::int64_t whole = std::max<std::int64_t>(1, whole_cell());
      const auto passed = static_cast<std::uint32_t>(std::min<std::int64_t>(cells, time / whole));
      cells -= passed;
      time -= passed * whole;
      if (cells == 0 || time <= 0) return;
      --cells;
      shared = cell_shared;
      grid = cell_grid;
    }
  }
};
}  // namespace topsim::executor
