// The timeline for trace viewers. Both forms hold the same: one track per rank class and stream, its idle
// reasons, one counter per link class, an arrow from each send to its receive.
//   .pftrace  Perfetto's own protobuf (ui.perfetto.dev); times rounded down to its nanoseconds
//   .json     Chrome's trace event format, which older viewers read; microseconds with six decimals
// Either may end in .gz: compressed, as both viewers accept it.
#pragma once

#include <string>

#include "sim/report/timeline.hpp"

namespace topsim::report {
[[nodiscard]] std::string to_perfetto(const Timeline& timeline);
[[nodiscard]] std::string to_chrome_trace(const Timeline& timeline);

// By the file's extension; another one, or a place that cannot be written, is a ConfigError.
void write_trace(const std::string& file, const Timeline& timeline);
}  // namespace topsim::report
