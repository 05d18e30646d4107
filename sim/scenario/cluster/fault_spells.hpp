// Faults that last for a time, of which several may hold at once.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "sim/base/units.hpp"
#include "topology/named_link.hpp"

namespace topsim::scenario {

// From `begin` to `end` a link or a rank, or one of `of` equal parts of it, has this factor of its normal
// rate.
template <class Item>
struct Spell {
  Item item;
  Duration begin, end;
  double factor;
  std::uint32_t of = 1, part = 0;
};

// Those that last at an instant, in the order of the scenario.
template <class Item>
using Lasting = std::set<const Spell<Item>*>;

// Factors of the same part multiply; the factor of the whole is the mean over its parts.
template <class Item>
double factor_of(const Lasting<Item>& spells) {
  double whole = 1;
  std::map<std::pair<std::uint32_t, std::uint32_t>, double> parts;
  for (const Spell<Item>* spell : spells) {
    if (spell->of == 1) {
      whole *= spell->factor;
    } else {
      parts.try_emplace({spell->of, spell->part}, 1).first->second *= spell->factor;
    }
  }
  std::map<std::uint32_t, double> lost;  // parts, by how many there are: counted whole, so that all are all
  for (const auto& [part, factor] : parts) lost[part.first] += 1 - factor;
  double left = 1;
  for (const auto& [of, sum] : lost) left -= sum / of;
  return whole * std::max(left, 0.0);
}

// Calls visit(at) at every begin and end, in order, after enter(x) of all that begin there and leave(x) of
// all that end there.
template <class Timed, class Enter, class Leave, class Visit>
void sweep(const std::vector<const Timed*>& all, Enter enter, Leave leave, Visit visit) {
  struct Edges {
    std::vector<const Timed*> begin, end;
  };
  std::map<Duration, Edges> edges;
  for (const Timed* each : all) {
    if (each->begin >= each->end) continue;
    edges[each->begin].begin.push_back(each);
    if (each->end != Duration::max()) edges[each->end].end.push_back(each);
  }
  for (const auto& [at, here] : edges) {
    std::for_each(here.end.begin(), here.end.end(), leave);
    std::for_each(here.begin.begin(), here.begin.end(), enter);
    visit(at);
  }
}

// Converts spells to changes in time; where several apply at once their factors multiply.
template <class Change, class Item>
std::vector<Change> changes_of(const std::vector<Spell<Item>>& spells) {
  std::map<Item, std::vector<const Spell<Item>*>> of_item;
  for (const Spell<Item>& spell : spells) of_item[spell.item].push_back(&spell);
  std::vector<Change> changes;
  for (const auto& [item, own] : of_item) {
    Lasting<Item> lasting;
    double before = 1;
    sweep(
        own, [&](const Spell<Item>* spell) { lasting.insert(spell); },
        [&](const Spell<Item>* spell) { lasting.erase(spell); },
        [&](Duration at) {
          const double factor = factor_of(lasting);
          if (factor != before) changes.push_back({SimTime(at), item, factor});
          before = factor;
        });
  }
  std::stable_sort(changes.begin(), changes.end(),
                   [](const Change& a, const Change& b) { return a.at < b.at; });
  return changes;
}

// What of a link is down, by how many faults: the whole, or equal parts of it.
class Down {
 public:
  void add(const topology::NamedLink& part, int by) {
    auto& parts = parts_[part.of];
    if ((parts[part.part] += by) == 0) parts.erase(part.part);
  }
  [[nodiscard]] bool all() const {
    return std::any_of(parts_.begin(), parts_.end(),
                       [](const auto& of) { return of.second.size() == of.first; });
  }

 private:
  std::map<std::uint32_t, std::map<std::uint32_t, int>> parts_;  // by how many there are
};
}  // namespace topsim::scenario
