// Errors as a user sees them; the form is rustc's: place, line, mark, help.
#include <algorithm>
#include <string>

#include "sim/config/reader.hpp"

namespace topsim::config {
namespace {

class Painter {
 public:
  explicit Painter(bool colour) : colour_(colour) {}
  [[nodiscard]] std::string red(const std::string& text) const { return paint("\x1b[1;31m", text); }
  [[nodiscard]] std::string blue(const std::string& text) const { return paint("\x1b[34m", text); }
  [[nodiscard]] std::string bold(const std::string& text) const { return paint("\x1b[1m", text); }

 private:
  [[nodiscard]] std::string paint(const char* code, const std::string& text) const {
    return colour_ ? code + text + "\x1b[0m" : text;
  }
  bool colour_;
};

// What a terminal would act on or misplace becomes a blank or a question mark.
std::string printable(std::string text) {
  for (char& c : text) {
    if (c == '\t') {
      c = ' ';
    } else if (static_cast<unsigned char>(c) < 0x20 || c == '\x7f') {
      c = '?';
    }
  }
  return text;
}

// The part of a line about a mark of `length` bytes at `column` (from 1); generated files have long lines.
struct Excerpt {
  std::string text;
  std::size_t column;  // of the mark in it
};

Excerpt excerpt(const std::string& line, std::size_t column, std::size_t length) {
  constexpr std::size_t kWhole = 120, kBefore = 70, kAfter = 40;
  if (line.size() <= kWhole) return {line, column};
  const auto inside = [&](std::size_t at) {  // not within a character of several bytes
    while (at > 0 && at < line.size() && (static_cast<unsigned char>(line[at]) & 0xC0) == 0x80) --at;
    return std::min(at, line.size());
  };
  const std::size_t begin = column > kBefore + 4 ? inside(column - 1 - kBefore) : 0;
  const std::size_t end = inside(column - 1 + std::min(length, kWhole) + kAfter);
  const std::string before = begin > 0 ? "..." : "", after = end < line.size() ? "..." : "";
  return {before + line.substr(begin, end - begin) + after, column - begin + before.size()};
}

std::string one(const Problem& problem, const Painter& paint) {
  std::string text = paint.red("error:") + ' ' + paint.bold(printable(problem.message)) + '\n';
  const Place& place = problem.place;
  const std::string number = std::to_string(place.line);
  const std::size_t width = std::max<std::size_t>(2, number.size());
  const std::string margin(width, ' ');
  if (!place.file.empty()) {
    text += margin + paint.blue("-->") + ' ' + place.file;
    if (place.line > 0) text += ':' + number + ':' + std::to_string(place.column);
    if (!problem.path.empty()) text += "   at " + printable(problem.path);
    text += '\n';
  } else if (!problem.path.empty()) {
    text += margin + paint.blue("-->") + " at " + printable(problem.path) + '\n';
  }
  if (!problem.source_line.empty()) {
    const std::string bar = paint.blue("|");
    const auto length = static_cast<std::size_t>(std::max(1, place.length));
    const auto [shown, column] =
        excerpt(problem.source_line, static_cast<std::size_t>(std::max(1, place.column)), length);
    text += margin + ' ' + bar + '\n';
    text += std::string(width - number.size(), ' ') + paint.blue(number) + ' ' + bar + ' ' +
            printable(shown) + '\n';
    text +=
        margin + ' ' + bar + ' ' + std::string(column - 1, ' ') +
        paint.red(std::string(std::min(length, shown.size() + 1 - std::min(shown.size(), column - 1)), '^'));
    if (!problem.label.empty()) text += ' ' + paint.red(printable(problem.label));
    text += '\n';
  } else if (!problem.label.empty()) {
    text += margin + ' ' + paint.blue("=") + ' ' + printable(problem.label) + '\n';
  }
  if (!problem.help.empty()) text += margin + ' ' + paint.blue("=") + ' ' + printable(problem.help) + '\n';
  return text;
}
}  // namespace

std::string picture(const std::vector<Problem>& problems, bool colour, std::size_t most) {
  const Painter paint(colour);
  std::string text;
  for (std::size_t i = 0; i < problems.size() && i < most; ++i) {
    if (i > 0) text += '\n';
    text += one(problems[i], paint);
  }
  if (problems.size() > most) {
    text += "\nand " + std::to_string(problems.size() - most) + " more (" + std::to_string(problems.size()) +
            " in all)\n";
  }
  return text;
}
}  // namespace topsim::config
