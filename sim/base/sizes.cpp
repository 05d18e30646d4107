#include "sim/base/sizes.hpp"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <optional>
#include <utility>

#include "sim/base/suggest.hpp"
#include "sim/base/synonyms.hpp"
#include "sim/base/take_number.hpp"

namespace topsim {
namespace {
// What papers call by the name on the left.
constexpr std::pair<std::string_view, std::string_view> kFamilies[] = {
    {"gpt", "gpt3"},
    {"gpt", "mtnlg"},
    {"gpt", "megatron"},
    {"gpt", "korthikanti"},
    {"gpt3", "mtnlg"},
    {"gpt3", "megatron"},
    {"gpt3", "korthikanti"},
    {"megatron", "mtnlg"},
    {"megatron", "korthikanti"},
    {"megatrongpt", "megatron"},
    {"megatrongpt", "mtnlg"},
    {"megatrongpt", "korthikanti"},
};

struct Name {
  std::string family;  // as plain() writes it
  double size = 0;
};

// "gpt3", 1.3e9 of "gpt3-1.3b"; a unit is a letter behind the number that ends the name: "80gb" and
// "48xlarge" are no sizes.
std::optional<Name> name_of(std::string_view text) {
  constexpr std::pair<char, double> kUnits[] = {{'m', 1e6}, {'b', 1e9}, {'g', 1e9}, {'t', 1e12}};
  if (text.size() < 2) return std::nullopt;
  const char letter = static_cast<char>(std::tolower(static_cast<unsigned char>(text.back())));
  const auto unit = std::find_if(std::begin(kUnits), std::end(kUnits),
                                 [&](const auto& each) { return each.first == letter; });
  if (unit == std::end(kUnits)) return std::nullopt;
  const std::size_t before = text.find_last_not_of("0123456789.", text.size() - 2);
  if (before == std::string_view::npos) return std::nullopt;  // a size alone
  // "8x7b" is of one expert.
  if (std::string_view("-_ ").find(text[before]) == std::string_view::npos) return std::nullopt;
  std::string_view digits = text.substr(before + 1, text.size() - before - 2);
  const std::optional<double> number = take_number<double>(digits);
  if (!number || !digits.empty() || !(*number > 0)) return std::nullopt;
  return Name{plain(text.substr(0, before)), *number * unit->second};
}

bool called(const std::string& family, const std::string& theirs) {
  return std::any_of(std::begin(kFamilies), std::end(kFamilies),
                     [&](const auto& each) { return each.first == family && each.second == theirs; });
}
}  // namespace

Sized of_size(std::string_view word, std::span<const std::string> known) {
  const std::optional<Name> asked = name_of(word);
  if (!asked) return {};
  // The first kind of family that has any counts: its own, one called so, one that begins so, one mistyped.
  enum Kind : std::size_t { kOwn, kCalled, kBegins, kMistyped, kKinds };
  constexpr std::size_t kLettersForAMistake = 4;
  std::vector<std::string> same[kKinds];
  std::vector<std::pair<double, std::string>> others[kKinds];  // distance of the sizes, as a ratio
  for (const std::string& each : known) {
    const std::optional<Name> name = name_of(each);
    if (!name) continue;
    Kind kind = kKinds;
    if (name->family == asked->family)
      kind = kOwn;
    else if (called(asked->family, name->family))
      kind = kCalled;
    else if (name->family.starts_with(asked->family))
      kind = kBegins;
    else if (edit_distance(asked->family, name->family) <= asked->family.size() / kLettersForAMistake)
      kind = kMistyped;
    if (kind == kKinds) continue;
    if (name->size == asked->size)
      same[kind].push_back(each);
    else
      others[kind].emplace_back(std::abs(std::log(name->size / asked->size)), each);
  }
  constexpr std::size_t kMost = 5;  // that one can choose among
  Sized found;
  for (const auto& each : same)
    if (found.same.empty()) found.same = each;
  for (auto& each : others) {
    std::stable_sort(each.begin(), each.end(),
                     [](const auto& a, const auto& b) { return a.first < b.first; });
    if (found.others.empty())
      for (const auto& [distance, name] : each) {
        if (found.others.size() < kMost) found.others.push_back(name);
      }
  }
  return found;
}
}  // namespace topsim
