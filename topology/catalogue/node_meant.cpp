#include "topology/catalogue/node_meant.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "sim/base/nearest_words.hpp"
#include "sim/base/suggest.hpp"
#include "sim/base/synonyms.hpp"
#include "topology/catalogue/said_accelerator.hpp"

namespace topsim::topology {
namespace {
using Ids = std::vector<std::string>;

bool has(const Ids& ids, std::string_view id) {
  return std::find(ids.begin(), ids.end(), id) != ids.end();
}

// "4x MI250X node, 8 dies" has four cards, too.
bool has_so_many(const NodeRecipe& node, int count) {
  return node.accelerators == count || name_parts(node.name).front() == std::to_string(count) + 'x';
}

// How many of the words the node's id or name has; half for a beginning: "mega" of "megagpu".
double shared(const NodeRecipe& node, std::span<const std::string> words) {
  Ids parts = name_parts(node.id);
  for (std::string& part : name_parts(node.name)) parts.push_back(std::move(part));
  double sum = 0;
  for (const std::string& word : words) {
    const bool begins = word.size() > 1 && std::any_of(parts.begin(), parts.end(), [&](const auto& part) {
                          return part.starts_with(word);
                        });
    sum += has(parts, word) ? 1 : begins ? 0.5 : 0;
  }
  return sum;
}

// The name with a letter or two wrong, if it says no number, in which a letter wrong is another node.
std::optional<std::string> mistyped(std::string_view name, const SaidAccelerator& said, const Ids& ids) {
  constexpr std::size_t kLettersForAMistake = 6;
  std::size_t least = name.size() / kLettersForAMistake + 1;
  std::optional<std::string> found;
  if (said.count || said.words.empty()) return found;
  for (const std::string& id : ids)
    if (const std::size_t distance = edit_distance(plain(name), plain(id)); distance < least)
      least = distance, found = id;
  return found;
}

// Of nodes that fit the name equally the usual one of the chip, or those that are no variants of others.
Ids usual(Catalogue::Impl& catalogue, const std::string& chip, const Ids& ids) {
  for (const std::string& called : catalogue.called("nodes", chip))
    if (has(ids, called)) return {called};
  if (const auto same = same_meaning(chip, ids)) return {*same};
  constexpr std::size_t kMost = 4;  // that one can choose among
  Ids own;
  for (const std::string& id : ids)
    if (!has(ids, catalogue.nodes().find(id)->second.like)) own.push_back(id);
  if (own.size() > kMost) own.resize(kMost);
  return own;
}
}  // namespace

std::optional<NodeMeant> node_meant(Catalogue::Impl& catalogue, std::string_view name) {
  const ById<NodeRecipe>& nodes = catalogue.nodes();
  const auto said = said_accelerator(name, names_of(catalogue.accelerators()));
  if (!said) return std::nullopt;
  Ids ids;
  for (const auto& [id, node] : nodes)
    if (has(said->accelerators, node.accelerator)) ids.push_back(id);
  const bool more = said->count || !said->words.empty();
  if (ids.empty()) {
    const std::string& accelerator = said->accelerators.front();
    const std::string place = in_place_of_another(catalogue, accelerator);
    return NodeMeant{
        {}, "no node here has \"" + accelerator + '"' + (place.empty() ? "" : "; " + place), more};
  }
  bool as_many = false;
  if (said->count) {
    Ids counted;
    for (const std::string& id : ids)
      if (has_so_many(nodes.find(id)->second, *said->count)) counted.push_back(id);
    as_many = !counted.empty();
    if (as_many) ids = std::move(counted);
  }
  if (const auto same = same_but_for_marks(name, ids)) {
    ids = {*same};
  } else if (const auto near = mistyped(name, *said, ids)) {
    ids = {*near};
  } else {
    double best = 0;
    Ids alike;
    for (const std::string& id : ids) {
      const double words = shared(nodes.find(id)->second, said->words);
      if (words > best) alike.clear(), best = words;
      if (words == best) alike.push_back(id);
    }
    ids = usual(catalogue, said->chip, alike);
  }
  std::string help = did_you_mean(ids);
  if (const auto& first = nodes.find(ids.front())->second;
      said->count && !as_many && *said->count < first.accelerators)
    help = fmt::format(R"({{"use": "{}", "accelerators": {}}} is a part of one)", ids.front(), *said->count);
  return NodeMeant{std::move(ids), std::move(help), more};
}

std::vector<std::string> nodes_meant(std::vector<std::string> config_directories, std::string_view name) {
  Catalogue::Impl catalogue(std::move(config_directories));
  std::vector<std::string> called = catalogue.called("nodes", name);
  if (!called.empty()) return called;
  if (auto meant = node_meant(catalogue, name)) return std::move(meant->ids);
  const auto close = closest(name, names_of(catalogue.nodes()));
  return close ? std::vector{*close} : std::vector<std::string>();
}

std::string in_place_of_another(Catalogue::Impl& catalogue, std::string_view accelerator) {
  const auto& accelerators = catalogue.accelerators();
  const Accelerator& asked = accelerators.find(accelerator)->second;
  if (!asked.form.starts_with("PCIe")) return {};
  const NodeRecipe* best = nullptr;
  double least = 0;  // watts between the two cards
  for (const auto& [id, node] : catalogue.nodes()) {
    const Accelerator& other = accelerators.find(node.accelerator)->second;
    if (other.form != asked.form || other.vendor != asked.vendor ||
        node.scale_up.kind != ScaleUp::Kind::none || !node.like.empty())
      continue;
    const double apart = std::abs(other.tdp.value() - asked.tdp.value());
    if (best == nullptr || apart < least) best = &node, least = apart;
  }
  if (best == nullptr) return {};
  return fmt::format(R"({{"use": "{}", "accelerator": "{}"}} puts it into another's place)", best->id,
                     accelerator);
}
}  // namespace topsim::topology
