#include "workloads/trace/trace.hpp"

#include <algorithm>

#include "sim/base/error.hpp"

namespace topsim::workloads::trace {

std::string_view name_of(Kind kind) {
  switch (kind) {
    case Kind::compute:
      return "compute";
    case Kind::host:
      return "host";
    case Kind::memory:
      return "memory";
    case Kind::send:
      return "send";
    case Kind::recv:
      return "recv";
    case Kind::collective:
      return "collective";
    case Kind::join:
      return "join";
  }
  return "unknown";
}

std::uint32_t Names::of(std::string_view word) {
  const auto found = index_.find(word);
  if (found != index_.end()) return found->second;
  // If every node has its own name there may be more names than a program can hold; the further ones get the
  // first word, which stands for no name.
  constexpr std::size_t kMost = 60'000;
  if (words_.size() >= kMost) return 0;
  words_.emplace_back(word);
  index_.emplace(word, static_cast<std::uint32_t>(words_.size() - 1));
  return static_cast<std::uint32_t>(words_.size() - 1);
}

void fail_at(const std::string& file, std::string_view text, int line, int column, int length,
             std::string message, std::string help) {
  Problem problem;
  problem.place = {file, line, column, length};
  problem.message = std::move(message);
  problem.help = std::move(help);
  std::size_t begin = 0;
  for (int i = 1; i < line; ++i) {
    const std::size_t end = text.find('\n', begin);
    if (end == std::string_view::npos) break;
    begin = end + 1;
  }
  constexpr std::size_t kShown = 200;
  problem.source_line = text.substr(begin, std::min(text.find('\n', begin), begin + kShown) - begin);
  while (!problem.source_line.empty() && problem.source_line.back() == '\r') problem.source_line.pop_back();
  throw ConfigError({problem});
}

void fail(const std::string& file, std::string message, std::string help) {
  Problem problem;
  problem.place = {file, 0, 0, 1};
  problem.message = std::move(message);
  problem.help = std::move(help);
  throw ConfigError({problem});
}
}  // namespace topsim::workloads::trace
