// Many scenarios that differ in a few values, simulated in parallel. Rows go to the store as they finish; a
// point whose row is stored is not run again. The rows do not depend on the number of threads.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <string_view>

#include "sim/collective/collective.hpp"
#include "sim/executor/progress.hpp"
#include "sim/scenario/scenario.hpp"
#include "sim/study/sweep_store.hpp"
#include "topology/catalogue.hpp"

namespace topsim::study {

// What all points share.
struct SweepBase {
  // The scenario with these values set, as --set takes them. Throws ConfigError.
  std::function<scenario::Scenario(std::span<const std::string> assignments)> read;
  const topology::Catalogue* catalogue = nullptr;
  std::string inputs;  // digest of what lies outside the scenario: inputs_digest()
  bool allow_oom = false;
  std::shared_ptr<collective::Searches> searches = collective::no_searches_yet();  // all points share them
};

struct SweepProgress {
  std::atomic<bool> stop{false};  // points that run are given up, their rows left out
  std::atomic<std::size_t> total{0}, done{0}, found{0}, failed{0};  // found: stored before
};

// The digest of this topsim version and of the hardware figures in `config_directories`, so that rows of
// others are not reused.
[[nodiscard]] std::string inputs_digest(std::span<const std::string> config_directories);

// Throws ConfigError with the mistakes in the space that no scenario could have: paths that do not exist,
// values that cannot be read. Each value is read once.
void check_values(const SweepSpace& space, const SweepBase& base);

// The scenario without any point's values, or with those of the first point that can be read: it may leave to
// the space what it must have. Where none can, throws the scenario's own mistake, with its place.
[[nodiscard]] scenario::Scenario readable_scenario(const SweepSpace& space, const SweepBase& base);

// When the space changes how many accelerators a replica or the job has, a "dp" in the file would make nearly
// every point fail: it is left out, and follows. Not when the space names dp, or --set gave it, alone or
// within an object. Returns whether it did.
bool let_data_parallel_follow(const SweepSpace& space, SweepBase& base);

// Releases of one framework, of several years, that its name alone means at the first 1,000 points, where
// there are such: the points then differ by more than what is varied. Points on files of devices are left
// out.
[[nodiscard]] std::set<std::string> assumed_releases(const SweepSpace& space, const SweepBase& base);
// Those that these rows ran.
[[nodiscard]] std::set<std::string> assumed_releases(std::span<const SweepRow> rows);

// What a step of the points is: "pretrain", "decode", ... as workload.task names them, kReplay of a trace.
// `given`: readable_scenario(). Of the first 1,000 points where they may differ.
inline constexpr std::string_view kReplay = "trace";
[[nodiscard]] std::set<std::string> tasks_of(const SweepSpace& space, const SweepBase& base,
                                             const scenario::Scenario& given);

// What decides the outcome of a point; what identifies this sweep.
[[nodiscard]] std::string point_key(const SweepBase& base, std::span<const std::string> assignments);
[[nodiscard]] SweepIdentity sweep_identity(const SweepSpace& space, const SweepBase& base);

// With this begins the message of a row whose point met a mistake of topsim's own.
inline constexpr std::string_view kInternalError = "internal error: ";

// Simulates one point. An error becomes its row's message. False: stopped, the row is not complete.
[[nodiscard]] bool run_point(const SweepBase& base, std::span<const std::string> assignments, SweepRow& row,
                             executor::Progress& progress);

// All points that are not stored. `jobs` at a time, 0: one per core.
void run_sweep(const SweepSpace& space, const SweepBase& base, SweepStore& store, int jobs,
               SweepProgress& progress);
}  // namespace topsim::study
