// The page of one run: the exact text of result.json, the timeline of the last step, the drawing of the
// cluster.
#pragma once

#include <string>
#include <string_view>

#include "sim/report/html/page.hpp"
#include "sim/report/html/picture.hpp"
#include "sim/report/result.hpp"
#include "sim/report/timeline.hpp"

namespace topsim::report {

// `timeline` and `picture` may be null: their sections then say what is missing. `what_if`: the "what_if" of
// topsim.explain/1 as JSON text, when faster parts were simulated.
[[nodiscard]] std::string to_html(const Result& result, const Timeline* timeline, const Picture* picture,
                                  std::string_view what_if = {});
}  // namespace topsim::report
