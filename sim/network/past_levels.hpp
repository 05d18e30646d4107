// The highest level a link has had since any instant at which an activity joined it. Levels that were later
// exceeded are dropped, so entries decrease. The newest entry is kept apart: while levels rise, as they do
// when activities only end, nothing else is touched.
#pragma once

#include <algorithm>
#include <vector>

#include "sim/base/units.hpp"

namespace topsim::network {

class PastLevels {
 public:
  // The link had `level` from `from` on. REQUIRES: `from` never decreases over calls.
  void add(SimTime from, double level) {
    if (level < newest_.level) {
      while (!entries_.empty() && entries_.back().level <= newest_.level) entries_.pop_back();
      entries_.push_back(newest_);
    }
    newest_ = {from, level};
  }
  // REQUIRES: `joined` was the beginning of a level. 0 when none was added since.
  [[nodiscard]] double highest_since(SimTime joined) const {
    const auto first = std::lower_bound(entries_.begin(), entries_.end(), joined,
                                        [](const Entry& entry, SimTime t) { return entry.from < t; });
    return std::max(first == entries_.end() ? 0 : first->level, newest_.from < joined ? 0 : newest_.level);
  }
  // Prefetches it.
  void fetch() const {
    __builtin_prefetch(&newest_);
    __builtin_prefetch(entries_.data() + entries_.size());
  }
  void clear() {
    entries_.clear();
    newest_ = {};
  }

 private:
  struct Entry {
    SimTime from{};
    double level = 0;
  };
  Entry newest_;
  std::vector<Entry> entries_;  // before it: from rising, level falling
};
}  // namespace topsim::network
