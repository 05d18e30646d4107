// The filling itself; the inequalities are at the head of maxmin.hpp.
#include <algorithm>
#include <cmath>

#include "sim/base/error.hpp"
#include "sim/network/maxmin.hpp"
#include "sim/network/rounding.hpp"

namespace topsim::network {

void MaxMin::solve(SimTime now) {
  if (dirty_.empty()) return;
  ++round_;
  for (const LinkIndex link : dirty_) {
    if (links_[link].crossings.empty()) continue;
    LinkIndex root = components_.root(link);
    if (solved_in_[root] == round_) continue;
    if (components_.activities(root) > 1 && components_.stale(root)) {
      split(root);
      root = components_.root(link);
    }
    solved_in_[root] = round_;
    ++solves_;
    if (components_.activities(root) == 1)
      solve_alone(link, now);
    else
      solve_component(root, now);
  }
  dirty_.clear();
#ifndef NDEBUG
  check();
#endif
}

// Searches the component again: ended activities may have been what held it together.
void MaxMin::split(LinkIndex root) {
  scratch_.clear();
  components_.each(root, [&](LinkIndex link) { scratch_.push_back(link); });
  components_.dissolve(root);
  for (const LinkIndex index : scratch_) {
    for (const Crossing& crossing : links_[index].crossings) {
      const Column& column = activities_[crossing.activity];
      if (column.first_step != crossing.step) continue;
      LinkIndex joined = components_.root(index);
      for (std::uint32_t i = 1; i < column.steps; ++i)
        joined = components_.join(joined, steps_[column.first_step + i].link);
      components_.started(joined);
    }
  }
}

// The only activity of its component: its rate is what its tightest link allows.
void MaxMin::solve_alone(LinkIndex any, SimTime now) {
  const Activity activity = links_[any].crossings.front().activity;
  const Column& column = activities_[activity];
  const Step* tightest = &steps_[column.first_step];
  double level = links_[tightest->link].capacity / tightest->share;
  for (std::uint32_t i = 1; i < column.steps; ++i) {
    const Step& step = steps_[column.first_step + i];
    const double allowed = links_[step.link].capacity / step.share;
    if (allowed < level) level = allowed, tightest = &step;
  }
  links_[tightest->link].open = 1;
  fill(tightest->link, level, now);
  for (std::uint32_t i = 0; i < column.steps; ++i) {
    const Step& step = steps_[column.first_step + i];
    settle(step.link, &step == tightest ? links_[step.link].capacity : level * step.share, now);
  }
}

inline double MaxMin::level_of(const Link& link) const {
  return (link.capacity - link.filled) / link.open_share;
}

// What subtraction has left of open_share may be mostly rounding; counts it afresh.
void MaxMin::recount(Link& link) const {
  link.filled = link.open_share = 0;
  for (const Crossing& crossing : link.crossings) {
    const std::uint32_t at = activities_[crossing.activity].bottleneck;
    const double share = steps_[crossing.step].share;
    if (at != kNone && links_[steps_[at].link].frozen_in == round_)
      link.filled += share * links_[steps_[at].link].level;
    else
      link.open_share += share;
  }
}

void MaxMin::sift_candidate(std::size_t at) {
  const Candidate moved = candidates_[at];
  for (;;) {
    std::size_t child = 2 * at + 1;
    if (child >= candidates_.size()) break;
    if (child + 1 < candidates_.size() && candidates_[child + 1].level < candidates_[child].level) ++child;
    if (!(candidates_[child].level < moved.level)) break;
    candidates_[at] = candidates_[child];
    at = child;
  }
  candidates_[at] = moved;
}

void MaxMin::solve_component(LinkIndex root, SimTime now) {
  candidates_.clear();
  scratch_.clear();
  components_.each(root, [&](LinkIndex index) {
    Link& link = links_[index];
    if (link.crossings.empty()) return;
    link.filled = 0;
    link.open_share = link.share;
    link.open = static_cast<std::uint32_t>(link.crossings.size());
    candidates_.push_back({level_of(link), index});
    scratch_.push_back(index);
  });
  for (std::size_t at = candidates_.size() / 2; at-- > 0;) sift_candidate(at);

  // Freezing at a lower level only raises the level at which another link fills, so a candidate's stored
  // level is a lower bound and is looked at again only when it comes to the top.
  double level = 0;
  while (!candidates_.empty()) {
    const Candidate top = candidates_.front();
    Link& link = links_[top.link];
    if (link.open > 0) {
      if (link.open_share < 1e-6 * link.share) recount(link);
      const double current = level_of(link);
      if (current > top.level) {
        candidates_.front().level = current;
        sift_candidate(0);
        continue;
      }
      level = std::max(level, current);
    }
    candidates_.front() = candidates_.back();
    candidates_.pop_back();
    if (!candidates_.empty()) sift_candidate(0);
    if (link.open > 0) {
      fill(top.link, level, now);
      freeze(link);
    }
  }
  for (const LinkIndex index : scratch_) {
    const Link& link = links_[index];
    settle(index, link.frozen_in == round_ ? link.capacity : link.filled, now);
  }
}

// The link fills at `level`: whatever crosses it and is not frozen becomes its member. Members that others
// did not claim before are not frozen either, so equal counts mean equal sets.
void MaxMin::fill(LinkIndex index, double level, SimTime now) {
  Link& link = links_[index];
  link.frozen_in = round_;
  if (link.level == level && link.members == link.open) return;
  link.clock = link.members == 0 ? 0 : link.clock + link.level * seconds(now - link.clock_at);
  link.clock_at = now;
  for (std::uint32_t at = link.members; link.members < link.open; ++at) {
    const std::uint32_t held = activities_[link.crossings[at].activity].bottleneck;
    if (held == kNone || links_[steps_[held].link].frozen_in != round_) claim(index, at, now);
  }
  link.level = level;
  link.retime = true;
}

void MaxMin::freeze(const Link& link) {
  for (std::uint32_t member = 0; member < link.members; ++member) {
    const Column& column = activities_[link.crossings[member].activity];
    for (std::uint32_t i = 0; i < column.steps; ++i) {
      const Step& step = steps_[column.first_step + i];
      Link& other = links_[step.link];
      other.filled += step.share * link.level;
      other.open_share -= step.share;
      --other.open;
    }
  }
}

// After a solve: the link carries `load` from now on.
void MaxMin::settle(LinkIndex index, double load, SimTime now) {
  Link& link = links_[index];
  if (link.load != load) {
    if (now > link.load_at) {
      link.bytes += link.load * seconds(now - link.load_at);
      link.peak = std::max(link.peak, link.load);
      if (link.load > 0) link.busy += now - link.load_at;
      link.load_at = now;
    }
    link.load = load;
  }
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
  for (const Link& link : links_) {
    double load = 0;
    for (const Crossing& crossing : link.crossings) {
      const double level = links_[bottleneck(crossing.activity)].level;
      load += steps_[crossing.step].share * level;
      if (link.members > 0 && level > link.level * (1 + kTolerance))
        fail("max-min: an activity is faster than those whose bottleneck the link is");
    }
    if (load > link.capacity * (1 + kTolerance)) fail("max-min: a link carries more than its capacity");
    if (link.members > 0 && load < link.capacity * (1 - kTolerance))
      fail("max-min: a bottleneck has capacity to spare");
    for (std::uint32_t at = 0; at < link.crossings.size(); ++at) {
      const std::uint32_t step = link.crossings[at].step;
      if ((activities_[link.crossings[at].activity].bottleneck == step) != (at < link.members))
        fail("max-min: an activity and its bottleneck disagree");
    }
  }
}
}  // namespace topsim::network
