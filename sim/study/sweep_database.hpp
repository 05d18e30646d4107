// SQLite as a sweep uses it: a connection that closes itself, and statements that are bound, stepped and
// reset, also where one of these fails.
#pragma once

#include <sqlite3.h>

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "sim/base/error.hpp"
#include "sim/study/sweep_space.hpp"

namespace topsim::study {

class Database {
 public:
  explicit Database(std::string file) : file_(std::move(file)) {
    // Threads share one connection behind the store's own lock.
    constexpr int kPatienceMilliseconds = 10000;  // for another process that writes
    const int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX;
    const std::string name = file_.empty() ? ":memory:" : file_;
    if (sqlite3_open_v2(name.c_str(), &handle_, flags, nullptr) != SQLITE_OK) {
      const ConfigError error = failure();
      sqlite3_close_v2(handle_);
      throw error;
    }
    sqlite3_busy_timeout(handle_, kPatienceMilliseconds);
  }
  ~Database() { sqlite3_close_v2(handle_); }
  Database(const Database&) = delete;
  Database& operator=(const Database&) = delete;

  void run(const std::string& sql) const {
    if (sqlite3_exec(handle_, sql.c_str(), nullptr, nullptr, nullptr) != SQLITE_OK) throw failure();
  }
  [[nodiscard]] sqlite3* handle() const { return handle_; }
  [[nodiscard]] ConfigError failure() const {
    return ConfigError("cannot use \"" + file_ + "\" for the sweep: " + sqlite3_errmsg(handle_),
                       "name another file with --out");
  }

 private:
  std::string file_;
  sqlite3* handle_ = nullptr;
};

class Statement {
 public:
  Statement(const Database& database, const std::string& sql) : database_(database) {
    if (sqlite3_prepare_v2(database.handle(), sql.c_str(), -1, &handle_, nullptr) != SQLITE_OK)
      throw database.failure();
  }
  ~Statement() { sqlite3_finalize(handle_); }
  Statement(const Statement&) = delete;
  Statement& operator=(const Statement&) = delete;

  Statement& bind(const std::string& text) {
    return check(
        sqlite3_bind_text(handle_, ++bound_, text.c_str(), static_cast<int>(text.size()), SQLITE_TRANSIENT));
  }
  Statement& bind(std::int64_t number) { return check(sqlite3_bind_int64(handle_, ++bound_, number)); }
  Statement& bind(const std::optional<double>& number) {
    ++bound_;
    return check(number ? sqlite3_bind_double(handle_, bound_, *number) : sqlite3_bind_null(handle_, bound_));
  }
  // Numbers stay numbers, so that queries compare them as such.
  Statement& bind_value(const std::string& text) {
    const config::Value value = value_of(text);
    if (value.kind == config::Kind::integer) return bind(value.integer);
    if (value.kind == config::Kind::number) return bind(std::optional<double>(value.number));
    return bind(plain(text));
  }

  bool step() {
    const int code = sqlite3_step(handle_);
    if (code != SQLITE_ROW && code != SQLITE_DONE) fail();
    return code == SQLITE_ROW;
  }
  void run() {
    step();
    reset();
  }
  [[nodiscard]] std::string text(int column) const {
    const unsigned char* value = sqlite3_column_text(handle_, column);
    return value == nullptr ? std::string() : reinterpret_cast<const char*>(value);
  }
  [[nodiscard]] std::int64_t integer(int column) const { return sqlite3_column_int64(handle_, column); }
  [[nodiscard]] std::optional<double> number(int column) const {
    if (sqlite3_column_type(handle_, column) == SQLITE_NULL) return {};
    return sqlite3_column_double(handle_, column);
  }

 private:
  Statement& check(int code) {
    if (code != SQLITE_OK) fail();
    return *this;
  }
  void reset() {
    sqlite3_reset(handle_);
    bound_ = 0;
  }
  [[noreturn]] void fail() {
    const ConfigError error = database_.failure();  // a reset has an error of its own
    reset();
    throw error;
  }
  const Database& database_;
  sqlite3_stmt* handle_ = nullptr;
  int bound_ = 0;
};
}  // namespace topsim::study
