// A workload trace in memory, whatever format it came from: what every rank does, node by node, with its
// dependencies. Importers fill it, writers print it, replay.hpp turns it into a program.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "sim/program/program.hpp"

namespace topsim::workloads::trace {

enum class Kind : std::uint8_t { compute, host, memory, send, recv, collective, join };
[[nodiscard]] std::string_view name_of(Kind kind);

inline constexpr std::int64_t kAny = -1;  // peer or tag of a receive that takes what comes

struct Node {
  std::uint64_t id = 0;  // as the file names it: a node's id, or a line number
  Kind kind = Kind::join;
  program::CollectiveKind collective = program::CollectiveKind::all_reduce;
  std::uint32_t name = 0;       // into Trace::names
  std::uint32_t processor = 0;  // compute and host nodes of one processor run one after the other
  std::uint32_t group = 0;      // collective: into Trace::groups
  std::int64_t peer = 0;        // send, recv: a rank
  std::int64_t tag = 0;
  std::int64_t bytes = 0;  // collective: NCCL's count (program.hpp); send, recv, memory: what moves
  Duration duration{};  // as measured; zero: of memory from the bytes, else from the two below, by roofline
  double operations = 0, operand_bytes = 0;
};

// What some ranks do, all alike. Nodes are in the order of the file.
struct RankTrace {
  std::vector<std::uint32_t> ranks;
  std::vector<Node> nodes;
  std::vector<std::vector<std::uint32_t>> after;  // by node: nodes that must have ended
  std::uint32_t add(const Node& node, std::vector<std::uint32_t> dependencies = {}) {
    nodes.push_back(node);
    after.push_back(std::move(dependencies));
    return static_cast<std::uint32_t>(nodes.size() - 1);
  }
};

// Communicators of one name: disjoint sets of ranks, of which a rank calls its own.
struct Group {
  std::string name;
  program::Dimension dimension = program::Dimension::world;
  std::vector<std::vector<std::uint32_t>> members;
};

struct Trace {
  std::string format;  // "goal", "aicb", "chakra", "native"
  std::string file;    // for messages
  std::uint32_t ranks = 0;
  std::vector<RankTrace> programs;
  std::vector<Group> groups;
  std::vector<std::string> names;
  std::vector<std::string> notes;  // what was ignored or inferred, one sentence each
};

// Words that many nodes share, each once.
class Names {
 public:
  explicit Names(std::vector<std::string>& words) : words_(words) {
    if (words_.empty()) words_.emplace_back();
  }
  std::uint32_t of(std::string_view word);

 private:
  std::vector<std::string>& words_;
  std::map<std::string, std::uint32_t, std::less<>> index_;
};

// Throws ConfigError at a place of a text file; `line` and `column` from 1.
[[noreturn]] void fail_at(const std::string& file, std::string_view text, int line, int column, int length,
                          std::string message, std::string help = {});
// The same where a file has no lines.
[[noreturn]] void fail(const std::string& file, std::string message, std::string help = {});
}  // namespace topsim::workloads::trace
