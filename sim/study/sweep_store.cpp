#include "sim/study/sweep_store.hpp"

#include <fmt/format.h>

#include <mutex>
#include <set>
#include <utility>

#include "sim/base/error.hpp"
#include "sim/report/version.hpp"
#include "sim/study/digest.hpp"
#include "sim/study/sweep_database.hpp"
#include "sim/study/sweep_figures.hpp"

namespace topsim::study {
namespace {

constexpr const char* kFormat = "topsim.sweep/1";
// fits_memory() (sweep_choice.hpp) in SQL; null for what was not simulated.
constexpr const char* kFits =
    "CASE status WHEN 'ok' THEN coalesce(memory_bytes <= memory_usable_bytes, 1) END";

std::string quoted(const std::string& name) {
  std::string text = "\"";
  for (const char c : name) text += c == '"' ? std::string("\"\"") : std::string(1, c);
  return text + '"';
}

// Of the table `runs`, after its key.
constexpr const char* kSaid[] = {"status", "message", "assumed_release"};

std::string run_columns(const char* of_text, const char* of_figures) {
  std::string text;
  for (const char* said : kSaid) text += ", " + std::string(said) + of_text;
  for (const SweepFigure& figure : sweep_figures()) text += ", " + quoted(figure.name) + of_figures;
  return text;
}

std::string path_columns(const SweepSpace& space) {
  std::string text;
  for (const std::string& path : space.paths) text += ", " + quoted(path);
  return text;
}

// A value as it is compared: "1.50" of a list is 1.5 in the file.
std::string compared(const std::string& text) {
  const config::Value value = value_of(text);
  return value.kind == config::Kind::integer  ? fmt::format("{}", static_cast<double>(value.integer))
         : value.kind == config::Kind::number ? fmt::format("{}", value.number)
                                              : plain(text);
}

std::string marks(std::size_t count) {
  std::string text;
  for (std::size_t i = 0; i < count; ++i) text += i == 0 ? "?" : ", ?";
  return text;
}
}  // namespace

struct SweepStore::Impl {
  Impl(const std::string& file, const SweepSpace& swept, const SweepIdentity& identity)
      : space(swept), database(file) {
    open(file, identity);
    const std::size_t columns = 1 + std::size(kSaid) + sweep_figures().size();
    add_point = std::make_unique<Statement>(
        database, "INSERT OR REPLACE INTO points VALUES (" + marks(2 + space.paths.size()) + ")");
    add_run =
        std::make_unique<Statement>(database, "INSERT OR IGNORE INTO runs VALUES (" + marks(columns) + ")");
    Statement keys(database, "SELECT key FROM runs");
    while (keys.step()) known.insert(keys.text(0));
    stored_before = known.size();
    Statement points(database, "SELECT point, key FROM points");
    while (points.step()) noted.emplace(points.integer(0), points.text(1));
  }

  void open(const std::string& file, const SweepIdentity& identity) {
    refuse_foreign(file);
    // With a write-ahead log, rows survive the death of the process without a wait for the disk at every row.
    database.run("PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL");
    database.run("BEGIN IMMEDIATE");
    refuse_foreign(file);  // again, in case another process changed the file in between
    database.run("CREATE TABLE IF NOT EXISTS meta (key TEXT PRIMARY KEY, value TEXT) WITHOUT ROWID");
    database.run("CREATE TABLE IF NOT EXISTS runs (key TEXT PRIMARY KEY" + run_columns(" TEXT", " REAL") +
                 ") WITHOUT ROWID");
    if (meta("sweep") != identity.exact) {
      if (meta("family")) leave_table(file, identity);
      database.run("DROP VIEW IF EXISTS rows; DROP TABLE IF EXISTS points");
      database.run("CREATE TABLE points (point INTEGER PRIMARY KEY, key TEXT" + path_columns(space) + ")");
      std::string columns;
      for (const std::string& name : row_columns(space))
        columns +=
            (columns.empty() ? "" : ", ") + (name == "fits" ? kFits + std::string(" AS fits") : quoted(name));
      database.run("CREATE VIEW rows AS SELECT " + columns +
                   " FROM points JOIN runs USING (key) ORDER BY point");
    }
    for (const auto& [key, value] : {std::pair{"format", std::string(kFormat)},
                                     {"sweep", identity.exact},
                                     {"family", identity.family},
                                     {"figures", run_columns("", "")},
                                     {"topsim", std::string(report::version())}}) {
      Statement(database, "INSERT OR REPLACE INTO meta VALUES (?, ?)")
          .bind(std::string(key))
          .bind(value)
          .run();
    }
    database.run("COMMIT");
  }

  // The last sweep's table gives way to this one's, if it is of the same scenario and paths.
  void leave_table(const std::string& file, const SweepIdentity& identity) {
    Statement count(database, "SELECT count(*) FROM rows");
    count.step();
    if (count.integer(0) == 0) return;
    if (meta("family") != identity.family)
      throw ConfigError(
          fmt::format("\"{}\" holds {} rows of another sweep, of another scenario or with other "
                      "--vary paths, which this one would replace",
                      file, count.integer(0)),
          "name another file with --out");
    std::set<std::vector<std::string>> here;
    for (std::vector<std::string> point : space.points) {
      for (std::string& value : point) value = compared(value);
      here.insert(std::move(point));
    }
    Statement query(database, "SELECT point" + path_columns(space) + " FROM rows");
    while (query.step()) {
      std::vector<std::string> values;
      for (std::size_t i = 0; i < space.paths.size(); ++i)
        values.push_back(compared(query.text(static_cast<int>(i) + 1)));
      left_out += here.contains(values) ? 0 : 1;
    }
  }

  [[nodiscard]] std::optional<std::string> meta(const std::string& key) const {
    Statement query(database, "SELECT value FROM meta WHERE key = ?");
    query.bind(key);
    return query.step() ? std::optional(query.text(0)) : std::nullopt;
  }

  void refuse_foreign(const std::string& file) const {
    Statement tables(database, "SELECT count(*), total(name = 'meta') FROM sqlite_master");
    tables.step();
    if (tables.integer(0) == tables.integer(1)) return;
    if (tables.integer(1) == 0 || meta("format") != kFormat)
      throw ConfigError('"' + file + "\" holds something else than a sweep", "name another file with --out");
    if (meta("figures") != run_columns("", ""))
      throw ConfigError(
          '"' + file + "\" was written by topsim " + meta("topsim").value_or("?") + ", with other columns",
          "name another file with --out");
  }

  SweepSpace space;
  Database database;
  std::unique_ptr<Statement> add_point, add_run;
  std::set<std::string> known;  // stored, or being computed
  std::set<std::pair<std::int64_t, std::string>> noted;
  std::size_t stored_before = 0, left_out = 0;
  mutable std::mutex mutex;
};

std::vector<std::string> row_columns(const SweepSpace& space) {
  std::vector<std::string> columns{"point"};
  columns.insert(columns.end(), space.paths.begin(), space.paths.end());
  columns.insert(columns.end(), {"status", "message", "fits", "assumed_release"});
  for (const SweepFigure& figure : sweep_figures()) columns.push_back(figure.name);
  return columns;
}

SweepStore::SweepStore(const std::string& file, const SweepSpace& space, const SweepIdentity& identity)
    : impl_(std::make_unique<Impl>(file, space, identity)) {}
SweepStore::~SweepStore() = default;

bool SweepStore::claim(std::size_t point, const std::string& key) {
  const std::lock_guard lock(impl_->mutex);
  const auto number = static_cast<std::int64_t>(point);
  if (impl_->noted.emplace(number, key).second) {
    impl_->add_point->bind(number).bind(key);
    for (const std::string& value : impl_->space.points[point]) impl_->add_point->bind_value(value);
    impl_->add_point->run();
  }
  return impl_->known.insert(key).second;
}

void SweepStore::add(const SweepRow& row) {
  const std::lock_guard lock(impl_->mutex);
  impl_->known.insert(row.key);
  Statement& statement = *impl_->add_run;
  statement.bind(row.key).bind(std::string(row.ok ? "ok" : "failed")).bind(row.message);
  if (row.assumed_release.empty())
    statement.bind(std::optional<double>());
  else
    statement.bind(row.assumed_release);
  for (std::size_t i = 0; i < sweep_figures().size(); ++i)
    statement.bind(row.ok ? row.figures[i] : std::optional<double>());
  statement.run();
}

std::size_t SweepStore::left_out() const {
  return impl_->left_out;
}

std::size_t SweepStore::stored_before() const {
  return impl_->stored_before;
}

std::vector<SweepRow> SweepStore::rows() const {
  const std::lock_guard lock(impl_->mutex);
  Statement query(impl_->database, "SELECT point, key" + run_columns("", "") +
                                       " FROM points JOIN runs USING (key) ORDER BY point");
  constexpr int kFixed = 2 + static_cast<int>(std::size(kSaid));
  std::vector<SweepRow> rows;
  while (query.step()) {
    SweepRow row;
    row.point = static_cast<std::size_t>(query.integer(0));
    if (row.point >= impl_->space.points.size()) continue;
    row.values = impl_->space.points[row.point];
    row.key = query.text(1);
    row.ok = query.text(2) == "ok";
    row.message = query.text(3);
    row.assumed_release = query.text(4);
    if (row.ok) {
      for (std::size_t i = 0; i < sweep_figures().size(); ++i)
        row.figures.push_back(query.number(kFixed + static_cast<int>(i)));
    }
    rows.push_back(std::move(row));
  }
  return rows;
}
}  // namespace topsim::study
