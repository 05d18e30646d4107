#include "sim/base/suggest.hpp"

#include <algorithm>
#include <cctype>
#include <iterator>
#include <utility>
#include <vector>

#include "sim/base/lower_case.hpp"
#include "sim/base/sizes.hpp"
#include "sim/base/synonyms.hpp"

namespace topsim {
namespace {
std::string digits_of(std::string_view word) {
  std::string digits;
  std::copy_if(word.begin(), word.end(), std::back_inserter(digits),
               [](char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; });
  return digits;
}
std::vector<std::string> parts_of(std::string_view word) {
  std::vector<std::string> parts;
  for (std::size_t begin = 0; begin <= word.size();) {
    const std::size_t end = std::min(word.find_first_of("-_ ", begin), word.size());
    parts.push_back(lower_case(word.substr(begin, end - begin)));
    begin = end + 1;
  }
  return parts;
}

// "gb200" of "dgx-gb200", not "400g" or "48xlarge"; "p5" and "v3" are of many names.
bool names_a_chip(const std::string& part) {
  constexpr std::size_t kShortest = 4;
  return part.size() >= kShortest && std::isalpha(static_cast<unsigned char>(part.front())) != 0 &&
         !digits_of(part).empty();
}

// Of known names that share a chip's name with the word those that share most parts with it, shortest first:
// a dgx-gb200 is no dgx-b200.
std::vector<std::string> of_same_chip(std::string_view word, std::span<const std::string> known) {
  const std::vector<std::string> parts = parts_of(word);
  std::vector<std::pair<std::size_t, std::string>> same;  // parts shared
  for (const std::string& candidate : known) {
    const std::vector<std::string> theirs = parts_of(candidate);
    std::size_t shared = 0;
    bool chip = false;
    for (const std::string& part : parts) {
      if (std::find(theirs.begin(), theirs.end(), part) == theirs.end()) continue;
      ++shared;
      chip = chip || names_a_chip(part);
    }
    if (chip) same.emplace_back(shared, candidate);
  }
  std::stable_sort(same.begin(), same.end(), [](const auto& a, const auto& b) {
    return a.first != b.first ? a.first > b.first : a.second.size() < b.second.size();
  });
  std::vector<std::string> names;
  for (auto& [shared, name] : same) names.push_back(std::move(name));
  return names;
}

// "meta-llama/Llama-3.1-8B-Instruct", as model hubs write it: the known name behind the owner, hyphens and
// what says how it was tuned aside.
std::optional<std::string> without_owner(std::string_view word, std::span<const std::string> known) {
  const std::size_t slash = word.rfind('/');
  if (slash == std::string_view::npos) return std::nullopt;
  const auto joined = [](std::string_view name) {
    std::string text = lower_case(name);
    std::erase_if(text, [](char c) { return c == '-' || c == '_'; });
    return text;
  };
  constexpr std::string_view kTuned[] = {"", "hf", "it", "pt", "base", "chat", "instruct", "instructhf"};
  std::string name = joined(word.substr(slash + 1));
  if (name.starts_with("metallama")) name.erase(0, std::string_view("meta").size());
  for (const std::string& candidate : known) {
    const std::string plain = joined(candidate);
    if (!name.starts_with(plain)) continue;
    const std::string rest = name.substr(plain.size());
    const bool version =
        rest.starts_with("instructv") || (rest.starts_with('v') && plain.find('v') == rest.npos);
    if (version || std::find(std::begin(kTuned), std::end(kTuned), rest) != std::end(kTuned))
      return candidate;
  }
  return std::nullopt;
}
}  // namespace

std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> before_last(b.size() + 1), last(b.size() + 1), row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) last[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, last[j - 1] + (a[i - 1] == b[j - 1] ? 0U : 1U)});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        row[j] = std::min(row[j], before_last[j - 2] + 1);
      }
    }
    before_last.swap(last);
    last.swap(row);
  }
  return last[b.size()];
}

std::optional<std::string> closest(std::string_view word, std::span<const std::string> known) {
  constexpr std::size_t kLongestWord = 100;  // longer words are not mistyped names
  if (word.empty() || word.size() > kLongestWord) return std::nullopt;
  if (const auto owned = without_owner(word, known)) return owned;
  if (const auto same = same_but_for_marks(word, known)) return same;
  if (const auto same = same_meaning(word, known)) return same;
  const std::vector<std::string> same_chip = of_same_chip(word, known);
  if (!same_chip.empty()) known = same_chip;
  const std::size_t most = std::max<std::size_t>(1, word.size() / 3);
  // A name with more after it stands for the longest known one that it begins with, unless a letter is wrong,
  // which a digit rarely is: "b200-sxm" for b200, not h200-sxm; "hgx-a100-80gb" for hgx-a100, not
  // hgx-a100-40gb.
  const std::string* beginning = nullptr;
  for (const std::string& candidate : known)
    if (candidate.size() >= 2 && candidate.size() < word.size() &&
        (word[candidate.size()] == '-' || word[candidate.size()] == '.') &&
        lower_case(word).starts_with(lower_case(candidate)) &&
        (beginning == nullptr || candidate.size() > beginning->size()))
      beginning = &candidate;
  // Among equally close words prefers one with the same first letter, which is rarely mistyped.
  std::size_t best = 2 * most + 2;
  const std::string* found = nullptr;
  for (const std::string& candidate : known) {
    // "h100" stands for h100-nvl, the first such name, rather than for b100.
    if (word.size() >= 3 && candidate.size() > word.size() && candidate[word.size()] == '-' &&
        lower_case(candidate).starts_with(lower_case(word)) && best > 1) {
      best = 1;
      found = &candidate;
    }
    const std::size_t distance = edit_distance(lower_case(word), lower_case(candidate));
    const bool begins_alike = lower_case(word).substr(0, 1) == lower_case(candidate).substr(0, 1);
    const std::size_t rank = 2 * distance + (begins_alike ? 0 : 1);
    if (distance <= most && rank < best) {
      best = rank;
      found = &candidate;
    }
  }
  constexpr std::size_t kOneLetter = 2;  // as ranks are counted
  if (beginning != nullptr && (best > kOneLetter || digits_of(word) != digits_of(*found))) return *beginning;
  if (found != nullptr) return *found;
  return same_chip.empty() ? std::nullopt : std::optional(same_chip.front());
}

std::string did_you_mean(std::span<const std::string> names) {
  std::string text = names.empty() ? "" : "did you mean ";
  for (std::size_t i = 0; i < names.size(); ++i)
    text += (i == 0 ? "\"" : i + 1 == names.size() ? "\" or \"" : "\", \"") + names[i];
  return names.empty() ? text : text + "\"?";
}

std::string suggestion(std::string_view word, std::span<const std::string> known) {
  constexpr std::size_t kMost = 8, kShortest = 3;  // names; letters
  if (const auto same = same_but_for_marks(word, known)) return did_you_mean({{*same}});
  if (const auto same = same_meaning(word, known)) return did_you_mean({{*same}});
  if (const Sized sized = of_size(word, known); !sized.same.empty()) {
    return did_you_mean(sized.same);
  } else if (!sized.others.empty()) {
    return "of other sizes there are: " + join(sized.others);
  }
  const std::string beginning = lower_case(word) + '-';
  std::vector<std::string> begun;
  for (const std::string& each : known)
    if (lower_case(each).starts_with(beginning)) begun.push_back(each);
  if (word.size() >= kShortest && begun.size() > 1 && begun.size() <= kMost) return did_you_mean(begun);
  const auto close = closest(word, known);
  return close ? did_you_mean({{*close}}) : "";
}

std::string join(std::span<const std::string> words, std::size_t most) {
  std::string text;
  for (std::size_t i = 0; i < words.size() && i < most; ++i) {
    if (i > 0) text += ", ";
    text += words[i];
  }
  if (words.size() > most) text += ", ... (" + std::to_string(words.size()) + " in all)";
  return text;
}
}  // namespace topsim
