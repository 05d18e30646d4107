// A sweep from what was asked for to its report: what the command and the Python module do alike.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "sim/study/sweep.hpp"
#include "sim/study/sweep_text.hpp"

namespace topsim::study {

struct SweepRequest {
  SweepSpace space;
  std::vector<std::string> settings;  // for all points, as --set takes them; `read` applies them
  // The scenario with the settings and then these values set. Throws ConfigError.
  std::function<scenario::Scenario(std::span<const std::string> assignments)> read;
  std::string file;  // SQLite; empty: in memory
  bool allow_oom = false;
  std::string best;                 // a figure; empty: the usual one
  std::vector<std::string> pareto;  // figures; empty: the usual ones
};

class SweepSession {
 public:
  // Throws ConfigError for what can be known before anything runs: figures that do not exist, a path that is
  // set and varied, values that no scenario could have, a file that cannot be used.
  explicit SweepSession(SweepRequest request);
  SweepSession(const SweepSession&) = delete;
  SweepSession& operator=(const SweepSession&) = delete;

  [[nodiscard]] bool dp_follows() const { return dp_follows_; }  // let_data_parallel_follow()
  // assumed_releases() of its space: what report() will say of the rows.
  [[nodiscard]] std::set<std::string> assumed_releases() const {
    return study::assumed_releases(space_, base_);
  }
  [[nodiscard]] const SweepStore& store() const { return *store_; }

  void run(int jobs, SweepProgress& progress);

  // Where others simulate the points: those that are not stored, which the caller must now do; one of them;
  // its row as the store takes it. False from compute(): stopped.
  [[nodiscard]] std::vector<std::size_t> claim_missing();
  [[nodiscard]] std::string key(std::size_t point) const;
  [[nodiscard]] bool compute(std::size_t point, SweepRow& row, executor::Progress& progress) const;
  void add(const SweepRow& row) { store_->add(row); }

  [[nodiscard]] SweepReport report() const;  // of the rows that are stored by now

 private:
  SweepSpace space_;
  topology::Catalogue catalogue_;
  SweepBase base_;
  std::optional<std::size_t> by_;
  std::vector<std::size_t> pareto_figures_;
  std::string scenario_;  // its name
  std::vector<std::string> settings_;
  std::set<std::string> tasks_;
  bool dp_follows_ = false;
  std::unique_ptr<SweepStore> store_;
};
}  // namespace topsim::study
