#include "sim/report/row_text.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

namespace topsim::report {
namespace {
// Whether the text needs no escapes and is ASCII.
bool plain(std::string_view text) {
  bool all = true;
  for (const char c : text) all &= c >= ' ' && c < '\x7f' && c != '"' && c != '\\';
  return all;
}
}  // namespace

void RowText::break_line() {
  if (!first_) text_ += ',';
  first_ = false;
  text_ += '\n';
  text_.append(depth_, ' ');
}

void RowText::close() {
  text_ += '\n';
  text_.append(--depth_, ' ');
  text_ += '}';
  first_ = false;
}

void RowText::member(std::string_view name) {
  break_line();
  text_ += '"';
  text_ += name;
  text_ += "\": ";
}

void RowText::begin_row() {
  break_line();
  text_ += '{';
  ++depth_;
  first_ = true;
}

void RowText::begin_object(std::string_view name) {
  member(name);
  text_ += '{';
  ++depth_;
  first_ = true;
}

void RowText::add(std::string_view name, std::string_view value) {
  member(name);
  if (!plain(value)) {
    text_ += nlohmann::json(value).dump();
    return;
  }
  text_ += '"';
  text_ += value;
  text_ += '"';
}

// Writes digits as for all other numbers of the document.
void RowText::add(std::string_view name, double value) {
  member(name);
  text_ += nlohmann::json(value).dump();
}

void RowText::number(std::string_view name, std::int64_t value) {
  member(name);
  const fmt::format_int digits(value);
  text_.append(digits.data(), digits.size());
}

std::string RowText::list() && {
  if (text_.empty()) return "[]";
  return '[' + std::move(text_) + "\n ]";
}
}  // namespace topsim::report
