// What users write and read around a bench: nccl-tests' names and sizes, and topsim.bench/1.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "sim/scenario/bench/bench.hpp"

namespace topsim::scenario {

struct BenchCollective {
  collective::CollectiveKind kind;
  const char *name, *operation;  // "all_reduce", "sum"
  int root;                      // -1: none
};
[[nodiscard]] std::span<const BenchCollective> bench_collectives();

// Unknown names throw ConfigError with the closest one and the list.
[[nodiscard]] const BenchCollective& bench_collective(const std::string& name);
// "8", "64K", "16MiB": powers of 1024, as nccl-tests reads them.
[[nodiscard]] Bytes bench_size(const std::string& text);
// Overrides NCCL's tuner; empty names and 0 leave it the choice. Throws ConfigError for names and numbers
// that NCCL has not, and for a collective that has nothing to choose.
void force(Scenario& scenario, const BenchCollective& what, const std::string& algorithm,
           const std::string& protocol, int channels);
// The words of these choices, in NCCL's order.
[[nodiscard]] std::vector<std::string> algorithm_words();
[[nodiscard]] std::vector<std::string> protocol_words();
// Throws ConfigError where any of them is given: messages of `what` go straight to their receivers.
void refuse_choices(std::string_view what, const std::string& algorithm, const std::string& protocol,
                    int channels);

// nccl-tests' own table as it is with -c 0 (no data to check), and beside it what NCCL chose. The in-place
// time is the same: the model has no difference. `complete` is false after an interruption; `left_out`: how
// many faults of the scenario bench() leaves out. The table's remarks are "notes" of the JSON.
[[nodiscard]] std::string bench_table(const BenchCollective& what, const std::vector<BenchRow>& rows);
[[nodiscard]] std::string bench_json(const std::vector<BenchRow>& rows, bool complete = true,
                                     std::int64_t left_out = 0);
}  // namespace topsim::scenario
