// What a walk in lock-step came to (lock_step.hpp), and walks done before.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <unordered_map>
#include <vector>

#include "sim/base/mix.hpp"
#include "sim/executor/op_trace.hpp"
#include "sim/executor/outcome.hpp"
#include "sim/executor/rank_state.hpp"

namespace topsim::executor {

// Times are what each member spent.
struct Walk {
  // The call under way at the end.
  struct OpenCall {
    std::uint32_t op, shape;  // of the team
    SimTime begin, end;       // begins once its blocks have units
    OpTrace trace;
    bool arrived = false;
    std::int64_t paid = 0, traffic = 0;  // as in Call; `paid` from the walk's begin on
    bool extended = false;
  };
  struct Tally {
    std::uint64_t calls = 0;
    Duration total{};
  };
  SimTime from{};             // of the walk
  SimTime until{};            // events before this instant are done
  SimTime accounted_until{};  // the account ends here
  StepAccount account;
  std::uint32_t ops = 0;     // done, by each member
  std::vector<Tally> calls;  // by the team's shapes: ended
  std::optional<OpenCall> open;
  std::vector<std::uint32_t> next;  // by stream, at the end
  ComputeState compute;
  std::int64_t filled = 0;  // what the walk added to ComputeState::filled
  OpTrace compute_trace;
  SimTime host_free{};
  std::uint32_t synced = kNoOp;
  int ctas = 0;
  std::int64_t memory_traffic = 0, copied = 0;
  StreamSet opened = 0;  // streams whose head may have become able to start
  // What was done after the op that computed at first: by local stream, one after the other. Times from the
  // walk's begin on; `first_end` is when that op ended.
  SharedTrace trace;
  std::vector<std::uint32_t> trace_begin;  // by stream, and the end
  SimTime first_end{};

  void shift(Duration by) {
    from += by, until += by, accounted_until += by, host_free += by, first_end += by;
    compute.begun += by;
    compute.since += by;
    compute_trace = compute_trace.shifted(by);
    if (open) open->begin += by, open->end += by, open->trace = open->trace.shifted(by);
  }
};

// When the host resumed matters only as far as it was waited for: a walk that never did holds for every host
// that resumed at `latest` or before, counted from the walk's begin; one that did, for that host alone.
struct HostBound {
  Duration latest = Duration::max();
  bool mattered = false;
};

class WalkMemory {
 public:
  // The walk from a state, shifted to `from`; false when there is none that holds for such a host.
  bool find(const std::vector<std::uint64_t>& state, SimTime from, Duration host_free, Walk& walk) const {
    const auto [begin, end] = walks_.equal_range(state);
    for (auto known = begin; known != end; ++known) {
      const Known& k = known->second;
      if (k.host.mattered ? host_free != k.host_free : host_free > k.host.latest) continue;
      walk = k.walk;
      walk.shift(from.time_since_epoch());
      return true;
    }
    return false;
  }
  void add(const std::vector<std::uint64_t>& state, SimTime from, Duration host_free, const HostBound& host,
           const Walk& walk) {
    if (walks_.size() == kMost) walks_.clear();
    Known& known = walks_.emplace(state, Known{host, host_free, walk})->second;
    known.walk.shift(-from.time_since_epoch());
  }

 private:
  static constexpr std::size_t kMost = 1U << 14;
  struct Known {
    HostBound host;
    Duration host_free;
    Walk walk;
  };
  struct Hash {
    std::size_t operator()(const std::vector<std::uint64_t>& state) const { return hash_words(state); }
  };
  std::unordered_multimap<std::vector<std::uint64_t>, Known, Hash> walks_;
};
}  // namespace topsim::executor
