// The formats, one .cpp each, and the table that detection, loading, converting, help and messages ask.
// Readers throw ConfigError with file:line:column (text formats) or the byte and node (Chakra); none crashes
// on any input.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

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

// What these cannot express and leave out, one sentence each; writers refuse what would change the meaning of
// the trace.
[[nodiscard]] std::vector<std::string> left_out_of_chakra(const Trace& trace);
[[nodiscard]] std::vector<std::string> left_out_of_goal(const Trace& trace);

// A format is either one file or, as Chakra, one file a rank. Nothing has a default, so that the compiler
// warns of whatever a new row leaves out.
struct Format {
  std::string_view name;              // as scenarios, --from and --to write it
  std::string_view sign;              // by which people know its files, in a list of all; empty: none
  bool (*is)(std::string_view text);  // from the first letter on; null: its files' names tell
  bool loose;                         // others may look so, too, and are asked first
  // One file. `ranks`: of the job, 0: unknown.
  Trace (*read)(const std::string& text, const std::string& file, std::uint32_t ranks);
  decltype(&read_chakra) read_ranks;  // one file a rank
  std::string (*write)(const Trace& trace);
  decltype(&write_chakra) write_ranks;                       // neither: is only read
  std::vector<std::string> (*left_out)(const Trace& trace);  // null: all is written
};
[[nodiscard]] std::span<const Format> formats();
[[nodiscard]] const Format* find_format(std::string_view name);  // null: none has this name
[[nodiscard]] std::vector<std::string> format_names();
[[nodiscard]] std::vector<std::string> written_names();  // first those in which nothing is left out
}  // namespace topsim::workloads::trace
