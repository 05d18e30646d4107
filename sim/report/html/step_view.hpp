// The last measured step in a bounded number of cells: what each class of ranks did, and how busy each class
// of links was. A cell that covers events too short for the screen holds the exact shares of several
// states.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/report/timeline.hpp"

namespace topsim::report {

struct StepView {
  struct Cell {
    std::int64_t begin = 0, length = 0;  // picoseconds after the step's begin
    std::uint32_t state = 0;             // into states
    double share = 1;                    // of the cell's length
  };
  struct Track {
    std::uint32_t lane = 0;  // into Timeline::lanes
    std::vector<Cell> cells;
    bool merged = false;
  };
  struct Row {
    std::uint32_t link = 0;           // into Timeline::links
    std::vector<double> utilization;  // mean of each of the bins
  };
  std::int64_t length = 0;          // picoseconds
  std::vector<std::string> states;  // busy: the phase; idle: the reason
  std::size_t busy_states = 0;      // the first ones
  std::vector<Track> tracks;        // at most 48, spread evenly over the lanes
  std::vector<Row> rows;            // the most utilised first
  std::size_t shown = 0;            // how many of them the heat map has room for; the others were asked for
};

// `wanted`: links, as indices into Timeline::links, that always get a row.
[[nodiscard]] StepView make_step_view(const Timeline& timeline, Duration step,
                                      const std::vector<std::uint32_t>& wanted = {});
}  // namespace topsim::report
