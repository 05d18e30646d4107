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
// its bottleneck's level; the difference (at most 0.5 ps of progress) is given to the links' byte counts, so
// that a link has carried exactly u W of each activity that ended.
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "sim/engine/indexed_heap.hpp"
#include "sim/network/components.hpp"
#include "sim/network/network.hpp"

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
  Activity start(double work, double weight, std::span<const Usage> usage);
  void set_capacity(LinkIndex link, double capacity);
  // Shares again all that changed since the last solve, which must all have happened at `now`.
  void solve(SimTime now);
  [[nodiscard]] bool dirty() const { return !dirty_.empty(); }

  // REQUIRES: not dirty. The instant the next activity ends, kNever when none will.
  [[nodiscard]] SimTime next_end() const { return ends_.empty() ? kNever : ends_.top().key; }
  // REQUIRES: not dirty, now <= next_end(). Removes what ends at `now` and appends it to `ended`.
  void end_due(SimTime now, std::vector<Activity>& ended);

  // REQUIRES of both: not dirty.
  [[nodiscard]] double rate(Activity activity) const;
  [[nodiscard]] LinkIndex bottleneck(Activity activity) const;
  [[nodiscard]] LinkRecord record(LinkIndex link, SimTime now) const;
  [[nodiscard]] std::uint64_t solves() const { return solves_; }
  // Throws InternalError unless capacity is kept and every activity has a bottleneck. Debug builds call it
  // after every solve.
  void check() const;

 private:
  // One crossing of a link by an activity, stored with the activity ...
  struct Step {
    double share;  // w_a u_a(l)
    LinkIndex link;
    std::uint32_t place;  // in Link::crossings
  };
  // ... and with the link.
  struct Crossing {
    double finish;  // the link's clock when the activity ends; meaningful for members only
    Activity activity;
    std::uint32_t step;  // in steps_
  };
  struct Link {
    double capacity = 0;
    double share = 0;  // of all crossings
    double level = 0;  // 0: not a bottleneck
    double clock = 0;  // at clock_at
    SimTime clock_at{};
    std::vector<Crossing> crossings;  // the first `members` have their bottleneck here: a heap by finish
    std::uint32_t members = 0;
    bool retime = false;
    double load = 0, bytes = 0, peak = 0;  // record: load since load_at, the others up to it
    SimTime load_at{};
    Duration busy{};
    double filled = 0, open_share = 0;  // of a solve: bytes/s of frozen activities, share of the others
    std::uint32_t open = 0;             // activities not frozen
    std::uint64_t frozen_in = 0;        // the solve that last made this a bottleneck
  };
  struct Column {
    std::uint32_t first_step, steps;
    std::uint32_t bottleneck;  // step, kNone before the first solve
    double weight;
    double left;  // work / weight before the first solve
  };
  struct Candidate {
    double level;
    LinkIndex link;
  };

  std::uint32_t allocate_steps(std::size_t count);
  void place(Link& link, std::uint32_t at, const Crossing& crossing);
  void sift_up(Link& link, std::uint32_t at, const Crossing& crossing);
  void sift_down(Link& link, std::uint32_t at, const Crossing& crossing);
  void leave(Link& link, std::uint32_t at);
  void claim(LinkIndex link, std::uint32_t at, SimTime now);
  void remove(Activity activity, SimTime now);

  void split(LinkIndex root);
  void solve_alone(LinkIndex link, SimTime now);
  void solve_component(LinkIndex root, SimTime now);
  [[nodiscard]] double level_of(const Link& link) const;
  void recount(Link& link) const;
  void fill(LinkIndex index, double level, SimTime now);
  void freeze(const Link& link);
  void settle(LinkIndex index, double load, SimTime now);
  void sift_candidate(std::size_t at);
  [[nodiscard]] SimTime end_of(const Link& link) const;

  std::vector<Link> links_;
  std::vector<LinkIndex> free_links_;
  std::vector<Column> activities_;
  std::vector<Activity> free_activities_;
  std::vector<Step> steps_;
  std::vector<std::vector<std::uint32_t>> free_steps_;  // by log2 of the block's size
  Components components_;
  std::vector<LinkIndex> dirty_;
  std::vector<Candidate> candidates_;  // heap by level
  std::vector<LinkIndex> scratch_;
  engine::IndexedHeap<SimTime> ends_;     // links by the end of their first member
  std::vector<std::uint64_t> solved_in_;  // by component root
  std::uint64_t round_ = 0, solves_ = 0;
};
}  // namespace topsim::network
