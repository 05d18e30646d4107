// The order in which people count names: gpu2 before gpu10, and so that padding changes nothing: gpu02,
// gpu10.
#pragma once

#include <algorithm>
#include <string_view>

namespace topsim::topology {

struct NaturalOrder {
  bool operator()(std::string_view a, std::string_view b) const {
    const std::string_view whole_a = a, whole_b = b;
    while (!a.empty() && !b.empty()) {
      const std::string_view left = take(a), right = take(b);
      if (left == right) continue;
      // Longer numbers are larger ones.
      const bool numbers = is_digit(left.front()) && is_digit(right.front());
      return numbers && left.size() != right.size() ? left.size() < right.size() : left < right;
    }
    if (a.empty() != b.empty()) return a.empty();
    return whole_a < whole_b;  // they differ in padding alone
  }

 private:
  static bool is_digit(char c) { return c >= '0' && c <= '9'; }
  // The number, without leading zeros, or else the letter that `rest` begins with.
  static std::string_view take(std::string_view& rest) {
    std::size_t end = 1;
    while (is_digit(rest.front()) && end < rest.size() && is_digit(rest[end])) ++end;
    std::string_view word = rest.substr(0, end);
    rest.remove_prefix(end);
    while (word.size() > 1 && word.front() == '0') word.remove_prefix(1);
    return word;
  }
};
}  // namespace topsim::topology
