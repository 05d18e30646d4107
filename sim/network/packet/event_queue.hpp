// Pending events in the total order (time, sequence of pushing).
//
// A calendar queue: events of the near future are in 8,192 buckets, whose width the creator chooses: a
// handful of events each, so that a push and a pop cost a few instructions whatever the size of the network.
// A bucket is sorted when time reaches it (a stable sort, so that equal times keep the order of pushing),
// later events wait in a heap. The order does not depend on the width. Nothing is allocated once the pools
// have grown to the busiest moment.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <limits>
#include <vector>

namespace topsim::network::packet {

class EventQueue {
 public:
  struct Event {
    std::int64_t time;  // picoseconds
    std::uint32_t target;
  };
  static constexpr std::int64_t kBuckets = 1 << 13;
  static constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max();

  // A bucket takes 2^width_bits picoseconds.
  explicit EventQueue(int width_bits = 10) : width_bits_(width_bits) { bucket_.fill({kNone, kNone}); }

  // REQUIRES: time >= that of the last event popped.
  void push(std::int64_t time, std::uint32_t target) {
    ++size_;
    const std::int64_t slot = time >> width_bits_;
    if (slot > current_ && slot < current_ + kBuckets) {
      append(slot, time, target);
    } else {
      push_elsewhere(slot, time, target);
    }
  }

  [[nodiscard]] bool empty() const { return size_ == 0; }
  [[nodiscard]] std::size_t size() const { return size_; }

  // Time of the first event; kNever when there is none. Opens nothing, so that a later push may still come
  // before it.
  [[nodiscard]] std::int64_t next_time() const {
    if (next_ < open_.size()) return open_[next_].time;
    std::int64_t first = far_.empty() ? kNever : far_.front().time;
    if (near_ > 0) {
      const List& list = bucket_[static_cast<std::size_t>(first_occupied() & (kBuckets - 1))];
      for (std::uint32_t n = list.head; n != kNone; n = nodes_[n].next)
        first = std::min(first, nodes_[n].time);
    }
    return first;
  }

  // Target of the event `k` places behind the next one, for prefetching; ~0 where the open bucket ends.
  [[nodiscard]] std::uint32_t ahead(std::size_t k) const {
    return next_ + k < open_.size() ? open_[next_ + k].target : kNone;
  }

  // The first event if it is due at or before `limit`. False: there is none.
  bool pop(std::int64_t limit, Event& event) {
    if (next_ == open_.size()) {
      if (size_ == 0 || first_slot() > limit >> width_bits_) return false;
      open_next_bucket();
    }
    if (open_[next_].time > limit) return false;
    --size_;
    event = open_[next_++];
    return true;
  }

 private:
  static constexpr std::size_t kFew = 16;  // so many are sorted by insertion
  static constexpr std::uint32_t kNone = ~std::uint32_t{0};

  struct Node {
    std::int64_t time;
    std::uint32_t target;
    std::uint32_t next;
  };
  struct List {
    std::uint32_t head, tail;
  };
  struct Far {
    std::int64_t time;
    std::uint64_t sequence;
    std::uint32_t target;
  };
  struct Later {
    bool operator()(const Far& a, const Far& b) const {
      return a.time != b.time ? a.time > b.time : a.sequence > b.sequence;
    }
  };

  // The rare case, kept out of the inlined push().
  [[gnu::noinline]] void push_elsewhere(std::int64_t slot, std::int64_t time, std::uint32_t target) {
    if (slot <= current_) {  // the open bucket: keep it sorted, behind events of the same time
      open_.push_back({time, target});
      sink(next_, open_.size() - 1);
    } else {
      far_.push_back({time, sequence_++, target});
      std::push_heap(far_.begin(), far_.end(), Later{});
    }
  }
  [[gnu::noinline]] std::uint32_t new_node() {
    nodes_.emplace_back();
    return static_cast<std::uint32_t>(nodes_.size() - 1);
  }

  void append(std::int64_t slot, std::int64_t time, std::uint32_t target) {
    std::uint32_t node = free_;
    if (node == kNone) {
      node = new_node();
    } else {
      free_ = nodes_[node].next;
    }
    nodes_[node] = {time, target, kNone};
    const auto index = static_cast<std::size_t>(slot & (kBuckets - 1));
    List& list = bucket_[index];
    if (list.head == kNone) {
      list.head = node;
      occupied_[index / 64] |= std::uint64_t{1} << (index % 64);
    } else {
      nodes_[list.tail].next = node;
    }
    list.tail = node;
    ++near_;
  }

  // Opens the first bucket that holds anything; moves what has come within reach out of the heap first, so
  // that an early push to the heap stays before a late push to the bucket at the same time.
  void open_next_bucket() {
    open_.clear();
    next_ = 0;
    const std::int64_t slot = first_slot();
    current_ = slot;
    while (!far_.empty() && (far_.front().time >> width_bits_) == slot) {
      open_.push_back({far_.front().time, far_.front().target});
      std::pop_heap(far_.begin(), far_.end(), Later{});
      far_.pop_back();
    }
    const auto index = static_cast<std::size_t>(slot & (kBuckets - 1));
    List& list = bucket_[index];
    if (list.head != kNone) {
      for (std::uint32_t n = list.head; n != kNone; n = nodes_[n].next) {
        open_.push_back({nodes_[n].time, nodes_[n].target});
        --near_;
      }
      nodes_[list.tail].next = free_;
      free_ = list.head;
      list = {kNone, kNone};
      occupied_[index / 64] &= ~(std::uint64_t{1} << (index % 64));
    }
    if (open_.size() <= kFew) {
      for (std::size_t i = 1; i < open_.size(); ++i) sink(0, i);
    } else {
      sort_many();
    }
  }

  // Moves an event in front of those that are later, back to `first` at most.
  void sink(std::size_t first, std::size_t at) {
    const Event event = open_[at];
    for (; at > first && open_[at - 1].time > event.time; --at) open_[at] = open_[at - 1];
    open_[at] = event;
  }

  // By the sixteenth of the bucket first: events are evenly spread, so that few share one.
  void sort_many() {
    const int shift = std::max(width_bits_ - 4, 0);
    const auto part = [&](const Event& event) {
      return static_cast<std::size_t>((event.time >> shift) & 15);
    };
    std::array<std::size_t, 17> begin{};
    for (const Event& event : open_) ++begin[part(event) + 1];
    for (std::size_t i = 1; i < begin.size(); ++i) begin[i] += begin[i - 1];
    parted_.resize(open_.size());
    std::array<std::size_t, 17> place = begin;
    for (const Event& event : open_) parted_[place[part(event)]++] = event;
    open_.swap(parted_);
    for (std::size_t i = 0; i < 16; ++i) {
      if (begin[i + 1] - begin[i] > kFew) {
        std::stable_sort(open_.begin() + static_cast<std::ptrdiff_t>(begin[i]),
                         open_.begin() + static_cast<std::ptrdiff_t>(begin[i + 1]),
                         [](const Event& a, const Event& b) { return a.time < b.time; });
        continue;
      }
      for (std::size_t at = begin[i] + 1; at < begin[i + 1]; ++at) sink(begin[i], at);
    }
  }

  // REQUIRES: the open bucket is empty, others are not.
  [[nodiscard]] std::int64_t first_slot() const {
    const std::int64_t far = far_.empty() ? kNever : far_.front().time >> width_bits_;
    return near_ > 0 ? std::min(first_occupied(), far) : far;
  }

  // REQUIRES: near_ > 0. Buckets hold slots current_ + 1 ... current_ + kBuckets - 1.
  [[nodiscard]] std::int64_t first_occupied() const {
    const auto begin = static_cast<std::size_t>((current_ + 1) & (kBuckets - 1));
    std::size_t word = begin / 64;
    std::uint64_t bits = occupied_[word] & (~std::uint64_t{0} << (begin % 64));
    while (bits == 0) {
      word = (word + 1) % occupied_.size();
      bits = occupied_[word];
    }
    const auto index = static_cast<std::int64_t>(word * 64) + std::countr_zero(bits);
    return current_ + 1 + ((index - static_cast<std::int64_t>(begin)) & (kBuckets - 1));
  }

  std::array<List, kBuckets> bucket_;
  std::array<std::uint64_t, kBuckets / 64> occupied_{};
  std::vector<Node> nodes_;
  std::uint32_t free_ = kNone;
  int width_bits_;
  std::vector<Event> open_;  // the bucket of time now, sorted
  std::vector<Event> parted_;
  std::size_t next_ = 0;  // first of it not yet popped
  std::int64_t current_ = -1;
  std::size_t near_ = 0, size_ = 0;
  std::vector<Far> far_;
  std::uint64_t sequence_ = 0;
};
}  // namespace topsim::network::packet
