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

// All columns by link.
void MaxMin::resize() {
  components_.resize(links_.size());
  filling_.resize(links_.size());
  rows_.resize(links_.size());
  histories_.resize(links_.size());
  slots_.resize(links_.size());
  positions_.resize(links_.size());
  solved_in_.resize(links_.size());
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

MaxMin::Activity MaxMin::start(double work, double weight, std::span<const Usage> usage) {
  if (free_activities_.empty()) {
    free_activities_.push_back(static_cast<Activity>(activities_.size()));
    activities_.emplace_back();
  }
  const Activity activity = free_activities_.back();
  free_activities_.pop_back();
  const std::uint32_t first = allocate_steps(usage.size());
  activities_[activity] = {first,        static_cast<std::uint32_t>(usage.size()), kNone, kNone, weight,
                           work / weight};

  LinkIndex root = components_.root(usage.front().link);
  for (std::size_t i = 0; i < usage.size(); ++i) {
    Link& link = links_[usage[i].link];
    const auto step = static_cast<std::uint32_t>(first + i);
    const double share = weight * usage[i].coefficient;
    steps_[step] = {share, usage[i].link, link.crossings.size()};
    link.crossings.push_back({0, activity, step});
    link.share += share;
    if (i > 0) {
      const LinkIndex other = components_.root(usage[i].link);
      if (other == root) continue;
      forget(other);
      forget(root);
      root = components_.join(root, other);
    }
  }
  forget(root);
  components_.started(root);
  dirty_.push_back(usage.front().link);
  return activity;
}

void MaxMin::set_capacity(LinkIndex link, double capacity) {
  links_[link].capacity = capacity;
  forget(components_.root(link));
  dirty_.push_back(link);
}

// --- A link's crossings: members first, as a binary heap by finish. ---

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

// The member at `at` stays on the link but has its bottleneck elsewhere from now on.
void MaxMin::leave(LinkIndex index, std::uint32_t at) {
  Link& link = links_[index];
  const Crossing gone = link.crossings[at];
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

// The activity at crossing `at`, not yet a member, has its bottleneck on `index` from now on.
void MaxMin::claim(LinkIndex index, std::uint32_t at, SimTime now) {
  Link& link = links_[index];
  Crossing crossing = link.crossings[at];
  Column& column = activities_[crossing.activity];
  double left = column.left;
  if (column.bottleneck != kNone) {
    const Step& step = steps_[column.bottleneck];
    Link& old = links_[step.link];
    left = old.crossings[step.place].finish - (old.clock + old.level * seconds(now - old.clock_at));
    leave(step.link, step.place);
  }
  if (rows_[index].valid) patch_row(index, crossing.activity, true);
  crossing.finish = link.clock + left;
  column.bottleneck = crossing.step;
  column.held_by = index;
  place(link, at, link.crossings[link.members]);
  sift_up(link, link.members++, crossing);
  link.retime |= steps_[crossing.step].place == 0;
}

void MaxMin::remove(Activity activity, SimTime now) {
  const Column column = activities_[activity];
  const Step& at = steps_[column.bottleneck];
  Link& bottleneck = links_[at.link];
  const LinkIndex root = components_.root(at.link);
  if (histories_[root] && histories_[root]->valid) amend(*histories_[root], column);
  // Progress that rounding to a picosecond left over or took too much.
  const double residue = bottleneck.crossings[at.place].finish -
                         (bottleneck.clock + bottleneck.level * seconds(now - bottleneck.clock_at));
  leave(at.link, at.place);
  for (std::uint32_t i = 0; i < column.steps; ++i) {
    const Step& step = steps_[column.first_step + i];
    Link& link = links_[step.link];
    link.bytes += residue * step.share;
    place(link, step.place, link.crossings[link.crossings.size() - 1]);
    link.crossings.pop_back();
    link.share -= step.share;
    if (link.crossings.empty()) {
      link.share = 0;
      link.level = link.clock = 0;
      settle(step.link, 0, now);
    } else {
      dirty_.push_back(step.link);
    }
  }
  components_.ended(root);
  if (components_.activities(root) == 0) {
    forget(root);
    components_.dissolve(root);
  }
  free_steps_[static_cast<std::size_t>(std::bit_width(column.steps - 1))].push_back(column.first_step);
  free_activities_.push_back(activity);
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
  return column.weight * links_[column.held_by].level;
}

LinkIndex MaxMin::bottleneck(Activity activity) const {
  return activities_[activity].held_by;
}

LinkRecord MaxMin::record(LinkIndex index, SimTime now) const {
  const Link& link = links_[index];
  LinkRecord record{link.bytes, link.peak, link.busy};
  if (link.load > 0 && now > link.load_at) {
    record.bytes += link.load * seconds(now - link.load_at);
    record.peak_rate = std::max(record.peak_rate, link.load);
    record.busy += now - link.load_at;
  }
  return record;
}
}  // namespace topsim::network
