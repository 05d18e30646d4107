// Keeps a sweep's rows in an SQLite file, one transaction per row, so that no finished row is lost when the
// process is killed, and others may read while it runs.
//
//   runs    what was simulated, by the digest of everything that decides its outcome; never deleted
//   points  the points of the sweep, each with the digest of its run
//   rows    a view of both in the order of the points: what people query
//   meta    which sweep the points belong to, which topsim wrote
//
// A file serves one scenario and the paths that vary; another's table in it is refused. Their values may
// change: `points` and `rows` are those of the last sweep, `runs` is shared, so a grid with one value more
// runs only what is new.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "sim/study/sweep_space.hpp"

namespace topsim::study {

struct SweepRow {
  std::size_t point = 0;
  std::vector<std::string> values;  // of the space's paths
  std::string key;                  // digest
  bool ok = false;
  std::string message;  // why it could not be simulated, or what its run warns of, a line each
  // The release of the framework that its run took, where the scenario names the framework alone; else empty.
  std::string assumed_release;
  std::vector<std::optional<double>> figures;  // of sweep_figures(); empty when not ok
};

// Of the view `rows`, and of everything that lists rows.
[[nodiscard]] std::vector<std::string> row_columns(const SweepSpace& space);

// What distinguishes a sweep from others.
struct SweepIdentity {
  std::string exact;   // with its values and everything that decides its outcomes
  std::string family;  // the scenario and the paths that vary, with any values
};

// All members may be called from several threads at once.
class SweepStore {
 public:
  // `file` empty: in memory. Throws ConfigError when the file cannot be used.
  SweepStore(const std::string& file, const SweepSpace& space, const SweepIdentity& identity);
  ~SweepStore();
  SweepStore(const SweepStore&) = delete;
  SweepStore& operator=(const SweepStore&) = delete;

  // Notes the point. True: its run is neither stored nor claimed by another point, and is the caller's to do.
  [[nodiscard]] bool claim(std::size_t point, const std::string& key);
  // Committed when this returns.
  void add(const SweepRow& row);

  [[nodiscard]] std::size_t left_out() const;       // points of the file's last table that this sweep lacks
  [[nodiscard]] std::size_t stored_before() const;  // runs that were there when the file was opened
  // Of the points whose run is stored, in their order.
  [[nodiscard]] std::vector<SweepRow> rows() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};
}  // namespace topsim::study
