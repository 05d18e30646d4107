// Weighted max-min fair sharing, solved again only where something changed.
//
// Activity a of weight w_a puts u_a(l) bytes on link l per unit of its progress; its rate is x_a. Maximise
// the smallest x_a / w_a, then the next, ..., subject to
//     sum_a u_a(l) x_a <= C_l   for every link l,        x_a >= 0.
// The solution is unique, and x solves it if and only if every activity has a bottleneck: a link b that is
// full (equality above) and on which no other activity has a larger x / w (Bertsekas and Gallager, Data
// Networks, 2nd ed., section 6.5.2). `check()` tests exactly that.
//
// Progressive filling: a common level rises from 0; link l fills at
//     level_l = (C_l - sum over frozen a of u_a(l) x_a) / (sum over a not frozen of w_a u_a(l)),
// the link with the smallest level fills first and freezes its activities at x_a = w_a level_l.
//
// Time: members of one bottleneck b all progress by w_a level_b dt. So a link keeps a clock
// V_b = integral of level_b dt, and a member that joined with work W_a left ends when V_b has grown by W_a /
// w_a. A solve therefore changes one number a link, not one an activity, and only activities that change
// their bottleneck are touched.
//
// Rounding: an activity ends at the picosecond nearest to the exact instant, counted from the last change of
// its bottleneck's level. Bytes are counted by progress, so that a link has carried exactly u W of each
// activity that ended.
//
// Links that an activity has to itself limit nobody else, and only the tightest of them can limit the
// activity. So it *watches* the links it shares and that one. The others are left out of components and
// solves; their records follow from the activity's own progress and highest rate. Most links of a large
// fabric are of that kind.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "sim/engine/indexed_heap.hpp"
#include "sim/network/components.hpp"
#include "sim/network/crossings.hpp"
#include "sim/network/network.hpp"
#include "sim/network/past_levels.hpp"

namespace topsim::network {

class MaxMin {
 public:
  using Activity = std::uint32_t;
  static constexpr std::uint32_t kNone = std::numeric_limits<std::uint32_t>::max();

  explicit MaxMin(std::span<const double> capacities);

  // A further link, such as the private one that a rate cap is. Its number may be one released before.
  LinkIndex add_link(double capacity);
  // REQUIRES: no activity crosses it.
  void release_link(LinkIndex link) { free_links_.push_back(link); }

  // REQUIRES: work > 0, weight > 0, usage not empty, coefficients > 0, no link twice. The rate is valid after
  // the next solve().
  Activity start(double work, double weight, std::span<const Usage> usage, SimTime now);
  void set_capacity(LinkIndex link, double capacity, SimTime now);
  // Ends it early; returns the remaining work. REQUIRES: not dirty.
  double take(Activity activity, SimTime now);
  // Shares again all that changed since the last solve, which must all have happened at `now`.
  void solve(SimTime now);

  // REQUIRES: not dirty. The instant the next activity ends, kNever when none will.
  [[nodiscard]] SimTime next_end() const { return ends_.empty() ? kNever : ends_.top().key; }
  // REQUIRES: not dirty, now <= next_end(). Removes what ends at `now` and appends it to `ended`.
  void end_due(SimTime now, std::vector<Activity>& ended);

  // Both: REQUIRES not dirty. The bottleneck is also known of what ended, until something starts.
  [[nodiscard]] double rate(Activity activity) const;
  [[nodiscard]] LinkIndex bottleneck(Activity activity) const;
  [[nodiscard]] LinkRecord record(LinkIndex link, SimTime now) const;
  [[nodiscard]] std::uint64_t solves() const { return solves_; }
  // How often what makes large components cheap was used, for tests: that they are right says nothing where
  // none of these is above 0.
  struct Shortcuts {
    std::uint64_t regions = 0;  // shared a part only
    std::uint64_t resumes = 0;  // went on from a snapshot
    std::uint64_t rows = 0;     // froze a remembered row
  };
  [[nodiscard]] const Shortcuts& shortcuts() const { return shortcuts_; }
  // Throws InternalError unless capacity is kept and every activity has a bottleneck. Debug builds call it
  // after every solve.
  void check() const;

 private:
  // One crossing of a link by an activity, as the activity sees it.
  struct Step {
    double share;  // w_a u_a(l)
    LinkIndex link;
    std::uint32_t place;  // in the link's crossings
  };
  // Two cache lines.
  struct alignas(64) Link {
    double capacity = 0;
    double share = 0;  // of all crossings
    double level = 0;  // rate per weight of the members
    double clock = 0;  // at clock_at
    SimTime clock_at{};
    Crossings crossings;
    std::uint32_t members = 0;
    bool retime = false;    // its first member or its level has changed
    bool has_past = false;  // PastLevels of its members
    // Record. `load` since load_at, while some activity watches it; bytes of activities that ended; highest
    // load and time with any up to load_at and busy_since.
    double load = 0, bytes = 0, peak = 0;
    SimTime load_at{}, busy_since{};
    Duration busy{};

    void carry(double rate, SimTime now) {  // from now on
      if (load == rate) return;
      if (now > load_at) peak = std::max(peak, load);
      load_at = now;
      load = rate;
    }
  };
  // Of a link during a solve: bytes/s of frozen activities, and the share of the others. They change
  // together, in one register: this is the innermost loop of large components.
  using Filling [[gnu::vector_size(2 * sizeof(double))]] = double;
  // How many members of a bottleneck put how much on one other link per unit of its level. Eight bytes, since
  // rows stream through the cache at every solve; counts are exact however often they are patched.
  struct RowEntry {
    LinkIndex link;
    std::uint16_t count, share;  // index into Row::shares
    [[nodiscard]] std::uint64_t key() const { return std::uint64_t{link} << 16 | share; }
  };
  // Kept for a bottleneck with many members that is solved over and over, and patched when one joins or
  // leaves: freezing it then costs its other links, not its members.
  static constexpr std::uint32_t kRowMembers = 8;    // below, walking the members is as cheap
  static constexpr std::uint32_t kRowLimit = 65535;  // what a count can hold
  static constexpr std::size_t kRowShares = 16;
  struct Row {
    std::vector<RowEntry> entries;  // by key
    std::vector<double> shares;     // distinct
    std::uint32_t freezes = 0;      // without the row
    std::uint32_t empty = 0;        // entries whose count is 0
    bool valid = false;
  };
  // How a large component filled, kept while it only loses activities: the end of one changes nothing before
  // its own bottleneck filled, so the next solve goes on from the last snapshot before that.
  struct History {
    std::vector<LinkIndex> links, order;  // all, and the bottlenecks as they filled
    std::vector<Filling> filling;         // snapshots of all links, before every stride-th filling
    std::vector<std::uint32_t> open;      // the same
    std::uint32_t stride = 0;
    std::uint32_t resume = 0;  // the last snapshot that holds
    std::uint32_t solves = 0;  // since something other than an end happened
    bool valid = false;
  };
  struct alignas(64) Column {
    std::uint32_t first_step, steps;
    std::uint32_t watched = 0;         // how many of its steps, the first ones
    std::uint32_t lone = kNone;        // step: the tightest link that nobody else crosses
    std::uint32_t bottleneck = kNone;  // step, none before the first solve
    double weight, work;               // work / weight
    double peak = 0;                   // highest rate per weight before `joined`
    SimTime joined{};                  // its bottleneck
    bool stalled = false;              // at rate 0, on a link without capacity
  };
  struct Candidate {
    double level;
    LinkIndex link;
  };
  struct Dirty {
    LinkIndex link;
    bool capacity;  // has changed; else only activities
  };
  // An activity whose rate is open; see maxmin_region.cpp.
  struct Member {
    Activity activity;
    LinkIndex bottleneck = kNone;  // kNone: not frozen
    double level = 0;              // when it is frozen; before, the highest it can have
  };
  struct Touched {  // a link that a region crosses
    LinkIndex link;
    bool others_hold = false;  // it is the bottleneck of activities beside the region
    bool exact = false;        // filling_ holds its load; else the change of its load
  };

  static constexpr double kCancelled = 1e-6;  // a difference this small beside its terms is computed afresh

  void resize();
  std::uint32_t allocate_steps(std::size_t count);
  [[nodiscard]] LinkIndex anchor(Activity activity) const {  // always watched
    return steps_[activities_[activity].first_step].link;
  }
  LinkIndex tie(LinkIndex a, LinkIndex b);
  void swap_steps(Column& column, std::uint32_t a, std::uint32_t b);
  void watch(Activity activity, std::uint32_t step, SimTime now);
  void unwatch(Activity activity, std::uint32_t step, SimTime now);
  void meet(Activity activity, std::uint32_t step, SimTime now);
  void part(Activity activity, std::uint32_t step, SimTime now);
  void tighten(Activity activity, SimTime now);
  [[nodiscard]] bool is_watched(const Link& link) const;
  [[nodiscard]] double limit(std::uint32_t step) const {
    return links_[steps_[step].link].capacity / steps_[step].share;
  }
  void stall(Activity activity, bool stalls, SimTime now);
  [[nodiscard]] std::uint32_t stalled_on(LinkIndex link) const {
    return link < stalled_on_.size() ? stalled_on_[link] : 0;
  }
  [[nodiscard]] double progress(const Column& column, SimTime now) const;
  [[nodiscard]] double peak(const Column& column, SimTime now) const;
  void place(Link& link, std::uint32_t at, const Crossing& crossing);
  void sift_up(Link& link, std::uint32_t at, const Crossing& crossing);
  void sift_down(Link& link, std::uint32_t at, const Crossing& crossing);
  void leave(LinkIndex index, std::uint32_t at, SimTime now);
  void claim(LinkIndex link, std::uint32_t at, SimTime now);
  void remove(Activity activity, SimTime now);

  [[nodiscard]] bool has_regions(LinkIndex root) const;
  void solve_regions(std::uint32_t largest, SimTime now);
  void seed_region();
  bool solve_region(std::size_t most, SimTime now);
  [[nodiscard]] double level_now(Activity activity) const;
  [[nodiscard]] bool is_open(Activity activity) const {
    return activity < region_of_.size() && region_of_[activity].first == region_stamp_;
  }
  [[nodiscard]] Member* member_of(Activity activity) {
    return is_open(activity) ? &region_[region_of_[activity].second] : nullptr;
  }
  void include(Activity activity);
  void include_members(LinkIndex index);
  void survey();
  void recount_region(LinkIndex index);
  void fill_region();
  void freeze(Member& member, double level);
  bool grow();
  void hold(LinkIndex index, double level, SimTime now);

  void solve_around(LinkIndex link, SimTime now);
  void split(LinkIndex root);
  void solve_alone(Activity activity, SimTime now);
  void clear_solve();
  void solve_component(LinkIndex root, SimTime now);
  bool fill_all(History* history, double level, SimTime now);
  History* history_of(LinkIndex root);
  void forget(LinkIndex root);
  void amend(History& history, const Column& ended);
  bool resume_in_order(History& history, SimTime now);
  double resume(History& history, bool in_order);
  void admit();
  void fetch(LinkIndex index) const;
  // Whether the top candidate, now at `level`, is still the least.
  [[nodiscard]] bool is_least(double level) const {
    return (candidates_.size() < 2 || level <= candidates_[1].level) &&
           (candidates_.size() < 3 || level <= candidates_[2].level);
  }
  void begin(History& history, const std::vector<LinkIndex>& links);
  void save(History& history);
  void candidate(LinkIndex index);
  [[nodiscard]] double level_of(LinkIndex index) const {
    return (links_[index].capacity - filled(index)) / open_share(index);
  }
  [[nodiscard]] bool is_frozen(Activity activity) const {
    const LinkIndex held = held_by_[activity];
    return held != kNone && frozen_in_[held] == round_;
  }
  [[nodiscard]] double filled(LinkIndex index) const { return filling_[index][0]; }
  [[nodiscard]] double open_share(LinkIndex index) const { return filling_[index][1]; }
  void recount(LinkIndex index);
  void fill(LinkIndex index, double level, SimTime now);
  void change_clock(LinkIndex index, SimTime now);
  void change_level(LinkIndex index, double level, SimTime now);
  void freeze(LinkIndex index);
  void build_row(LinkIndex index);
  void patch_row(LinkIndex index, Activity activity, bool joins);
  void patch_row(LinkIndex index, const Step& step, bool joins);
  static std::uint16_t share_in(Row& row, double share);
  void settle(LinkIndex index, double load, SimTime now);
  void sift_candidate(std::size_t at);
  [[nodiscard]] SimTime end_of(const Link& link) const;

  std::vector<Link> links_;
  std::vector<Filling> filling_;                     // by link
  std::vector<std::uint32_t> open_;                  // by link: activities that are not frozen
  std::vector<std::uint32_t> frozen_in_;             // by link: the solve in which it last was a bottleneck
  std::vector<Row> rows_;                            // by link
  std::vector<std::unique_ptr<History>> histories_;  // by component root
  std::vector<std::uint32_t> slots_, positions_;     // by link: in History::links, in History::order
  std::vector<PastLevels> pasts_;                    // by link
  std::vector<LinkIndex> free_links_;
  std::vector<Column> activities_;
  std::vector<LinkIndex> held_by_;  // by activity: its bottleneck, none before the first solve
  std::vector<Activity> free_activities_;
  std::vector<Step> steps_;
  std::vector<std::vector<std::uint32_t>> free_steps_;  // by log2 of the block's size
  Components components_;
  std::vector<Dirty> dirty_;
  std::vector<Activity> started_;          // since the last solve
  std::vector<LinkIndex> unwatched_;       // since the last solve, with members
  std::vector<std::uint32_t> stalled_on_;  // by link: activities at rate 0
  std::size_t stalled_ = 0;                // activities at rate 0
  std::vector<Candidate> candidates_;      // heap by level
  std::vector<LinkIndex> pending_;         // not candidates yet, in the expected order
  std::size_t admitted_ = 0;               // of pending_
  std::vector<LinkIndex> scratch_;
  // Of the current region: its activities, its links, its bottlenecks as they filled.
  std::vector<Member> region_;
  std::vector<std::pair<std::uint32_t, std::uint32_t>> region_of_;  // by activity: stamp, index
  std::vector<Touched> touched_;
  std::vector<Candidate> full_;
  std::vector<std::uint32_t> surveyed_in_;  // by link
  std::vector<double> reach_;               // by link: its load if each activity had all that it can have
  std::uint32_t region_stamp_ = 0, survey_ = 0;
  std::uint32_t pause_ = 0, pause_left_ = 0;  // solves without regions
  engine::IndexedHeap<SimTime> ends_;         // links by the end of their first member
  std::vector<std::uint32_t> solved_in_;      // by component root
  std::uint32_t round_ = 0;
  std::uint64_t solves_ = 0;
  Shortcuts shortcuts_;
};
}  // namespace topsim::network
