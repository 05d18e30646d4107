// The report page: one self-contained file that opens from disk. The page itself (page.html, its style, its
// scripts, the chart library) is put together at build time and lies inside the program; here the data is
// added: the very text of result.json, the timeline of the last step, and the drawing of the cluster.
#pragma once

#include <string>

#include "sim/report/html/picture.hpp"
#include "sim/report/result.hpp"
#include "sim/report/timeline.hpp"

namespace topsim::report {

// Whether the build found the chart library.
[[nodiscard]] bool has_page();
// Throws ConfigError, which says how to get the page, where has_page() is false.
void require_page();

// `timeline` and `picture` may be null: their sections then say what is missing.
[[nodiscard]] std::string to_html(const Result& result, const Timeline* timeline, const Picture* picture);
}  // namespace topsim::report
