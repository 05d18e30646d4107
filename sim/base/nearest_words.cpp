#include "sim/base/nearest_words.hpp"

#include <algorithm>
#include <cctype>
#include <utility>

#include "sim/base/lower_case.hpp"

namespace topsim {
std::vector<std::string> name_parts(std::string_view text) {
  std::vector<std::string> words(1);
  for (const char c : lower_case(text)) {
    if (std::isalnum(static_cast<unsigned char>(c)) != 0)
      words.back() += c;
    else if (!words.back().empty())
      words.emplace_back();
  }
  if (words.back().empty()) words.pop_back();
  return words;
}

namespace {
// 1 for equal words, 0.5 if one is a prefix of the other.
double likeness(std::string_view a, std::string_view b) {
  if (a == b) return 1;
  return std::min(a.size(), b.size()) >= 2 && (a.starts_with(b) || b.starts_with(a)) ? 0.5 : 0;
}
}  // namespace

std::vector<std::string> nearest_by_words(std::string_view word, std::span<const std::string> known,
                                          std::size_t most) {
  constexpr double kOfAWordMore = 0.01;
  const std::vector<std::string> asked = name_parts(word);
  std::vector<std::pair<double, const std::string*>> ranked;
  for (const std::string& candidate : known) {
    const std::vector<std::string> has = name_parts(candidate);
    double shared = 0;
    for (const std::string& each : asked) {
      double best = 0;
      for (const std::string& other : has) best = std::max(best, likeness(each, other));
      shared += best;
    }
    if (shared > 0) ranked.emplace_back(shared - kOfAWordMore * static_cast<double>(has.size()), &candidate);
  }
  std::stable_sort(ranked.begin(), ranked.end(),
                   [](const auto& a, const auto& b) { return a.first > b.first; });
  std::vector<std::string> nearest;
  for (const auto& [rank, candidate] : ranked)
    if (nearest.size() < most) nearest.push_back(*candidate);
  return nearest;
}
}  // namespace topsim
