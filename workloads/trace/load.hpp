// From files to a trace, whatever the format; gzip is unpacked on the way.
#pragma once

#include <string>
#include <vector>

#include "workloads/spec.hpp"
#include "workloads/trace/trace.hpp"

namespace topsim::workloads::trace {

// Where a relative path of a scenario in `folder` leads: beside it, else from the working directory.
[[nodiscard]] std::string find_path(const std::string& path, const std::string& folder);
// `folder`: of the scenario, for find_path(). `ranks`: of the job,
// for formats that do not say; 0: unknown. Chakra's path may be PREFIX, PREFIX.0.et or the folder of one
// trace. Throws ConfigError.
[[nodiscard]] Trace load(const TraceSpec& spec, const std::string& folder, std::uint32_t ranks);
// Every file that load() would read; those of Chakra by rank, then its groups.
[[nodiscard]] std::vector<std::string> files_of(const TraceSpec& spec, const std::string& folder);
// The format, judged by the file's content. Throws ConfigError when it is none of the formats.
[[nodiscard]] std::string detect_format(const std::string& path);
}  // namespace topsim::workloads::trace
