#include "sim/network/maxmin.hpp"

#include <algorithm>
#include <bit>
#include <cassert>

#include "sim/network/rounding.hpp"

namespace topsim::network {

MaxMin::MaxMin(std::span<const double> capacities) : links_(capacities.size()) {
  for (std::size_t link = 0; link < capacities.size(); ++link) links_[link].capacity = capacities[link];
  resize();
}

// Grows every column that is indexed by link.
void MaxMin::resize() {
  components_.resize(links_.size());
  filling_.resize(links_.size());
  open_.resize(links_.size());
  frozen_in_.resize(links_.size());
  rows_.resize(links_.size());
  histories_.resize(links_.size());
  slots_.resize(links_.size());
  positions_.resize(links_.size());
  solved_in_.resize(links_.size());
  pasts_.resize(links_.size());
  surveyed_in_.resize(links_.size());
  reach_.resize(links_.size());
}

LinkIndex MaxMin::add_link(double capacity) {
  if (free_links_.empty()) {
    free_links_.push_back(static_cast<LinkIndex>(links_.size()));
    links_.emplace_back();
    resize();
  }
  const LinkIndex link = free_links_.back();
  free_links_.pop_back();
  links_[link].capacity = capacity;
  return link;
}

std::uint32_t MaxMin::allocate_steps(std::size_t count) {
  const auto size_class = static_cast<std::size_t>(std::bit_width(count - 1));
  if (free_steps_.size() <= size_class) free_steps_.resize(size_class + 1);
  auto& free = free_steps_[size_class];
  if (free.empty()) {
    free.push_back(static_cast<std::uint32_t>(steps_.size()));
    steps_.resize(steps_.size() + (std::size_t{1} << size_class));
  }
  const std::uint32_t first = free.back();
  free.pop_back();
  return first;
}

MaxMin::Activity MaxMin::start(double work, double weight, std::span<const Usage> usage, SimTime now) {
  if (free_activities_.empty()) {
    free_activities_.push_back(static_cast<Activity>(activities_.size()));
    activities_.emplace_back();
    held_by_.emplace_back();
  }
  const Activity activity = free_activities_.back();
  free_activities_.pop_back();
  const auto count = static_cast<std::uint32_t>(usage.size());
  std::uint32_t shared = 0;
  for (const Usage& use : usage) shared += links_[use.link].crossings.empty() ? 0U : 1U;
  Column& column = activities_[activity];
  column = {};
  held_by_[activity] = kNone;
  column.first_step = allocate_steps(usage.size());
  column.steps = count;
  column.watched = shared;
  column.weight = weight;
  column.work = work / weight;

  std::uint32_t next_shared = column.first_step, next_lone = column.first_step + shared;
  LinkIndex tied = kNone;
  for (const Usage& use : usage) {
    Link& link = links_[use.link];
    const bool alone = link.crossings.empty();
    if (link.crossings.size() == 1) meet(link.crossings[0].activity, link.crossings[0].step, now);
    const std::uint32_t step = alone ? next_lone++ : next_shared++;
    if (link.crossings.size() == stalled_on(use.link)) link.busy_since = now;
    steps_[step] = {weight * use.coefficient, use.link, link.crossings.size()};
    link.crossings.push_back({0, activity, step});
    link.share += steps_[step].share;
    if (!alone)
      tied = tied == kNone ? use.link : tie(tied, use.link);
    else if (column.lone == kNone || limit(step) < limit(column.lone))
      column.lone = step;
  }
  if (column.lone != kNone) {
    const LinkIndex link = steps_[column.lone].link;
    tied = tied == kNone ? link : tie(tied, link);
    watch(activity, column.lone, now);
  }
  const LinkIndex root = components_.root(tied);
  forget(root);
  components_.started(root);
  dirty_.push_back({anchor(activity), false});
  started_.push_back(activity);
  return activity;
}

// --- A link's crossings: the members come first, as a binary heap by finish. ---

inline void MaxMin::place(Link& link, std::uint32_t at, const Crossing& crossing) {
  link.crossings[at] = crossing;
  steps_[crossing.step].place = at;
}

void MaxMin::sift_up(Link& link, std::uint32_t at, const Crossing& crossing) {
  while (at > 0) {
    const std::uint32_t parent = (at - 1) / 2;
    if (!(crossing.finish < link.crossings[parent].finish)) break;
    place(link, at, link.crossings[parent]);
    at = parent;
  }
  place(link, at, crossing);
}

void MaxMin::sift_down(Link& link, std::uint32_t at, const Crossing& crossing) {
  for (;;) {
    std::uint32_t child = 2 * at + 1;
    if (child >= link.members) break;
    if (child + 1 < link.members && link.crossings[child + 1].finish < link.crossings[child].finish) ++child;
    if (!(link.crossings[child].finish < crossing.finish)) break;
    place(link, at, link.crossings[child]);
    at = child;
  }
  place(link, at, crossing);
}

// The member at `at` stays on the link, but its bottleneck is another link from now on.
void MaxMin::leave(LinkIndex index, std::uint32_t at, SimTime now) {
  Link& link = links_[index];
  const Crossing gone = link.crossings[at];
  Column& column = activities_[gone.activity];
  column.peak = peak(column, now);
  if (rows_[index].valid) patch_row(index, gone.activity, false);
  const Crossing last = link.crossings[--link.members];
  link.retime |= at == 0;
  place(link, link.members, gone);
  if (at == link.members) return;
  if (at > 0 && last.finish < link.crossings[(at - 1) / 2].finish)
    sift_up(link, at, last);
  else
    sift_down(link, at, last);
}

// The activity at crossing `at`, not yet a member, has its bottleneck at `index` from now on.
void MaxMin::claim(LinkIndex index, std::uint32_t at, SimTime now) {
  Link& link = links_[index];
  Crossing crossing = link.crossings[at];
  Column& column = activities_[crossing.activity];
  double left = column.work;
  if (column.bottleneck != kNone) {
    const Step& step = steps_[column.bottleneck];
    const Link& old = links_[step.link];
    left = old.crossings[step.place].finish - (old.clock + old.level * seconds(now - old.clock_at));
    leave(step.link, step.place, now);
  }
  if (rows_[index].valid) patch_row(index, crossing.activity, true);
  crossing.finish = link.clock + left;
  column.bottleneck = crossing.step;
  held_by_[crossing.activity] = index;
  column.joined = now;
  place(link, at, link.crossings[link.members]);
  sift_up(link, link.members++, crossing);
  link.retime |= steps_[crossing.step].place == 0;
}

void MaxMin::remove(Activity activity, SimTime now) {
  const LinkIndex root = components_.root(anchor(activity));
  const Step at = steps_[activities_[activity].bottleneck];
  if (histories_[root] && histories_[root]->valid) amend(*histories_[root], activities_[activity]);
  const double level = links_[at.link].level;
  leave(at.link, at.place, now);
  const Column column = activities_[activity];
  for (std::uint32_t i = 0; i < column.steps; ++i) {
    const Step& step = steps_[column.first_step + i];
    Link& link = links_[step.link];
    link.bytes += step.share * column.work;
    link.peak = std::max(link.peak, step.share * column.peak);
    place(link, step.place, link.crossings[link.crossings.size() - 1]);
    link.crossings.pop_back();
    link.share -= step.share;
    if (link.crossings.size() == stalled_on(step.link)) link.busy += now - link.busy_since;
    if (link.crossings.empty()) {
      link.share = 0;
      link.level = link.clock = 0;
      settle(step.link, 0, now);
      continue;
    }
    dirty_.push_back({step.link, false});
    if (i < column.watched) link.carry(std::max(link.load - step.share * level, 0.0), now);
    if (link.crossings.size() == 1) part(link.crossings[0].activity, link.crossings[0].step, now);
  }
  components_.ended(root);
  if (components_.activities(root) == 0) {
    forget(root);
    components_.dissolve(root);
  }
  free_steps_[static_cast<std::size_t>(std::bit_width(column.steps - 1))].push_back(column.first_step);
  free_activities_.push_back(activity);
}

double MaxMin::take(Activity activity, SimTime now) {
  Column& column = activities_[activity];
  if (column.stalled) stall(activity, false, now);
  const double done = progress(column, now);
  const double left = std::max(column.work - done, 0.0) * column.weight;
  column.work = done;
  forget(components_.root(anchor(activity)));
  const LinkIndex held = held_by_[activity];
  remove(activity, now);
  // A region (maxmin_region.cpp) need not come to a link that has lost its last member.
  if (links_[held].members == 0) settle(held, links_[held].load, now);
  return left;
}

SimTime MaxMin::end_of(const Link& link) const {
  if (link.level <= 0) return kNever;
  return after_seconds(link.clock_at, (link.crossings[0].finish - link.clock) / link.level);
}

void MaxMin::end_due(SimTime now, std::vector<Activity>& ended) {
  scratch_.clear();
  ends_.take_until(now, scratch_);
  for (const LinkIndex index : scratch_) {
    Link& link = links_[index];
    do {
      const Activity activity = link.crossings[0].activity;
      ended.push_back(activity);
      remove(activity, now);
    } while (link.members > 0 && end_of(link) <= now);
    link.retime = true;
  }
}

double MaxMin::rate(Activity activity) const {
  const Column& column = activities_[activity];
  return column.weight * links_[held_by_[activity]].level;
}

LinkIndex MaxMin::bottleneck(Activity activity) const {
  return held_by_[activity];
}

double MaxMin::progress(const Column& column, SimTime now) const {
  const Step& at = steps_[column.bottleneck];
  const Link& link = links_[at.link];
  const double clock = link.clock + link.level * seconds(now - link.clock_at);
  return column.work - (link.crossings.all()[at.place].finish - clock);
}

// Highest rate per weight so far. Levels that lasted no time do not count.
double MaxMin::peak(const Column& column, SimTime now) const {
  const LinkIndex held = steps_[column.bottleneck].link;
  const Link& link = links_[held];
  double peak = column.peak;
  if (now > link.clock_at) peak = std::max(peak, link.level);
  if (link.has_past) peak = std::max(peak, pasts_[held].highest_since(column.joined));
  return peak;
}

LinkRecord MaxMin::record(LinkIndex index, SimTime now) const {
  const Link& link = links_[index];
  LinkRecord record{link.bytes, link.peak, link.busy};
  if (now > link.load_at) record.peak_rate = std::max(record.peak_rate, link.load);
  for (const Crossing& crossing : link.crossings.all()) {
    const Column& column = activities_[crossing.activity];
    if (column.bottleneck == kNone) continue;  // began at this instant: not solved yet, so nothing carried
    const double share = steps_[crossing.step].share;
    record.bytes += share * progress(column, now);
    record.peak_rate = std::max(record.peak_rate, share * peak(column, now));
  }
  if (link.crossings.size() > stalled_on(index)) record.busy += now - link.busy_since;
  return record;
}
}  // namespace topsim::network
