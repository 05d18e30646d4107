// Published measurements, as scenarios with the published figure. A file of configs/validation, or of one's
// own, is a table: a scenario that all its rows share, and rows that say what each of them changes.
//
//   { "description": "...", "source": "...",
//     "bars":     { "vtrain-multi": { "mean": 0.09 } },   today's level: fails when the error is larger
//     "goals":    { "vtrain-multi": { "mean": 0.05 } },   where it should be; shown, never failed
//     "left_out": [ { "rows": 12, "why": "..." } ],       rows of the source that are not here
//     "base":     { ... a scenario ... },
//     "named":    { "workload.model": { "gpt-18b": { ... } } },   long values by a short name
//     "columns":  ["name", "workload.plan.tp", "workload.model", "published", "source"],
//     "rows":     [["a", 8, "gpt-18b", "9.6 s", "row 28"], ...] }
//
// A column is a path of the scenario (null: as the base says), or one of
//   name, source, family   family: the file's name where there is none
//   release                of the framework; rows of different releases are not ranked together
//   published              time of a step
//   memory                 of the same run: the fullest accelerator's peak; cases of the family FILE/memory
//   a share                FILE/idle and so on:
//     idle                     of the step, in which an accelerator computes nothing
//     communication            of the step, in which it does so because of messages
//     communication_busy       of the step, in which messages of its own are under way
//     overlapped               of that time, in which it computes as well
//     communication_of_kernels that time over its sum with the time of computing
//   compared_with          another row of the file; FILE/compared has the ratio of the row's cost to that
//                          row's, in accelerator seconds a sample
//   ratio                  that ratio as published, where the times are not
//   collective, points     a sweep, {"64 KiB": "21 us", ...}; cases of FILE/small (below 64 KiB), FILE/medium
//                          and FILE/large (16 MB and above)
// "scored": false keeps a file out of the total over families: rows that miss a part of their configuration.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "sim/base/units.hpp"
#include "sim/config/reader.hpp"
#include "sim/program/program.hpp"

namespace topsim::validation {

enum class Share : std::uint8_t {
  idle,
  communication,
  communication_busy,
  overlapped,
  communication_of_kernels
};
inline constexpr std::size_t kShares = 5;
[[nodiscard]] std::string name_of(Share share);  // the column's

struct Point {
  Bytes size{};
  Duration published{};
};

// A row: one training step, or one collective at many sizes.
struct Case {
  std::string name, family, source;
  std::string release;                   // of the software that was measured; empty: one for all rows
  std::string base;                      // scenario, JSON text
  std::string directory;                 // of its file: what "file" in the scenario is relative to
  std::vector<std::string> assignments;  // what the row changes, as --set does
  Duration published{};                  // of the step; 0: not asked for
  std::optional<Bytes> memory;
  std::map<Share, double> shares;
  std::string compared_with;    // name of another case of the file; empty: none
  std::optional<double> ratio;  // published cost of this row over that one's
  std::optional<program::CollectiveKind> collective;
  std::vector<Point> points;  // of the collective
};

// Shares, 0.06 for 6 %. Unset: not asked for.
struct Bar {
  std::optional<double> mean, median, percentile_90, max, bias;
  std::optional<double> tau;    // at least
  std::optional<double> slope;  // of scaling series, mean absolute difference a doubling
};

struct LeftOut {
  int rows = 0;
  std::string why;
};

struct CaseFile {
  std::string name, directory, description, source;
  std::map<std::string, Bar> bars, goals;  // by family
  std::vector<LeftOut> left_out;
  bool scored = true;
  std::vector<Case> cases;
};

// Throws ConfigError with all mistakes of the file.
[[nodiscard]] CaseFile read_case_file(const std::string& path);

// All files of the library's validation folders, sorted by name. With `wanted`: the files whose paths
// (*.json) are among these, whole, and the library's cases whose file, family or name is one of the others.
// Throws ConfigError when one of them names nothing, or two files have rows of one family.
[[nodiscard]] std::vector<CaseFile> find_cases(const std::vector<std::string>& wanted,
                                               const config::Library& library);

// The family of a sweep's point.
[[nodiscard]] std::string band_of(const std::string& family, Bytes size);
}  // namespace topsim::validation
