// From files to a trace, whatever the format; gzip is unpacked on the way.
#pragma once

#include <string>
#include <vector>

#include "workloads/spec.hpp"
#include "workloads/trace/trace.hpp"

namespace topsim::workloads::trace {

// `folder`: what relative paths start from when the working directory has no such file. `ranks`: of the job,
// for formats that do not say; 0: unknown. Chakra's path may be PREFIX, PREFIX.0.et or the folder of one
// trace. Throws ConfigError.
[[nodiscard]] Trace load(const TraceSpec& spec, const std::string& folder, std::uint32_t ranks);
// Every file that load() would read; those of Chakra by rank, then its groups.
[[nodiscard]] std::vector<std::string> files_of(const TraceSpec& spec, const std::string& folder);
// What the file's content looks like. Throws ConfigError when it is none of the formats.
[[nodiscard]] std::string detect_format(const std::string& path);
}  // namespace topsim::workloads::trace
