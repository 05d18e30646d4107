// What a format cannot express.
#include <fmt/format.h>

#include <functional>

#include "workloads/trace/formats.hpp"

namespace topsim::workloads::trace {
namespace {
std::size_t count(const Trace& trace, const std::function<bool(const Node&)>& which) {
  std::size_t found = 0;
  for (const RankTrace& program : trace.programs)
    for (const Node& node : program.nodes) found += which(node) ? program.ranks.size() : 0;
  return found;
}
}  // namespace

std::vector<std::string> left_out_of_chakra(const Trace& trace) {
  const auto works = [](const Node& node) { return node.kind == Kind::compute || node.kind == Kind::host; };
  const auto found = count(trace, [&](const Node& n) { return works(n) && n.processor > 0; });
  if (found == 0) return {};
  return {fmt::format("{} nodes of processors beside the first run on it, the only one that Chakra knows",
                      found)};
}

std::vector<std::string> left_out_of_goal(const Trace& trace) {
  std::vector<std::string> sentences;
  const auto is = [](Kind kind) { return [kind](const Node& node) { return node.kind == kind; }; };
  for (const auto& [kind, name] : {std::pair{Kind::host, "host"}, std::pair{Kind::memory, "memory"}})
    if (const auto found = count(trace, is(kind)))
      sentences.push_back(fmt::format(
          "{} {} nodes compute on a cpu of their rank, the only place that GOAL knows", found, name));
  return sentences;
}
}  // namespace topsim::workloads::trace
