// Why an accelerator waits, in the same words on every screen; the page's are in html/text.js.
#pragma once

#include <string>

#include "sim/executor/outcome.hpp"

namespace topsim::report {

// "exposed tensor parallel", "waiting for the slowest"
[[nodiscard]] std::string reason_text(executor::Reason reason);
// Of a replayed trace, which has messages and ranks, and neither pipelines nor stages.
[[nodiscard]] std::string trace_reason_text(executor::Reason reason);
}  // namespace topsim::report
