// What PyTorch's caching allocator reserves (c10/cuda/CUDACachingAllocator.cpp, releases 2.4 to 2.6): best
// fit among the free blocks of a stream, split; else a new segment of its own, or the growth of the stream's
// one segment (expandable_segments:True).
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <vector>

namespace topsim::workloads::testing {

enum class Segments { fixed, expandable };

class AllocatorReplay {
 public:
  explicit AllocatorReplay(Segments segments) : segments_(segments) {}
  [[nodiscard]] double reserved_gib() const {
    return static_cast<double>(reserved_) / static_cast<double>(1U << 30U);
  }

  std::size_t take(double bytes, int stream = 0) {
    const std::int64_t size = whole(static_cast<std::int64_t>(bytes), 512);
    const int pool = 2 * stream + (size <= kMiB ? 1 : 0);
    const std::optional<std::size_t> found = fitting(pool, size);
    const std::size_t at = found                               ? *found
                           : segments_ == Segments::expandable ? grown(pool, size)
                                                               : segment(pool, size);
    if (found) free_.erase(key(at));
    const std::int64_t rest = blocks_[at].size - size;
    if (segments_ == Segments::expandable || size <= kMiB ? rest >= 512 : rest > kMiB) split(at, size);
    blocks_[at].free = false;
    return at;
  }
  void give(std::size_t at) {
    blocks_[at].free = true;
    if (const auto next = blocks_[at].next; next && blocks_[*next].free) join(at, *next);
    if (const auto last = blocks_[at].previous; last && blocks_[*last].free) {
      join(*last, at, false);
      at = *last;
    }
    free_.insert(key(at));
  }

 private:
  static constexpr std::int64_t kMiB = 1 << 20;
  struct Block {
    std::int64_t begin = 0, size = 0;
    int pool = 0;
    bool free = false;
    std::optional<std::size_t> previous, next;
  };
  using Key = std::tuple<int, std::int64_t, std::int64_t, std::size_t>;

  static std::int64_t whole(std::int64_t bytes, std::int64_t unit) {
    return (bytes + unit - 1) / unit * unit;
  }
  [[nodiscard]] Key key(std::size_t at) const {
    return {blocks_[at].pool, blocks_[at].size, blocks_[at].begin, at};
  }
  std::optional<std::size_t> fitting(int pool, std::int64_t size) {
    auto first = free_.lower_bound({pool, size, -1, 0});
    const auto usable = [&] { return first != free_.end() && std::get<0>(*first) == pool; };
    // The end of a segment counts with what it can grow to, so it is the last choice.
    if (usable() && ends_.count(pool) > 0 && std::get<3>(*first) == ends_.at(pool)) {
      const std::size_t end = std::get<3>(*first++);
      if (!usable()) return end;
    }
    return usable() ? std::optional(std::get<3>(*first)) : std::nullopt;
  }
  std::size_t add(std::int64_t begin, std::int64_t size, int pool) {
    blocks_.push_back({begin, size, pool, true, {}, {}});
    return blocks_.size() - 1;
  }
  std::size_t segment(int pool, std::int64_t size) {
    const std::int64_t bytes = size <= kMiB ? 2 * kMiB : size < 10 * kMiB ? 20 * kMiB : whole(size, 2 * kMiB);
    reserved_ += bytes;
    return add(next_begin_ += std::int64_t{1} << 40, bytes, pool);
  }
  std::size_t grown(int pool, std::int64_t size) {
    const auto end = ends_.find(pool);
    const bool extends = end != ends_.end() && blocks_[end->second].free;
    const std::int64_t more =
        whole(size - (extends ? blocks_[end->second].size : 0), (pool % 2 == 1 ? 2 : 20) * kMiB);
    reserved_ += more;
    if (extends) {
      free_.erase(key(end->second));
      blocks_[end->second].size += more;
      return end->second;
    }
    const std::int64_t begin = end == ends_.end() ? std::int64_t{pool} << 50
                                                  : blocks_[end->second].begin + blocks_[end->second].size;
    const std::size_t at = add(begin, more, pool);
    if (end != ends_.end()) blocks_[end->second].next = at, blocks_[at].previous = end->second;
    ends_[pool] = at;
    return at;
  }
  void split(std::size_t at, std::int64_t size) {
    const std::size_t rest = add(blocks_[at].begin + size, blocks_[at].size - size, blocks_[at].pool);
    blocks_[rest].previous = at, blocks_[rest].next = blocks_[at].next;
    if (blocks_[at].next) blocks_[*blocks_[at].next].previous = rest;
    blocks_[at].next = rest, blocks_[at].size = size;
    if (const auto end = ends_.find(blocks_[at].pool); end != ends_.end() && end->second == at)
      end->second = rest;
    free_.insert(key(rest));
  }
  void join(std::size_t at, std::size_t next, bool next_is_listed = true) {
    free_.erase(key(next_is_listed ? next : at));
    blocks_[at].size += blocks_[next].size;
    blocks_[at].next = blocks_[next].next;
    if (blocks_[at].next) blocks_[*blocks_[at].next].previous = at;
    if (const auto end = ends_.find(blocks_[at].pool); end != ends_.end() && end->second == next)
      end->second = at;
  }

  Segments segments_;
  std::int64_t reserved_ = 0, next_begin_ = 0;
  std::vector<Block> blocks_;
  std::set<Key> free_;
  std::map<int, std::size_t> ends_;  // the last block of each expandable segment
};
}  // namespace topsim::workloads::testing
