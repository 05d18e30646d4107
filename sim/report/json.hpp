// topsim.result/1 as JSON text: keys sorted, shortest decimals that read back to the same double, SI units;
// the same result gives the same bytes. README.md beside this file describes every key.
#pragma once

#include <string>
#include <string_view>

#include "sim/report/result.hpp"

namespace topsim::report {

[[nodiscard]] std::string to_json(const Result& result);     // result.json
[[nodiscard]] std::string to_json(const RunRecord& record);  // run.json

// Throws ConfigError naming `file` for any text that is not a result of a known version.
[[nodiscard]] Result result_from_json(std::string_view text, const std::string& file);
[[nodiscard]] Result read_result(const std::string& file);
// Throws ConfigError where it has no step that could be compared or explained, because the run was stopped
// before a measured step ended.
void require_step(const Result& result, const std::string& file);
}  // namespace topsim::report
