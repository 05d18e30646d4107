#include "sim/report/collective_lines.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

#include "sim/report/per_step.hpp"
#include "sim/report/text.hpp"

namespace topsim::report {

std::vector<CollectiveLine> longest_collectives(const Result& result, std::size_t limit) {
  std::vector<CollectiveLine> lines;
  for (const CollectiveRow& row : result.collectives) {
    const double calls = calls_of_a_rank_per_step(result, row);
    CollectiveLine line{row.group + " " + row.kind,
                        message_text(row.bytes),
                        duration_text(row.each),
                        rate_text(row.bus_bandwidth),
                        row.algorithm + " " + row.protocol,
                        calls,
                        calls * seconds(row.each)};
    const auto alike = std::find_if(lines.begin(), lines.end(),
                                    [&](const CollectiveLine& other) { return other.reads_as(line); });
    if (alike == lines.end()) {
      lines.push_back(std::move(line));
    } else {
      alike->calls += line.calls;
      alike->seconds += line.seconds;
    }
  }
  std::stable_sort(lines.begin(), lines.end(),
                   [](const CollectiveLine& a, const CollectiveLine& b) { return a.seconds > b.seconds; });
  std::vector<CollectiveLine> first, others;
  for (CollectiveLine& line : lines) {
    const bool seen = std::any_of(first.begin(), first.end(),
                                  [&](const CollectiveLine& other) { return other.name == line.name; });
    (seen ? others : first).push_back(std::move(line));
  }
  std::move(others.begin(), others.end(), std::back_inserter(first));
  first.resize(std::min(first.size(), limit));
  return first;
}
}  // namespace topsim::report
