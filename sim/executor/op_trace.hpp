// When each op of a rank class's current step began and ended, and what it waited for.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

#include "sim/base/units.hpp"
#include "sim/executor/streams.hpp"

namespace topsim::executor {

inline constexpr std::uint32_t kHost = 0xfffffffeU;      // as a blocker: the host had not issued the op yet
inline constexpr std::uint32_t kOwnTeam = 0xfffffffdU;   // as a cause: see Trace::set_team
inline constexpr std::uint32_t kNotAsked = 0xfffffffcU;  // as a blocker: see blocker_of()

struct OpTrace {
  SimTime begin{};    // nothing that it waits for is left
  SimTime arrived{};  // communication: has the units that it needs; else as `begin`
  SimTime ready{};    // communication: the last member has arrived, bytes may move
  SimTime end{};
  std::uint32_t blocker = kNoOp;  // the op of this rank (or kHost) that kept it from beginning until `begin`
  std::uint32_t cause_rank = kNoOp;  // communication: rank class and op that arrived last
  std::uint32_t cause_op = kNoOp;
  std::uint32_t bottleneck = kNoOp;  // communication: Carrier::bottleneck(), kNoOp where nothing was shared

  [[nodiscard]] OpTrace shifted(Duration by) const {
    return {begin + by, arrived + by, ready + by, end + by, blocker, cause_rank, cause_op, bottleneck};
  }
};

// Consecutive ops of a stream that several rank classes executed alike, each at its own time (lock_step.hpp).
// They are stored once, with times that count from 0.
using SharedTrace = std::shared_ptr<const std::vector<OpTrace>>;

class Trace {
 public:
  // REQUIRES: `table` outlives it. `kept` false: what is written is discarded, and nothing may be read.
  explicit Trace(const StreamTable& table, bool kept = true)
      : table_(&table), kept_(kept), streams_(kept ? table.ops.size() : 0) {}
  // The rank class that kOwnTeam stands for: the last member of the group that is called on the stream.
  void set_team(std::uint16_t stream, std::uint32_t last) {
    if (kept_) streams_[stream].team_last = last;
  }

  // Nothing (times 0) for ops that have not begun.
  [[nodiscard]] OpTrace operator[](std::uint32_t op) const {
    const StreamTable::Place& place = table_->places[op];
    const Stream& stream = streams_[place.stream];
    const std::uint32_t position = place.position;
    if (position >= stream.end) return {};
    if (stream.has_last && position + 1 == stream.end) return stream.last;
    return earlier(stream, position);
  }
  // f(position, arrived, ready, end) of all ops of the stream that have begun, in order.
  template <class F>
  void for_each(std::uint16_t stream, F&& f) const {
    const Stream& s = streams_[stream];
    for (auto run = s.runs.begin(); run != s.runs.end(); ++run) {
      const std::uint32_t end = run + 1 == s.runs.end() ? s.end : (run + 1)->first;
      const std::vector<OpTrace>& entries = run->shared ? *run->shared : s.own;
      for (std::uint32_t position = run->first; position < end; ++position) {
        const bool last = s.has_last && position + 1 == s.end;
        const OpTrace& op = last ? s.last : entries[run->at + (position - run->first)];
        f(position, op.arrived + run->base, op.ready + run->base, op.end + run->base);
      }
    }
  }
  // REQUIRES: `op` is the one of its stream that began last and was not appended, or the next one.
  [[nodiscard]] OpTrace& edit(std::uint32_t op) {
    if (!kept_) return lost_;
    const StreamTable::Place& place = table_->places[op];
    Stream& stream = streams_[place.stream];
    if (place.position != stream.end) return stream.has_last ? stream.last : stream.own.back();
    stream.put_away();
    if (!stream.own_run) {
      stream.runs.push_back({stream.end, stream.own_size(), {}, {}});
      stream.own_from = stream.end;
    }
    stream.own_run = stream.has_last = true;
    stream.last = {};
    ++stream.end;
    return stream.last;
  }
  // The next `count` ops of the stream are copies of those in `shared` from `at` on, `base` later.
  void append(std::uint16_t stream, const SharedTrace& shared, std::uint32_t at, std::uint32_t count,
              Duration base) {
    if (count == 0) return;
    Stream& s = streams_[stream];
    s.put_away();
    s.own_run = false;
    s.runs.push_back({s.end, at, base, shared});
    s.end += count;
  }
  // Takes back the ops of the stream from `position` on and adds them to `taken`.
  // REQUIRES: none of them came by append().
  void take_back(std::uint16_t stream, std::uint32_t position, std::vector<OpTrace>& taken) {
    Stream& s = streams_[stream];
    if (position >= s.end) return;
    s.put_away();
    const auto first = s.own.end() - (s.end - position);
    taken.insert(taken.end(), first, s.own.end());
    s.own.erase(first, s.own.end());
    s.end = position;
    if (s.runs.back().first == position) {
      s.runs.pop_back();
      s.own_run = !s.runs.empty() && !s.runs.back().shared;
      if (s.own_run) s.own_from = s.runs.back().first;
    }
  }
  // A new step.
  void clear() {
    for (Stream& stream : streams_) {
      stream.own.clear();
      stream.runs.clear();
      stream.end = 0;
      stream.own_run = stream.has_last = false;
    }
  }

 private:
  struct Run {
    std::uint32_t first;  // position in the stream
    std::uint32_t at;     // index of its entry: in `shared`, else among the stream's own
    Duration base;
    SharedTrace shared;
  };
  struct Stream {
    OpTrace last;                // of the op that began last, if its own: most reads are of this one
    std::uint32_t end = 0;       // ops that have begun
    bool has_last = false;       // not among `own` yet
    bool own_run = false;        // the last run
    std::uint32_t own_from = 0;  // then its first position
    std::uint32_t team_last = kNoOp;
    std::vector<OpTrace> own;
    std::vector<Run> runs;

    [[nodiscard]] std::uint32_t own_size() const { return static_cast<std::uint32_t>(own.size()); }
    void put_away() {
      if (has_last) own.push_back(last);
      has_last = false;
    }
  };
  [[nodiscard]] OpTrace earlier(const Stream& stream, std::uint32_t position) const {
    if (stream.own_run && position >= stream.own_from) {
      const std::uint32_t put_away = stream.end - (stream.has_last ? 1U : 0U);
      return stream.own[stream.own.size() - (put_away - position)];
    }
    auto run = stream.runs.end() - 1;
    if (position < run->first)
      run = std::upper_bound(stream.runs.begin(), run, position,
                             [](std::uint32_t p, const Run& r) { return p < r.first; }) -
            1;
    const std::uint32_t at = run->at + (position - run->first);
    if (!run->shared) return stream.own[at];
    OpTrace entry = (*run->shared)[at].shifted(run->base);
    if (entry.cause_rank == kOwnTeam) entry.cause_rank = stream.team_last;
    return entry;
  }

  const StreamTable* table_;
  bool kept_;
  OpTrace lost_;
  std::vector<Stream> streams_;
};
}  // namespace topsim::executor
