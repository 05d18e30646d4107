// Errors as a user sees them; the form is interface.md's.
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
    const auto column = static_cast<std::size_t>(std::max(1, place.column));
    text += margin + ' ' + bar + '\n';
    text += std::string(width - number.size(), ' ') + paint.blue(number) + ' ' + bar + ' ' +
            printable(problem.source_line) + '\n';
    text += margin + ' ' + bar + ' ' + std::string(column - 1, ' ') +
            paint.red(std::string(static_cast<std::size_t>(std::max(1, place.length)), '^'));
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
