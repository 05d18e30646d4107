// Errors as shown to users, in the form of rustc's: place, line, mark, help.
#include <algorithm>
#include <array>
#include <string>
#include <string_view>

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

// Bytes of the UTF-8 character that a text begins with; 0 if it begins with none.
std::size_t character(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const std::size_t length = byte(0) < 0x80                      ? 1
                             : byte(0) >= 0xC2 && byte(0) < 0xE0 ? 2
                             : byte(0) >= 0xE0 && byte(0) < 0xF0 ? 3
                             : byte(0) >= 0xF0 && byte(0) < 0xF5 ? 4
                                                                 : 0;
  if (length > text.size()) return 0;
  for (std::size_t i = 1; i < length; ++i)
    if ((byte(i) & 0xC0U) != 0x80U) return 0;
  return length;
}

// Replaces characters that a terminal would act on or misplace, and bytes that are no UTF-8, by a blank or a
// question mark.
std::string printable(std::string text) {
  for (std::size_t i = 0; i < text.size();) {
    const std::size_t length = character(std::string_view(text).substr(i));
    char& c = text[i];
    if (c == '\t') {
      c = ' ';
    } else if (length == 0 || static_cast<unsigned char>(c) < 0x20 || c == '\x7f') {
      c = '?';
    }
    i += std::max<std::size_t>(length, 1);
  }
  return text;
}

// Shortens words of hundreds of letters, which nobody typed.
std::string shortened(const std::string& text) {
  constexpr std::size_t kLongest = 200, kKept = 60;
  std::string result;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find(' ', begin), text.size());
    std::size_t kept = end - begin;
    if (kept > kLongest)
      for (kept = kKept; (static_cast<unsigned char>(text[begin + kept]) & 0xC0U) == 0x80U;) --kept;
    result += text.substr(begin, kept) + (kept < end - begin ? "..." : "");
    const bool quoted = kept < end - begin && text[end - 1] == '"';
    result += (quoted ? "\"" : "") + std::string(end < text.size() ? " " : "");
    begin = end + 1;
  }
  return result;
}

// The number of bytes of the first `characters` characters of a text.
std::size_t bytes_of(std::string_view text, std::size_t characters) {
  std::size_t at = 0;
  for (; at < text.size(); ++at) {
    if ((static_cast<unsigned char>(text[at]) & 0xC0U) == 0x80U) continue;
    if (characters-- == 0) break;
  }
  return at;
}

// Terminal columns: East Asian letters and emoji take two, combining accents none (Unicode 15,
// East_Asian_Width W and F, by blocks).
std::size_t columns_of(std::string_view text) {
  struct Block {
    char32_t first, last;
    std::size_t columns;
  };
  constexpr std::array kBlocks = {
      Block{0x300, 0x36F, 0},     Block{0x1100, 0x115F, 2},   Block{0x200B, 0x200F, 0},
      Block{0x2E80, 0x303E, 2},   Block{0x3041, 0xA4CF, 2},   Block{0xAC00, 0xD7A3, 2},
      Block{0xF900, 0xFAFF, 2},   Block{0xFE00, 0xFE0F, 0},   Block{0xFE30, 0xFE6F, 2},
      Block{0xFF00, 0xFF60, 2},   Block{0xFFE0, 0xFFE6, 2},   Block{0x1F300, 0x1F64F, 2},
      Block{0x1F680, 0x1F6FF, 2}, Block{0x1F900, 0x1F9FF, 2}, Block{0x20000, 0x3FFFD, 2}};
  std::size_t columns = 0;
  for (std::size_t at = 0; at < text.size();) {
    const auto lead = static_cast<unsigned char>(text[at]);
    const std::size_t length = std::max<std::size_t>(1, character(text.substr(at)));
    char32_t letter = length == 1 ? lead : lead & (0xFFU >> (length + 1));
    for (std::size_t i = 1; i < length; ++i)
      letter = (letter << 6U) | (static_cast<unsigned char>(text[at + i]) & 0x3FU);
    const auto block = std::find_if(kBlocks.begin(), kBlocks.end(), [&](const Block& each) {
      return letter >= each.first && letter <= each.last;
    });
    columns += block == kBlocks.end() ? 1 : block->columns;
    at += length;
  }
  return columns;
}

// The part of a line around a mark of `length` bytes at byte `column` (from 1), because generated files have
// long lines.
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
  std::string text = paint.red("error:") + ' ' + paint.bold(printable(shortened(problem.message))) + '\n';
  const Place& place = problem.place;
  const std::string number = std::to_string(place.line);
  const std::size_t width = std::max<std::size_t>(2, number.size());
  const std::string margin(width, ' ');
  if (!place.file.empty()) {
    text += margin + paint.blue("-->") + ' ' + place.file;
    if (place.line > 0) text += ':' + number + ':' + std::to_string(place.column);
    if (!problem.path.empty()) text += "   at " + printable(shortened(problem.path));
    text += '\n';
  } else if (!problem.path.empty()) {
    text += margin + paint.blue("-->") + " at " + printable(shortened(problem.path)) + '\n';
  }
  if (!problem.source_line.empty()) {
    const std::string bar = paint.blue("|");
    // Places count characters, not bytes.
    const std::string& line = problem.source_line;
    const std::size_t begin = bytes_of(line, static_cast<std::size_t>(std::max(1, place.column)) - 1);
    const std::size_t length = std::max<std::size_t>(
        1,
        bytes_of(std::string_view(line).substr(begin), static_cast<std::size_t>(std::max(1, place.length))));
    const auto [shown, column] = excerpt(line, begin + 1, length);
    const std::string_view marked =
        std::string_view(shown).substr(std::min(column - 1, shown.size()), length);
    text += margin + ' ' + bar + '\n';
    text += std::string(width - number.size(), ' ') + paint.blue(number) + ' ' + bar + ' ' +
            printable(shown) + '\n';
    text += margin + ' ' + bar + ' ' +
            std::string(columns_of(std::string_view(shown).substr(0, column - 1)), ' ') +
            paint.red(std::string(std::max<std::size_t>(1, columns_of(marked)), '^'));
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
