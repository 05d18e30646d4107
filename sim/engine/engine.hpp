// The clock and the event queue. Events are plain data: a time and 64 bits that only their owner interprets.
// They come out in (time, sequence) order, where re-timing assigns a new sequence: a total order, the same on
// every machine.
#pragma once

#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include "sim/base/units.hpp"
#include "sim/engine/indexed_heap.hpp"

namespace topsim::engine {

// Valid until its event is popped or cancelled; then the number is used again.
using Handle = std::uint32_t;
inline constexpr Handle kNoHandle = std::numeric_limits<Handle>::max();

// Throws ConfigError: what was added to the clock does not fit it.
[[noreturn]] void too_late();

// The sum, where it fits the clock; else too_late().
[[nodiscard]] inline SimTime later(SimTime time, Duration delay) {
  if (delay > kNever - time) too_late();
  return time + delay;
}

class Engine {
 public:
  [[nodiscard]] SimTime now() const { return now_; }
  [[nodiscard]] bool empty() const { return queue_.size() == (taken_ == kNoHandle ? 0U : 1U); }
  [[nodiscard]] std::uint64_t events() const { return events_; }

  // Throws ConfigError when `time` is before now(): what was added to the clock does not fit it.
  Handle at(SimTime time, std::uint64_t payload) {
    if (time < now_) too_late();
    const Handle handle = taken_ != kNoHandle ? std::exchange(taken_, kNoHandle) : fresh();
    payloads_[handle] = payload;
    queue_.set(handle, {time, sequence_++});
    return handle;
  }
  Handle after(Duration delay, std::uint64_t payload) { return at(later(now_, delay), payload); }

  // REQUIRES: handle is pending. Throws as at().
  void retime(Handle handle, SimTime time) {
    if (time < now_) too_late();
    queue_.set(handle, {time, sequence_++});
  }
  // The event becomes another one. REQUIRES: handle is pending. Throws as at().
  void replace(Handle handle, SimTime time, std::uint64_t payload) {
    retime(handle, time);
    payloads_[handle] = payload;
  }
  void cancel(Handle handle) {
    queue_.erase(handle);
    free_.push_back(handle);
  }

  // Time of the next event, kNever when there is none.
  [[nodiscard]] SimTime next() {
    clear_taken();
    return queue_.empty() ? kNever : queue_.top().key.time;
  }
  // Moves the clock forward without an event. REQUIRES: now() <= time <= next().
  void advance(SimTime time) { now_ = time; }
  // Takes the next event, moves the clock to it, returns its payload. REQUIRES: not empty.
  std::uint64_t pop() {
    clear_taken();
    taken_ = queue_.top().id;
    now_ = queue_.top().key.time;
    ++events_;
    return payloads_[taken_];
  }
  // Until nothing is left; `handle(payload)` may schedule more.
  template <class Handler>
  void run(Handler&& handle) {
    while (!empty()) handle(pop());
  }

 private:
  struct Key {
    SimTime time;
    std::uint64_t sequence;
    // As one number: a branch on which of the two decides could not be predicted.
    bool operator<(const Key& other) const { return whole() < other.whole(); }
    __extension__ using Whole = __int128;
    [[nodiscard]] Whole whole() const { return Whole{time.time_since_epoch().count()} << 64 | sequence; }
  };
  Handle fresh() {
    if (free_.empty()) {
      free_.push_back(static_cast<Handle>(payloads_.size()));
      payloads_.push_back(0);
    }
    const Handle handle = free_.back();
    free_.pop_back();
    return handle;
  }
  void clear_taken() {
    if (taken_ == kNoHandle) return;
    queue_.erase(taken_);
    free_.push_back(std::exchange(taken_, kNoHandle));
  }

  IndexedHeap<Key> queue_;
  std::vector<std::uint64_t> payloads_;  // by handle
  std::vector<Handle> free_;
  // The event popped last stays first in the queue until the next one is asked for. Most events schedule
  // another, which then sinks from that place, instead of one removal and one insertion.
  Handle taken_ = kNoHandle;
  SimTime now_{};
  std::uint64_t sequence_ = 0, events_ = 0;
};
}  // namespace topsim::engine
