// One collective at many sizes on an idle network: what nccl-tests measures.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "sim/collective/collective.hpp"
#include "sim/executor/progress.hpp"
#include "sim/report/result.hpp"
#include "sim/scenario/scenario.hpp"
#include "topology/catalogue.hpp"

namespace topsim::scenario {

struct BenchSizes {
  Bytes first{8}, last{std::int64_t{8} << 30};
  double factor = 2;  // from one size to the next
};

struct BenchRow {
  Bytes size{};            // nccl-tests' size: of the largest buffer
  std::int64_t count = 0;  // elements (float) that one rank passes to the call
  Duration time{};
  double bytes_per_second = 0;      // size / time: "algbw"
  double bus_bytes_per_second = 0;  // the same in what a link carries: "busbw"
  collective::Choice choice;
  // The library's choice, where it has no message form and `choice` stands in for it.
  std::optional<collective::Algorithm> replaced;
  std::string_view rules;       // NcclModel::rules
  bool host_copies = false;     // what threads of the hosts copy for TCP limits it
  int nics = 0, idle_nics = 0;  // where host copies limit it: of the first rank's node
};

struct Bench {
  std::vector<BenchRow> rows;
  std::vector<report::Finding>
      findings;  // on the cluster's cables, their software, and settings that do nothing
};

// On the cluster with those faults of links, NICs and switches that hold from the beginning to the end. Sizes
// are rounded down to what nccl-tests would send (multiples of 16 bytes per rank). Collectives in the
// scenario's form (pipelined or in steps; packets are always in steps). Throws ConfigError with places.
// `progress` may be null; when its stop flag rises the rows so far come back, and from the first row on they
// are worth printing. `searches` may be those of others.
[[nodiscard]] Bench bench(
    const Scenario& scenario, const topology::Catalogue& catalogue, collective::CollectiveKind kind,
    const BenchSizes& sizes, executor::Progress* progress = nullptr,
    const std::shared_ptr<collective::Searches>& searches = collective::no_searches_yet());
// How many other faults the scenario has.
[[nodiscard]] std::int64_t faults_left_out(const Scenario& scenario);
}  // namespace topsim::scenario
