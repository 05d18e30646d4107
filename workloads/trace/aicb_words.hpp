// AICB files are words, whatever their lines.
#pragma once

#include <algorithm>
#include <string_view>
#include <vector>

namespace topsim::workloads::trace::aicb {

struct Word {
  std::string_view text;
  int line = 1, column = 1;
};

// The last has no text and stands at the end of the file.
[[nodiscard]] inline std::vector<Word> words_of(std::string_view text) {
  constexpr std::string_view kBetween = " \t\r\n";
  std::vector<Word> words;
  int line = 1;
  std::size_t line_begin = 0;
  for (std::size_t i = 0; i < text.size();) {
    if (text[i] == '\n') {
      ++line, line_begin = ++i;
    } else if (kBetween.find(text[i]) != std::string_view::npos) {
      ++i;
    } else {
      const std::size_t begin = i;
      i = std::min(text.find_first_of(kBetween, i), text.size());
      words.push_back({text.substr(begin, i - begin), line, static_cast<int>(begin - line_begin) + 1});
    }
  }
  words.push_back({{}, line, static_cast<int>(text.size() - line_begin) + 1});
  return words;
}
}  // namespace topsim::workloads::trace::aicb
