// Why an accelerator waits, in the same words on every screen; the page's are in html/text.js.
#pragma once

#include <string>

#include "sim/executor/outcome.hpp"

namespace topsim::report {

// "exposed tensor parallel", "waiting for the slowest"
[[nodiscard]] std::string reason_text(executor::Reason reason);
// For a replayed trace, which has messages and ranks but no pipelines or stages.
[[nodiscard]] std::string trace_reason_text(executor::Reason reason);
}  // namespace topsim::report
