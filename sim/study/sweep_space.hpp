// The points of a sweep: which paths of a scenario take which values.
#pragma once

#include <string>
#include <vector>

#include "sim/config/value.hpp"

namespace topsim::study {

struct SweepSpace {
  std::vector<std::string> paths;                // "workload.plan.tp"
  std::vector<std::vector<std::string>> points;  // a value for each path, as --set takes it

  // What --set would be given: "workload.plan.tp=4".
  [[nodiscard]] std::vector<std::string> assignments(std::size_t point) const;
};

// "PATH=V1,V2,...": a point for each value. Commas inside quotes, brackets and braces belong to the value.
[[nodiscard]] SweepSpace vary(const std::string& text);

// A list of points: JSON ([{"workload.plan.tp": 4, "workload.plan.pp": 2}, ...]) or, from any file not named
// .json, CSV with the paths in its first line. Every point names the same paths.
[[nodiscard]] SweepSpace read_points(const std::string& file);

// Every point of the one with every point of the other, which changes faster. Throws ConfigError for a path
// that is in both.
[[nodiscard]] SweepSpace product(const SweepSpace& slow, const SweepSpace& fast);

// What a value means: JSON where it is JSON, a string where it is not, as --set reads it.
[[nodiscard]] config::Value value_of(const std::string& text);
// The same as people write it: a string without its quotes, all else as JSON on one line.
[[nodiscard]] std::string plain(const std::string& text);
}  // namespace topsim::study
