// The formats, one .cpp each. Readers throw ConfigError with file:line:column (text formats) or the byte and
// node (Chakra); none crashes on any input.
#pragma once

#include <string>

#include "workloads/trace/trace.hpp"

namespace topsim::workloads::trace {

// GOAL (LogGOPSim, ATLAHS): sends, receives and calculations of MPI ranks, as text.
[[nodiscard]] Trace read_goal(const std::string& text, const std::string& file);
[[nodiscard]] std::string write_goal(const Trace& trace);

// AICB / SimAI (and ASTRA-sim 1.0) text: one list of layers that every rank runs. `ranks`: of the job, 0
// where only the file can say.
[[nodiscard]] Trace read_aicb(const std::string& text, const std::string& file, std::uint32_t ranks);

// MLCommons Chakra: one file a rank. `files[r]` and `bytes[r]` (unpacked) of rank r; `groups`: text of the
// JSON that names process groups, empty where there is none.
[[nodiscard]] Trace read_chakra(const std::vector<std::string>& files, const std::vector<std::string>& bytes,
                                const std::string& groups, const std::string& groups_file);
struct ChakraFiles {
  std::vector<std::string> ranks;  // bytes of PREFIX.<rank>.et
  std::string groups;              // text of PREFIX.json
};
[[nodiscard]] ChakraFiles write_chakra(const Trace& trace);

// topsim's own JSON, topsim.trace/1, described at the head of native.cpp.
[[nodiscard]] Trace read_native(const std::string& text, const std::string& file);
[[nodiscard]] std::string write_native(const Trace& trace);

// What the writer of `format` ("chakra", "goal") cannot express and leaves out, one sentence each; writers
// refuse what would change the meaning of the trace.
[[nodiscard]] std::vector<std::string> left_out(const Trace& trace, std::string_view format);
}  // namespace topsim::workloads::trace
