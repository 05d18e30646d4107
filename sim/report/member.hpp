// One rank or one link of a result, where those that behave alike are one row.
#pragma once

#include <span>
#include <string>
#include <utility>
#include <vector>

#include "sim/base/error.hpp"
#include "sim/report/result.hpp"
#include "topology/topology.hpp"

namespace topsim::report {

// The row of its class, with count 1 and its own names.
struct Members {
  double steps = 1;                                      // the figures of links are totals over these
  std::vector<std::pair<RankRow, std::uint32_t>> ranks;  // with how many behave alike, itself included
  std::vector<std::pair<LinkRow, std::uint32_t>> links;
};

[[nodiscard]] ConfigError no_such_rank(std::uint32_t rank, std::size_t ranks);
// Links by name (topology/named_link.hpp), of which a part has its share of the bytes; one that carried
// nothing has zeros, and 0 alike. Throws ConfigError when there is no such rank or link. REQUIRES: `topology`
// is what the result was simulated on.
[[nodiscard]] Members find_members(const Result& result, const topology::Topology& topology,
                                   std::span<const std::uint32_t> ranks, std::span<const std::string> links);

[[nodiscard]] std::string to_text(const Members& members);
// {"format": "topsim.members/1", "ranks": [...], "links": [...]}: rows as in result.json, each with "alike".
[[nodiscard]] std::string to_json(const Members& members);
}  // namespace topsim::report
