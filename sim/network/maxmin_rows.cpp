// Rows of large bottlenecks; see MaxMin::Row.
#include <algorithm>

#include "sim/network/maxmin.hpp"

namespace topsim::network {

std::uint16_t MaxMin::share_in(Row& row, double share) {
  const auto known = std::find(row.shares.begin(), row.shares.end(), share);
  const auto at = static_cast<std::uint16_t>(known - row.shares.begin());
  if (known == row.shares.end()) row.shares.push_back(share);
  return at;
}

void MaxMin::build_row(LinkIndex index) {
  Row& row = rows_[index];
  const Link& link = links_[index];
  row.freezes = row.empty = 0;
  row.entries.clear();
  row.shares.clear();
  for (std::uint32_t member = 0; member < link.members; ++member) {
    const Column& column = activities_[link.crossings[member].activity];
    for (std::uint32_t i = 0; i < column.watched; ++i) {
      const Step& step = steps_[column.first_step + i];
      if (step.link != index) row.entries.push_back({step.link, 1, share_in(row, step.share)});
    }
    if (row.shares.size() > kRowShares) return;  // all different: a row would be as long as the member list
  }
  std::sort(row.entries.begin(), row.entries.end(), [](auto& a, auto& b) { return a.key() < b.key(); });
  std::size_t kept = 0;
  for (std::size_t i = 1; i < row.entries.size(); ++i) {
    if (row.entries[i].key() == row.entries[kept].key())
      ++row.entries[kept].count;
    else
      row.entries[++kept] = row.entries[i];
  }
  if (!row.entries.empty()) row.entries.resize(kept + 1);
  row.valid = true;
}

// `activity` becomes a member of the bottleneck (`joins`), or stops being one.
void MaxMin::patch_row(LinkIndex index, Activity activity, bool joins) {
  Row& row = rows_[index];
  const std::uint32_t members = links_[index].members;
  if (members < kRowMembers || members >= kRowLimit || row.shares.size() > kRowShares) {
    row.valid = false;
    row.freezes = 0;
    return;
  }
  const Column& column = activities_[activity];
  for (std::uint32_t i = 0; i < column.watched; ++i) patch_row(index, steps_[column.first_step + i], joins);
  if (8 * row.empty > row.entries.size()) {
    std::erase_if(row.entries, [](const RowEntry& entry) { return entry.count == 0; });
    row.empty = 0;
  }
}

// A member starts (`joins`) or stops watching a link. REQUIRES: the row is valid.
void MaxMin::patch_row(LinkIndex index, const Step& step, bool joins) {
  if (step.link == index) return;
  Row& row = rows_[index];
  const RowEntry wanted{step.link, 1, share_in(row, step.share)};
  const auto entry = std::lower_bound(row.entries.begin(), row.entries.end(), wanted,
                                      [](const RowEntry& a, const RowEntry& b) { return a.key() < b.key(); });
  if (!joins)
    row.empty += --entry->count == 0 ? 1 : 0;
  else if (entry != row.entries.end() && entry->key() == wanted.key())
    row.empty -= entry->count++ == 0 ? 1 : 0;
  else
    row.entries.insert(entry, wanted);
}
}  // namespace topsim::network
