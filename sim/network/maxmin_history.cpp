// Continues from the part of a component's last solve that is still valid; see MaxMin::History.
#include <algorithm>

#include "sim/network/maxmin.hpp"

namespace topsim::network {
namespace {
constexpr std::uint32_t kActivities = 64;  // filling fewer again is faster than restoring them
constexpr std::uint32_t kSnapshots = 24;
}  // namespace

// Where to record how the component fills, null when that does not pay: only a component that was solved
// twice without new activities or capacities is expected to be solved again in the same way.
MaxMin::History* MaxMin::history_of(LinkIndex root) {
  if (components_.activities(root) < kActivities) return nullptr;
  if (!histories_[root]) histories_[root] = std::make_unique<History>();
  History& history = *histories_[root];
  if (history.valid) return &history;
  if (++history.solves < 3) return nullptr;
  return &history;
}

void MaxMin::forget(LinkIndex root) {
  if (!histories_[root]) return;
  histories_[root]->valid = false;
  histories_[root]->solves = 0;
}

// The activity was open in all snapshots from before its bottleneck filled; later snapshots are no longer
// valid.
void MaxMin::amend(History& history, const Column& ended) {
  const std::uint32_t position = positions_[steps_[ended.bottleneck].link];
  history.resume = std::min(history.resume, position / history.stride);
  for (std::uint32_t i = 0; i < ended.steps; ++i) {
    const Step& step = steps_[ended.first_step + i];
    std::size_t at = slots_[step.link];
    if (at >= history.links.size() || history.links[at] != step.link) continue;  // never watched
    for (std::uint32_t snapshot = 0; snapshot <= history.resume; ++snapshot, at += history.links.size()) {
      --history.open[at];
      history.filling[at] -= Filling{0, step.share};
    }
  }
}

// Restores the snapshot, makes candidates of the links that had not filled, and returns the level reached.
// With `in_order`, the links that filled last time are expected to fill in about the same order and wait in
// pending_.
double MaxMin::resume(History& history, bool in_order) {
  const std::size_t links = history.links.size();
  const std::size_t snapshot = history.resume * links;
  for (std::size_t slot = 0; slot < links; ++slot) {
    filling_[history.links[slot]] = history.filling[snapshot + slot];
    open_[history.links[slot]] = history.open[snapshot + slot];
  }
  const std::size_t kept = std::size_t{history.resume} * history.stride;
  for (std::size_t i = 0; i < kept; ++i) frozen_in_[history.order[i]] = round_;
  if (in_order) {
    pending_.assign(history.order.begin() + static_cast<std::ptrdiff_t>(kept), history.order.end());
  }
  history.order.resize(kept);
  for (const LinkIndex index : history.links) {
    if (frozen_in_[index] == round_) continue;
    if (!is_watched(links_[index])) {
      open_[index] = 0;
      continue;
    }
    scratch_.push_back(index);
    if (!in_order) candidate(index);
  }
  return kept == 0 ? 0 : links_[history.order.back()].level;
}

void MaxMin::begin(History& history, const std::vector<LinkIndex>& links) {
  history.links = links;
  history.order.clear();
  history.stride = std::max<std::uint32_t>(8, static_cast<std::uint32_t>(links.size()) / kSnapshots);
  history.filling.resize(links.size() * (links.size() / history.stride + 1));
  history.open.resize(history.filling.size());
  for (std::size_t slot = 0; slot < links.size(); ++slot)
    slots_[links[slot]] = static_cast<std::uint32_t>(slot);
  history.valid = true;
}

// REQUIRES: the number of links that have filled is a multiple of the stride.
void MaxMin::save(History& history) {
  const std::size_t links = history.links.size();
  history.resume = static_cast<std::uint32_t>(history.order.size()) / history.stride;
  const std::size_t snapshot = history.resume * links;
  for (std::size_t slot = 0; slot < links; ++slot) {
    history.filling[snapshot + slot] = filling_[history.links[slot]];
    history.open[snapshot + slot] = open_[history.links[slot]];
  }
}
}  // namespace topsim::network
