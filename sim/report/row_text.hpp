// A list of rows as JSON text, as in a document with one space of indentation per level. There are many rows,
// so they are written without building a tree first.
#pragma once

#include <concepts>
#include <cstdint>
#include <string>
#include <string_view>

namespace topsim::report {

// Members come in the order of their names, as in the rest of the document.
class RowText {
 public:
  void begin_row();
  void end_row() { close(); }
  void add(std::string_view name, std::string_view value);
  void add(std::string_view name, double value);
  void add(std::string_view name, std::integral auto value) {
    number(name, static_cast<std::int64_t>(value));
  }
  void begin_object(std::string_view name);
  void end_object() { close(); }
  [[nodiscard]] std::string list() &&;

 private:
  void member(std::string_view name);
  void number(std::string_view name, std::int64_t value);
  void break_line();
  void close();

  std::string text_;
  std::size_t depth_ = 2;  // of what comes next; rows stand in a list that is a member of the document
  bool first_ = true;      // of its object, or of the list
};
}  // namespace topsim::report
