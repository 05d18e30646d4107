// `topsim explain`: where the step goes, what limits it, what a faster part would buy.
#pragma once

#include <optional>
#include <string>

#include "sim/report/result.hpp"
#include "sim/study/what_if.hpp"

namespace topsim::study {
// `what_ifs` may be empty: the result's scenario was not simulated again.
[[nodiscard]] std::string explain_text(const report::Result& result, const std::optional<WhatIfs>& what_ifs,
                                       int columns);
[[nodiscard]] std::string what_if_json(const WhatIfs& what_ifs);  // an object
// `complete` is false where parts are missing after an interruption.
[[nodiscard]] std::string explain_json(const report::Result& result, const std::optional<WhatIfs>& what_ifs,
                                       bool complete = true);
}  // namespace topsim::study
