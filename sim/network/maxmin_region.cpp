// Shares a part of a large component again. A change mostly concerns few rates: a call on the links of one
// node hardly concerns a ring through all nodes, whose NICs limit it. So only a *region* of activities is
// filled, on what the others leave, and it grows until the rates beside it are right: then every activity has
// a bottleneck (head of maxmin.hpp), so that the allocation is that of the whole component.
#include <algorithm>
#include <cmath>
#include <limits>

#include "sim/network/maxmin.hpp"

namespace topsim::network {
namespace {
constexpr double kSame = 1e-12;       // relative: levels that differ by less are equal but for rounding
constexpr double kSpare = 1e-9;       // relative: a link with more to spare surely limits nobody
constexpr std::uint32_t kLarge = 16;  // activities: filling fewer as a whole is as cheap
constexpr std::uint32_t kLongestPause = 64;
}  // namespace

// After a region that came to most of its component the next ones are not tried: many components keep
// changing as a whole.
bool MaxMin::has_regions(LinkIndex root) const {
  const std::unique_ptr<History>& history = histories_[root];
  return pause_left_ == 0 && components_.activities(root) >= kLarge && !(history && history->valid);
}

// Solves the large components of dirty_, of which one has as many activities as `largest`.
void MaxMin::solve_regions(std::uint32_t largest, SimTime now) {
  const std::size_t most = largest / 2;
  ++region_stamp_;
  region_.clear();
  if (started_.size() <= most) seed_region();
  if (started_.size() <= most && solve_region(most, now)) {
    ++solves_;
    ++shortcuts_.regions;
    pause_ = 0;
    return;
  }
  pause_left_ = pause_ = std::min(2 * pause_ + 1, kLongestPause);
  for (const Dirty& dirty : dirty_) solve_around(dirty.link, now);
}

void MaxMin::seed_region() {
  for (const Dirty& dirty : dirty_) {
    include_members(dirty.link);
    if (!dirty.capacity) continue;
    for (const Crossing& crossing : links_[dirty.link].crossings.all()) include(crossing.activity);
  }
  for (const Activity activity : started_)
    if (held_by_[activity] == kNone) include(activity);
  for (const LinkIndex link : unwatched_) include_members(link);
}

double MaxMin::level_now(Activity activity) const {
  const LinkIndex held = held_by_[activity];
  return held == kNone ? 0 : links_[held].level;
}

// Its rate is open from here on. An activity that begins takes from those whose bottlenecks it crosses in any
// case.
void MaxMin::include(Activity activity) {
  if (region_of_.size() < activities_.size()) region_of_.resize(activities_.size());
  if (is_open(activity)) return;
  region_of_[activity] = {region_stamp_, static_cast<std::uint32_t>(region_.size())};
  region_.push_back({activity});
  if (held_by_[activity] != kNone) return;
  const Column& column = activities_[activity];
  for (std::uint32_t i = 0; i < column.watched; ++i) include_members(steps_[column.first_step + i].link);
}

void MaxMin::include_members(LinkIndex index) {
  const Link& link = links_[index];
  for (std::uint32_t at = 0; at < link.members; ++at) include(link.crossings[at].activity);
}

// False, and nothing has changed, when the region came to more than `most` activities.
bool MaxMin::solve_region(std::size_t most, SimTime now) {
  do {
    if (region_.size() > most) return false;
    survey();
    fill_region();
  } while (grow());
  for (const Candidate& full : full_) hold(full.link, full.level, now);
  for (const Touched& touched : touched_) {
    const Link& link = links_[touched.link];
    const bool full = touched.others_hold || frozen_in_[touched.link] == round_;
    const double load = touched.exact ? filled(touched.link) : link.load + filled(touched.link);
    settle(touched.link, full ? link.capacity : std::clamp(load, 0.0, link.capacity), now);
  }
  return true;
}

// Finds the region's links and which of them can limit it.
void MaxMin::survey() {
  touched_.clear();
  candidates_.clear();
  full_.clear();
  ++survey_;
  for (Member& member : region_) {
    const Column& column = activities_[member.activity];
    const double before = level_now(member.activity);
    member.bottleneck = kNone;
    member.level = std::numeric_limits<double>::infinity();  // alone on its links, at most
    for (std::uint32_t i = 0; i < column.watched; ++i) {
      const Step& step = steps_[column.first_step + i];
      member.level = std::min(member.level, links_[step.link].capacity / step.share);
      if (surveyed_in_[step.link] != survey_) {
        surveyed_in_[step.link] = survey_;
        filling_[step.link] = Filling{};
        open_[step.link] = 0;
        reach_[step.link] = links_[step.link].load;
        touched_.push_back({step.link});
      }
      filling_[step.link] += Filling{-step.share * before, step.share};
      ++open_[step.link];
    }
    for (std::uint32_t i = 0; i < column.watched; ++i) {
      const Step& step = steps_[column.first_step + i];
      reach_[step.link] += step.share * (member.level - before);
    }
  }
  for (Touched& touched : touched_) {
    const Link& link = links_[touched.link];
    for (std::uint32_t at = 0; at < link.members && !touched.others_hold; ++at)
      touched.others_hold = !is_open(link.crossings[at].activity);
    const double spare = link.capacity - reach_[touched.link];
    touched.exact = touched.others_hold || !(spare > kSpare * (link.capacity + link.load));
    if (!touched.exact) continue;
    recount_region(touched.link);
    if (!touched.others_hold) candidates_.push_back({level_of(touched.link), touched.link});
  }
}

// What frozen activities, of the region and others, put on the link, and the share of those that are not.
void MaxMin::recount_region(LinkIndex index) {
  Filling filling{};
  for (const Crossing& crossing : links_[index].crossings.all()) {
    const double share = steps_[crossing.step].share;
    const Member* member = member_of(crossing.activity);
    if (member == nullptr)
      filling[0] += share * level_now(crossing.activity);
    else if (member->bottleneck == kNone)
      filling[1] += share;
    else
      filling[0] += share * member->level;
  }
  filling_[index] = filling;
}

// Progressive filling as in fill_all(), without changing any link.
void MaxMin::fill_region() {
  for (std::size_t at = candidates_.size() / 2; at-- > 0;) sift_candidate(at);
  double level = 0;
  while (!candidates_.empty()) {
    const LinkIndex index = candidates_.front().link;
    if (open_[index] > 0) {
      if (open_share(index) < kCancelled * links_[index].share) recount_region(index);
      const double current = level_of(index);
      candidates_.front().level = current;
      if (!is_least(current)) {
        sift_candidate(0);
        continue;
      }
      level = std::max(level, current);
      full_.push_back({level, index});
      for (const Crossing& crossing : links_[index].crossings.all()) {
        Member* member = member_of(crossing.activity);
        if (member == nullptr || member->bottleneck != kNone) continue;
        member->bottleneck = index;
        freeze(*member, level);
      }
    }
    candidates_.front() = candidates_.back();
    candidates_.pop_back();
    if (!candidates_.empty()) sift_candidate(0);
  }
  // Those that only bottlenecks of others limit: grow() includes the others.
  for (Member& member : region_)
    if (member.bottleneck == kNone) freeze(member, member.level);
}

void MaxMin::freeze(Member& member, double level) {
  member.level = level;
  const Column& column = activities_[member.activity];
  for (std::uint32_t i = 0; i < column.watched; ++i) {
    const Step& step = steps_[column.first_step + i];
    filling_[step.link] += Filling{step.share * level, -step.share};
    --open_[step.link];
  }
}

// Includes activities beside the region whose bottleneck is not one any more: its links were full at their
// own level. Returns false when there are none.
bool MaxMin::grow() {
  const std::size_t before = region_.size();
  for (const Candidate& full : full_)
    for (const Crossing& crossing : links_[full.link].crossings.all())
      if (!is_open(crossing.activity) && level_now(crossing.activity) > full.level * (1 + kSame))
        include(crossing.activity);
  for (const Touched& touched : touched_) {
    if (!touched.others_hold) continue;
    const Link& link = links_[touched.link];
    const auto disturbs = [&](const Crossing& crossing) {
      const Member* member = member_of(crossing.activity);
      return member != nullptr && (member->bottleneck == kNone || member->level > link.level * (1 + kSame));
    };
    const auto crossings = link.crossings.all();
    if (std::abs(filled(touched.link) - link.capacity) > kSame * link.capacity ||
        std::any_of(crossings.begin(), crossings.end(), disturbs))
      include_members(touched.link);
  }
  return region_.size() > before;
}

// The link is the bottleneck of those of the region that filled it, at `level`.
void MaxMin::hold(LinkIndex index, double level, SimTime now) {
  Link& link = links_[index];
  frozen_in_[index] = round_;
  const auto joins = [&](const Crossing& crossing) {
    const Member* member = member_of(crossing.activity);
    return member != nullptr && member->bottleneck == index;
  };
  const auto others = link.crossings.all().subspan(link.members);
  if (std::abs(level - link.level) <= kSame * level && std::none_of(others.begin(), others.end(), joins))
    return;
  change_clock(index, now);
  for (std::uint32_t at = link.members; at < link.crossings.size(); ++at)
    if (joins(link.crossings[at])) claim(index, at, now);
  change_level(index, level, now);
}
}  // namespace topsim::network
