// Which links an activity watches: those it shares with others, and the tightest of those that it has alone.
#include <utility>

#include "sim/network/maxmin.hpp"

namespace topsim::network {

LinkIndex MaxMin::tie(LinkIndex a, LinkIndex b) {
  a = components_.root(a), b = components_.root(b);
  if (a == b) return a;
  forget(a);
  forget(b);
  return components_.join(a, b);
}

void MaxMin::swap_steps(Column& column, std::uint32_t a, std::uint32_t b) {
  if (a == b) return;
  std::swap(steps_[a], steps_[b]);
  for (const std::uint32_t step : {a, b}) links_[steps_[step].link].crossings[steps_[step].place].step = step;
  for (std::uint32_t* known : {&column.lone, &column.bottleneck}) {
    if (*known == a)
      *known = b;
    else if (*known == b)
      *known = a;
  }
}

void MaxMin::watch(Activity activity, std::uint32_t step, SimTime now) {
  Column& column = activities_[activity];
  const std::uint32_t to = column.first_step + column.watched++;
  swap_steps(column, step, to);
  const LinkIndex held = held_by_[activity];
  if (held == kNone) return;
  links_[steps_[to].link].carry(steps_[to].share * links_[held].level, now);
  if (rows_[held].valid) patch_row(held, steps_[to], true);
}

void MaxMin::unwatch(Activity activity, std::uint32_t step, SimTime now) {
  Column& column = activities_[activity];
  const std::uint32_t to = column.first_step + --column.watched;
  swap_steps(column, step, to);
  const LinkIndex held = held_by_[activity];
  if (held != kNone && rows_[held].valid) patch_row(held, steps_[to], false);
  const LinkIndex link = steps_[to].link;
  settle(link, 0, now);
  if (links_[link].members > 0) unwatched_.push_back(link);
}

bool MaxMin::is_watched(const Link& link) const {
  if (link.crossings.size() != 1) return !link.crossings.empty();
  const Column& column = activities_[link.crossings[0].activity];
  return link.crossings[0].step < column.first_step + column.watched;
}

// Another activity starts on the link, which this one had alone so far.
void MaxMin::meet(Activity activity, std::uint32_t step, SimTime now) {
  Column& column = activities_[activity];
  if (step == column.lone) {
    column.lone = kNone;
    tighten(activity, now);
  } else {
    tie(anchor(activity), steps_[step].link);
    watch(activity, step, now);
  }
}

// The activity has the link alone from now on.
void MaxMin::part(Activity activity, std::uint32_t step, SimTime now) {
  Column& column = activities_[activity];
  const std::uint32_t before = column.lone;
  if (before == kNone) {
    column.lone = step;
  } else if (limit(step) < limit(before)) {
    column.lone = step;
    unwatch(activity, before, now);
  } else {
    unwatch(activity, step, now);
  }
}

void MaxMin::tighten(Activity activity, SimTime now) {
  Column& column = activities_[activity];
  const std::uint32_t before = column.lone;
  std::uint32_t tightest = before;
  for (std::uint32_t i = column.watched; i < column.steps; ++i) {
    const std::uint32_t step = column.first_step + i;
    if (tightest == kNone || limit(step) < limit(tightest)) tightest = step;
  }
  if (tightest == before) return;
  tie(anchor(activity), steps_[tightest].link);
  column.lone = tightest;
  watch(activity, tightest, now);
  if (before != kNone) unwatch(activity, before, now);
}

void MaxMin::set_capacity(LinkIndex index, double capacity, SimTime now) {
  Link& link = links_[index];
  const double before = std::exchange(link.capacity, capacity);
  if (link.crossings.empty()) return;
  const auto [finish, activity, step] = link.crossings[0];
  if (link.crossings.size() == 1) {
    const std::uint32_t lone = activities_[activity].lone;
    if (step == lone ? capacity > before : limit(step) < limit(lone))
      tighten(activity, now);
    else if (step != lone)
      return;  // its other links limit it more
  }
  forget(components_.root(anchor(activity)));
  dirty_.push_back({index, true});
}

// A stalled activity keeps no link busy.
void MaxMin::stall(Activity activity, bool stalls, SimTime now) {
  Column& column = activities_[activity];
  if (column.stalled == stalls) return;
  column.stalled = stalls;
  stalls ? ++stalled_ : --stalled_;
  if (stalled_on_.size() < links_.size()) stalled_on_.resize(links_.size());
  for (std::uint32_t i = 0; i < column.steps; ++i) {
    const LinkIndex index = steps_[column.first_step + i].link;
    Link& link = links_[index];
    if (!stalls && stalled_on_[index] == link.crossings.size()) link.busy_since = now;
    stalls ? ++stalled_on_[index] : --stalled_on_[index];
    if (stalls && stalled_on_[index] == link.crossings.size()) link.busy += now - link.busy_since;
  }
}
}  // namespace topsim::network
