// Everything that a run writes to --out DIR: result.json, run.json and the tables.
#pragma once

#include <string>
#include <string_view>

#include "sim/report/result.hpp"
#include "sim/report/timeline.hpp"

namespace topsim::report {

// Throws ConfigError where the folder is missing: before a long run rather than after it.
void check_place(const std::string& file);
// The same, also where the file's extension is no trace format.
void check_trace(const std::string& file);
// Throws ConfigError when the place cannot be written.
void write_file(const std::string& file, std::string_view text);

// Makes the folder and those above it. Throws ConfigError where that cannot be.
void make_directory(const std::string& directory);
// Makes the folder. `timeline` may be null; of more than so many bytes its table is packed
// (timeline.csv.gz). Returns the path of result.json.
inline constexpr std::size_t kLargestPlainTable = 32'000'000;
std::string write_directory(const std::string& directory, const Result& result, const RunRecord& record,
                            const Timeline* timeline, std::size_t largest_plain = kLargestPlainTable);
[[nodiscard]] bool has_packed_timeline(const std::string& directory);
}  // namespace topsim::report
