// Sums of shares by link.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <vector>

#include "sim/base/mix.hpp"
#include "topology/routes.hpp"

namespace topsim::collective {

class LinkTotals {
 public:
  void add(LinkId link, double share, std::uint32_t times) {
    if (4 * (entries_.size() + 1) > 3 * slots_.size()) grow();
    std::uint32_t& slot = slots_[slot_of(link, share)];
    if (slot == kFree) {
      slot = static_cast<std::uint32_t>(entries_.size());
      entries_.push_back({link, 0, share});
    }
    entries_[slot].times += times;
  }

  // Sorted by link, one entry a link, all times `factor`. Shares of one link are added in order of size, so
  // that alike communicators get the same sums whatever their links' numbers. May be asked again, but nothing
  // may be added afterwards.
  void finish(double factor, std::vector<topology::LinkShare>& out) {
    std::sort(entries_.begin(), entries_.end(), [](const Entry& a, const Entry& b) {
      return a.link != b.link ? a.link < b.link : a.share < b.share;
    });
    out.clear();
    for (const Entry& entry : entries_) {
      if (out.empty() || out.back().link != entry.link) out.push_back({entry.link, 0});
      out.back().share += entry.times * entry.share;
    }
    for (topology::LinkShare& use : out) use.share *= factor;
  }

 private:
  struct Entry {  // `times` times the share
    LinkId link;
    std::uint32_t times;
    double share;
  };
  static constexpr std::uint32_t kFree = ~0U;
  // The entry that counts this share of this link, or would.
  [[nodiscard]] std::size_t slot_of(LinkId link, double share) const {
    const std::uint64_t hash = (link.value ^ std::bit_cast<std::uint64_t>(share)) * kGoldenGamma;
    for (std::size_t at = (hash >> 32) & (slots_.size() - 1);; at = (at + 1) & (slots_.size() - 1)) {
      if (slots_[at] == kFree) return at;
      const Entry& entry = entries_[slots_[at]];
      if (entry.link == link && entry.share == share) return at;
    }
  }
  void grow() {
    slots_.assign(std::max<std::size_t>(64, 2 * slots_.size()), kFree);
    for (std::uint32_t e = 0; e < entries_.size(); ++e)
      slots_[slot_of(entries_[e].link, entries_[e].share)] = e;
  }

  std::vector<Entry> entries_;        // a link crossed many times with one share is one
  std::vector<std::uint32_t> slots_;  // hash table of entries_, a power of two
};
}  // namespace topsim::collective
