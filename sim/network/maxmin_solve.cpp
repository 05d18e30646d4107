// Progressive filling; the inequalities are at the head of maxmin.hpp.
#include <algorithm>
#include <cmath>

#include "sim/base/error.hpp"
#include "sim/network/maxmin.hpp"
#include "sim/network/rounding.hpp"

namespace topsim::network {
namespace {
constexpr double kRounding = 1e-11;  // relative; far above the rounding error of sums of a million doubles
constexpr std::size_t kWindow = 12;
}  // namespace

void MaxMin::solve(SimTime now) {
  if (dirty_.empty()) return;
  ++round_;
  std::size_t kept = 0;       // of dirty_: in components that are solved by regions
  std::uint32_t largest = 0;  // of these, activities
  for (const Dirty& dirty : dirty_) {
    if (links_[dirty.link].crossings.empty()) continue;
    const LinkIndex root = components_.root(anchor(links_[dirty.link].crossings[0].activity));
    if (has_regions(root)) {
      dirty_[kept++] = dirty;
      largest = std::max(largest, components_.activities(root));
    } else {
      solve_around(dirty.link, now);
    }
  }
  dirty_.resize(kept);
  if (pause_left_ > 0) --pause_left_;
  if (kept > 0) solve_regions(largest, now);
  dirty_.clear();
  started_.clear();
  for (const LinkIndex link : unwatched_) settle(link, links_[link].load, now);  // its members have left
  unwatched_.clear();
#ifndef NDEBUG
  check();
#endif
}

// The whole component of the link, once in a solve.
void MaxMin::solve_around(LinkIndex link, SimTime now) {
  const Activity activity = links_[link].crossings[0].activity;
  LinkIndex root = components_.root(anchor(activity));
  if (solved_in_[root] == round_) return;
  if (components_.activities(root) > 1 && components_.stale(root)) {
    split(root);
    root = components_.root(anchor(activity));
  }
  solved_in_[root] = round_;
  ++solves_;
  if (components_.activities(root) == 1)
    solve_alone(activity, now);
  else
    solve_component(root, now);
}

// Searches the component again: the activities that ended may have been what connected its links.
void MaxMin::split(LinkIndex root) {
  scratch_.clear();
  components_.each(root, [&](LinkIndex link) { scratch_.push_back(link); });
  forget(root);
  components_.dissolve(root);
  for (const LinkIndex index : scratch_) {
    for (const Crossing& crossing : links_[index].crossings.all()) {
      const Column& column = activities_[crossing.activity];
      if (column.first_step != crossing.step) continue;
      LinkIndex joined = components_.root(index);
      for (std::uint32_t i = 1; i < column.watched; ++i)
        joined = components_.join(joined, steps_[column.first_step + i].link);
      components_.started(joined);
    }
  }
}

// The only activity of its component: its tightest link sets its rate.
void MaxMin::solve_alone(Activity activity, SimTime now) {
  const std::uint32_t lone = activities_[activity].lone;
  const LinkIndex tightest = steps_[lone].link;
  open_[tightest] = 1;
  fill(tightest, limit(lone), now);
  settle(tightest, links_[tightest].capacity, now);
}

// After many subtractions open_share may be mostly rounding error; computes it afresh.
void MaxMin::recount(LinkIndex index) {
  double frozen = 0, others = 0;
  for (const Crossing& crossing : links_[index].crossings.all()) {
    const double share = steps_[crossing.step].share;
    if (is_frozen(crossing.activity))
      frozen += share * links_[held_by_[crossing.activity]].level;
    else
      others += share;
  }
  filling_[index] = Filling{frozen, others};
}

// The smaller child is chosen by arithmetic, since a branch would be unpredictable.
void MaxMin::sift_candidate(std::size_t at) {
  const Candidate moved = candidates_[at];
  const std::size_t size = candidates_.size();
  std::size_t child = 2 * at + 1;
  for (; child + 1 < size; child = 2 * at + 1) {
    child += static_cast<std::size_t>(candidates_[child + 1].level < candidates_[child].level);
    if (!(candidates_[child].level < moved.level)) break;
    candidates_[at] = candidates_[child];
    at = child;
  }
  if (child + 1 == size && candidates_[child].level < moved.level) {
    candidates_[at] = candidates_[child];
    at = child;
  }
  candidates_[at] = moved;
}

void MaxMin::candidate(LinkIndex index) {
  if (open_[index] == 0) return;
  if (open_share(index) < kCancelled * links_[index].share) recount(index);
  candidates_.push_back({level_of(index), index});
}

void MaxMin::clear_solve() {
  candidates_.clear();
  pending_.clear();
  scratch_.clear();
  admitted_ = 0;
}

void MaxMin::solve_component(LinkIndex root, SimTime now) {
  clear_solve();
  History* history = history_of(root);
  if (history == nullptr || !history->valid) {
    components_.each(root, [&](LinkIndex index) {
      const Link& link = links_[index];
      if (!is_watched(link)) return;
      filling_[index] = Filling{0, link.share};
      open_[index] = link.crossings.size();
      scratch_.push_back(index);
      candidate(index);
    });
    if (history != nullptr) begin(*history, scratch_);
    fill_all(history, 0, now);
  } else if (!resume_in_order(*history, now)) {
    solved_in_[root] = ++round_;
    fill_all(history, resume(*history, false), now);
  }
  for (const LinkIndex index : scratch_)
    settle(index, frozen_in_[index] == round_ ? links_[index].capacity : filled(index), now);
}

// Freezing at a lower level only raises the level at which another link fills, so a candidate's stored level
// is a lower bound and needs another look only when it is the top. Returns false when a link came too late
// because the order of the pending links was wrong.
bool MaxMin::fill_all(History* history, double level, SimTime now) {
  for (std::size_t at = candidates_.size() / 2; at-- > 0;) sift_candidate(at);
  for (std::size_t i = 0; i < kWindow; ++i) admit();
  while (!candidates_.empty()) {
    const Candidate top = candidates_.front();
    if (open_[top.link] > 0) {
      if (open_share(top.link) < kCancelled * links_[top.link].share) recount(top.link);
      const double current = level_of(top.link);
      candidates_.front().level = current;
      if (!is_least(current)) {
        sift_candidate(0);
        continue;
      }
      if (!pending_.empty() && current < level * (1 - kRounding)) return false;
      level = std::max(level, current);
      if (history != nullptr) {
        if (history->order.size() % history->stride == 0) save(*history);
        positions_[top.link] = static_cast<std::uint32_t>(history->order.size());
        history->order.push_back(top.link);
      }
      fill(top.link, level, now);
      freeze(top.link);
    }
    candidates_.front() = candidates_.back();
    candidates_.pop_back();
    if (!candidates_.empty()) sift_candidate(0);
    admit();
  }
  return true;
}

// Prefetches what filling the link will read, a window ahead: large components do not fit the first-level
// cache.
inline void MaxMin::fetch(LinkIndex index) const {
  constexpr std::size_t kLine = 64, kLines = 8;
  const auto* row = reinterpret_cast<const char*>(rows_[index].entries.data());
  for (std::size_t line = 0; line < kLines; ++line) __builtin_prefetch(row + line * kLine);
  __builtin_prefetch(&links_[index]);
  pasts_[index].fetch();
}

// The next pending link that is still open becomes a candidate.
void MaxMin::admit() {
  const std::size_t before = candidates_.size();
  while (candidates_.size() == before) {
    if (admitted_ == pending_.size()) return;
    candidate(pending_[admitted_++]);
  }
  const Candidate added = candidates_.back();
  fetch(added.link);
  std::size_t at = before;
  for (; at > 0 && added.level < candidates_[(at - 1) / 2].level; at = (at - 1) / 2)
    candidates_[at] = candidates_[(at - 1) / 2];
  candidates_[at] = added;
}

// A change of one link hardly alters the order, so the old order is tried first, with a small window of
// candidates. The result is the max-min allocation if levels never fell and no link is overloaded; both are
// checked.
bool MaxMin::resume_in_order(History& history, SimTime now) {
  const std::uint32_t from = history.resume;
  bool in_order = fill_all(&history, resume(history, true), now);
  for (std::size_t i = 0; in_order && i < scratch_.size(); ++i) {
    const LinkIndex index = scratch_[i];
    in_order = frozen_in_[index] == round_ ||
               (open_[index] == 0 && filled(index) <= links_[index].capacity * (1 + kRounding));
  }
  shortcuts_.resumes += static_cast<std::uint64_t>(in_order);
  if (in_order) return true;
  history.resume = from;
  history.order.resize(std::size_t{from} * history.stride);
  clear_solve();
  return false;
}

// The link fills at `level`: every activity that crosses it and is not frozen becomes its member. A member
// that no other link has claimed is not frozen, so equal counts mean equal sets.
void MaxMin::fill(LinkIndex index, double level, SimTime now) {
  const Link& link = links_[index];
  frozen_in_[index] = round_;
  const std::uint32_t open = open_[index];
  if (link.level == level && link.members == open) return;
  change_clock(index, now);
  for (std::uint32_t at = link.members; link.members < open; ++at) {
    if (!is_frozen(link.crossings[at].activity)) claim(index, at, now);
  }
  change_level(index, level, now);
}

// The members have progressed at the link's level until now.
void MaxMin::change_clock(LinkIndex index, SimTime now) {
  Link& link = links_[index];
  if (link.members == 0) {
    link.clock = 0;
    if (link.has_past) pasts_[index].clear();
    link.has_past = false;
  } else if (now > link.clock_at) {
    link.clock += link.level * seconds(now - link.clock_at);
    if (link.members == 1) {
      double& peak = activities_[link.crossings[0].activity].peak;
      peak = std::max(peak, link.level);
    } else {
      pasts_[index].add(link.clock_at, link.level);
      link.has_past = true;
    }
  }
  link.clock_at = now;
}

void MaxMin::change_level(LinkIndex index, double level, SimTime now) {
  Link& link = links_[index];
  link.level = level;
  link.retime = true;
  if (stalled_ == 0 && level > 0) return;
  for (std::uint32_t at = 0; at < link.members; ++at) stall(link.crossings[at].activity, level <= 0, now);
}

// The members' usage is fixed from here on.
void MaxMin::freeze(LinkIndex index) {
  const Link& link = links_[index];
  Row& row = rows_[index];
  if (link.members >= kRowMembers && link.members <= kRowLimit && !row.valid && ++row.freezes > 1)
    build_row(index);
  const Filling per_share{link.level, -1};
  if (row.valid) {
    ++shortcuts_.rows;
    for (const RowEntry& entry : row.entries) {
      filling_[entry.link] += entry.count * row.shares[entry.share] * per_share;
      open_[entry.link] -= entry.count;
    }
    return;
  }
  for (std::uint32_t member = 0; member < link.members; ++member) {
    const Column& column = activities_[link.crossings[member].activity];
    for (std::uint32_t i = 0; i < column.watched; ++i) {
      const Step& step = steps_[column.first_step + i];
      filling_[step.link] += step.share * per_share;
      --open_[step.link];
    }
  }
}

// After a solve: the link carries `load` from now on (0 also where no activity watches it any more).
void MaxMin::settle(LinkIndex index, double load, SimTime now) {
  Link& link = links_[index];
  link.carry(load, now);
  if (link.members == 0) {
    link.level = 0;
    if (ends_.contains(index)) ends_.erase(index);
  } else if (link.retime) {
    ends_.set(index, end_of(link));
  }
  link.retime = false;
}

void MaxMin::check() const {
  const auto fail = [](const char* what) { throw InternalError(what); };
  constexpr double kTolerance = 1e-9;
  for (LinkIndex index = 0; index < links_.size(); ++index) {
    const Link& link = links_[index];
    double load = 0;
    for (const Crossing& crossing : link.crossings.all()) {
      const double level = links_[bottleneck(crossing.activity)].level;
      load += steps_[crossing.step].share * level;
      if (link.members > 0 && level > link.level * (1 + kTolerance))
        fail("max-min: an activity is faster than those whose bottleneck the link is");
    }
    if (load > link.capacity * (1 + kTolerance)) fail("max-min: a link carries more than its capacity");
    if (link.members > 0 && load < link.capacity * (1 - kTolerance))
      fail("max-min: a bottleneck has capacity to spare");
    if (is_watched(link) && std::abs(link.load - load) > kTolerance * link.capacity)
      fail("max-min: a link's load is not what its activities put on it");
    if (link.members > 0 && !is_watched(link)) fail("max-min: a bottleneck that nobody watches");
    if (ends_.contains(index) != (link.members > 0) || (link.members > 0 && ends_.key(index) != end_of(link)))
      fail("max-min: a bottleneck and the end of its first member disagree");
    for (std::uint32_t at = 0; at < link.crossings.size(); ++at) {
      const auto& [finish, activity, step] = link.crossings.all()[at];
      const Column& column = activities_[activity];
      if (steps_[step].link != index || steps_[step].place != at)
        fail("max-min: an activity and a link it crosses disagree");
      if ((column.bottleneck == step) != (at < link.members))
        fail("max-min: an activity and its bottleneck disagree");
      if (link.crossings.size() == 1 && column.lone == kNone)
        fail("max-min: an activity has a link to itself and does not know");
      if (link.crossings.size() > 1 ? step == column.lone : limit(column.lone) > limit(step))
        fail("max-min: the tightest link of an activity is not what it takes for it");
      if ((link.crossings.size() > 1 || step == column.lone) != (step < column.first_step + column.watched))
        fail("max-min: an activity watches other links than it should");
    }
  }
}
}  // namespace topsim::network
