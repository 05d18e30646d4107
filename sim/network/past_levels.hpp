// The highest level a link has had since any instant at which an activity joined it. Levels that were passed
// later are forgotten, so what is kept falls from entry to entry.
#pragma once

#include <algorithm>
#include <vector>

#include "sim/base/units.hpp"

namespace topsim::network {

class PastLevels {
 public:
  // The link had `level` from `from` on. REQUIRES: `from` never decreases over calls.
  void add(SimTime from, double level) {
    while (!entries_.empty() && entries_.back().level <= level) entries_.pop_back();
    entries_.push_back({from, level});
  }
  // REQUIRES: `joined` was the beginning of a level. 0 when none was added since.
  [[nodiscard]] double highest_since(SimTime joined) const {
    const auto first = std::lower_bound(entries_.begin(), entries_.end(), joined,
                                        [](const Entry& entry, SimTime t) { return entry.from < t; });
    return first == entries_.end() ? 0 : first->level;
  }
  void clear() { entries_.clear(); }

 private:
  struct Entry {
    SimTime from;
    double level;
  };
  std::vector<Entry> entries_;  // from rising, level falling
};
}  // namespace topsim::network
