#include "topology/catalogue/said_accelerator.hpp"

#include <algorithm>
#include <cctype>
#include <iterator>
#include <utility>

#include "sim/base/lower_case.hpp"
#include "sim/base/nearest_words.hpp"
#include "sim/base/take_number.hpp"

namespace topsim::topology {
namespace {
constexpr std::size_t kShort = 4;  // shorter names of chips, "l4" or "a10", stand alone or not at all

bool is_digit(char c) {
  return std::isdigit(static_cast<unsigned char>(c)) != 0;
}
bool has_digit(std::string_view text) {
  return std::any_of(text.begin(), text.end(), is_digit);
}

struct Chip {
  std::vector<std::string> forms;  // "rtx4090", "4090"
  std::vector<std::string> rest;   // "sxm4", "80gb"
};

// Of "a100-sxm4-80gb" a100, of "rtx-4090" rtx4090 or 4090 alone; of "titan-v", which has no number, all.
Chip chip_of(std::string_view id) {
  std::vector<std::string> parts = name_parts(id);
  auto number = std::find_if(parts.begin(), parts.end(), has_digit);
  if (number != parts.end()) ++number;
  Chip chip;
  std::string& whole = chip.forms.emplace_back();
  for (auto part = parts.begin(); part != number; ++part) whole += *part;
  if (has_digit(whole) && std::prev(number)->size() >= kShort && *std::prev(number) != whole)
    chip.forms.push_back(*std::prev(number));
  chip.rest.assign(number, parts.end());
  return chip;
}

// A name without its marks, and where its parts begin.
struct Joined {
  std::string text;
  std::vector<bool> begins;  // one more than the text has letters

  explicit Joined(std::span<const std::string> parts) {
    for (const std::string& part : parts) {
      begins.push_back(true);
      begins.resize(begins.size() + part.size() - 1, false);
      text += part;
    }
    begins.push_back(true);
  }
  [[nodiscard]] std::size_t begin_of_part(std::size_t at) const {
    while (!begins[at]) --at;
    return at;
  }
  [[nodiscard]] std::size_t end_of_number(std::size_t at) const {
    while (at < text.size() && is_digit(text[at]) && !begins[at]) ++at;
    return at;
  }
};

// Letters may stand before it, "ndasra100", but not one alone, which makes another chip; behind it letters,
// "a100pcie", and a count behind an x: "mi300x8".
bool stands_at(const Joined& name, std::size_t at, std::string_view form) {
  const std::size_t end = at + form.size();
  if (!name.begins[at]) {
    constexpr std::size_t kLetters = 2;
    const bool letters = at - name.begin_of_part(at) >= kLetters && !is_digit(name.text[at - 1]);
    const bool counted = at - name.begin_of_part(at) >= kLetters && name.text[at - 1] == 'x';
    if (!(form.size() >= kShort ? letters : counted)) return false;
  }
  if (name.begins[end]) return true;
  if (is_digit(name.text[end])) return form.back() == 'x' && name.begins[name.end_of_number(end)];
  return form.size() >= kShort || name.text[end] == 'x';
}

// What is left of a name's parts beside the chip, in order.
struct Rest {
  std::vector<std::string> words;
  std::size_t behind = 0;  // the first word behind the chip
};
Rest rest_of(const Joined& name, std::size_t at, std::size_t size) {
  Rest rest;
  std::string word;
  const auto finish = [&] {
    if (!word.empty()) rest.words.push_back(std::exchange(word, {}));
  };
  for (std::size_t i = 0; i <= name.text.size(); ++i) {
    if (name.begins[i] || i == at || i == at + size) finish();
    if (i == at) rest.behind = rest.words.size();
    if (i < name.text.size() && (i < at || i >= at + size)) word += name.text[i];
  }
  return rest;
}

// A whole number up to that of the largest node, or nothing.
std::optional<int> count_in(std::string_view text) {
  constexpr int kMost = 1024;
  const std::optional<int> number = take_number<int>(text);
  return number && text.empty() && *number > 0 && *number <= kMost ? number : std::nullopt;
}
bool counts(std::string_view word) {
  return word == "x" || word == "gpu" || word == "gpus" || word == "way";
}

// Takes the first count out of the words.
std::optional<int> take_count(Rest& rest) {
  std::vector<std::string>& words = rest.words;
  for (std::size_t i = 0; i < words.size(); ++i) {
    std::string& word = words[i];
    const std::size_t x = word.find('x'), last_x = word.rfind('x');
    std::optional<int> count;
    std::string left;
    if (is_digit(word.front()) && x != word.npos && (x + 1 == word.size() || i == 0)) {  // "8x", "8xhgx"
      count = count_in(std::string_view(word).substr(0, x));
      left = word.substr(x + 1);
    } else if (last_x != word.npos && (last_x == 0 || i + 1 == words.size())) {  // "x8", "80gbx8"
      count = count_in(std::string_view(word).substr(last_x + 1));
      left = word.substr(0, last_x);
    } else if (const std::size_t end = word.find_first_not_of("0123456789"); end == word.npos) {
      const bool beside = (i > 0 && counts(words[i - 1])) || (i + 1 < words.size() && counts(words[i + 1]));
      if (i == 0 || i == rest.behind || beside) count = count_in(word);
    } else if (end > 0 && counts(std::string_view(word).substr(end))) {  // "8gpu"
      count = count_in(std::string_view(word).substr(0, end));
    }
    if (!count) continue;
    if (left.empty())
      words.erase(words.begin() + static_cast<std::ptrdiff_t>(i));
    else
      word = left;
    return count;
  }
  return std::nullopt;
}
}  // namespace

std::optional<SaidAccelerator> said_accelerator(std::string_view name, std::span<const std::string> ids) {
  const std::vector<std::string> parts = name_parts(name);
  if (parts.empty()) return std::nullopt;
  const Joined joined(parts);
  SaidAccelerator said;
  std::size_t place = 0;
  for (const std::string& id : ids)
    for (const std::string& form : chip_of(id).forms)
      for (std::size_t at = joined.text.find(form); at != std::string::npos;
           at = joined.text.find(form, at + 1))
        if (form.size() > said.chip.size() && stands_at(joined, at, form)) said.chip = form, place = at;
  if (said.chip.empty()) return std::nullopt;
  Rest rest = rest_of(joined, place, said.chip.size());
  said.count = take_count(rest);
  const auto is_said = [&](const std::string& word) {
    return std::find(rest.words.begin(), rest.words.end(), word) != rest.words.end();
  };
  // "a100-40gb" says more than "a100"; of those that have as much of it one that has no more.
  std::pair<std::ptrdiff_t, bool> most{0, false};
  std::vector<std::string> used;
  for (const std::string& id : ids) {
    const Chip chip = chip_of(id);
    if (std::find(chip.forms.begin(), chip.forms.end(), said.chip) == chip.forms.end()) continue;
    const std::ptrdiff_t shared = std::count_if(chip.rest.begin(), chip.rest.end(), is_said);
    const std::pair has(shared, shared > 0 && shared == std::ssize(chip.rest));
    if (has > most) said.accelerators.clear(), most = has;
    if (has == most) said.accelerators.push_back(id);
    used.insert(used.end(), chip.rest.begin(), chip.rest.end());
  }
  for (std::string& word : rest.words) {
    constexpr std::string_view kOfAny[] = {"gpu",    "gpus", "x",     "way",    "node",   "server",
                                           "nvidia", "amd",  "intel", "google", "machine"};
    if (std::find(used.begin(), used.end(), word) == used.end() &&
        std::find(std::begin(kOfAny), std::end(kOfAny), word) == std::end(kOfAny))
      said.words.push_back(std::move(word));
  }
  return said;
}
}  // namespace topsim::topology
