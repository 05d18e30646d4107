// Traces of many rank classes. Those that ran in lock-step did the same at the same times: they share pages,
// and a page is copied when one of them writes to it alone.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <vector>

#include "sim/base/units.hpp"
#include "sim/executor/streams.hpp"

namespace topsim::executor {

struct OpTrace {
  SimTime begin{};  // compute: starts; communication: arrives
  SimTime ready{};  // communication: the last member has arrived, bytes may move
  SimTime end{};
  std::uint32_t blocker = kNoOp;  // the op of this rank (or kHost) that kept it from beginning until `begin`
  std::uint32_t cause_rank = kNoOp;  // communication: rank class and op that arrived last
  std::uint32_t cause_op = kNoOp;
  friend bool operator==(const OpTrace&, const OpTrace&) = default;
};

class TracePages {
 public:
  static constexpr std::uint32_t kEntries = 32;
  static constexpr std::uint32_t kNone = 0xffffffffU;
  using Page = std::uint32_t;

  [[nodiscard]] OpTrace& entry(Page page, std::uint32_t at) { return pages_[page].entries[at]; }
  // The caller's reference to `page` (kNone: to none) becomes one to a page of its own with the same entries.
  [[nodiscard]] Page make_own(Page page) {
    if (page != kNone && pages_[page].references == 1) return page;
    if (free_.empty()) {
      free_.push_back(static_cast<Page>(pages_.size()));
      pages_.emplace_back();
    }
    const Page own = free_.back();
    free_.pop_back();
    pages_[own].references = 1;
    pages_[own].entries = page == kNone ? std::array<OpTrace, kEntries>{} : pages_[page].entries;
    if (page != kNone) --pages_[page].references;
    return own;
  }
  // The caller's reference to `from` becomes one to `to`.
  void exchange(Page from, Page to) {
    ++pages_[to].references;
    if (from != kNone && --pages_[from].references == 0) free_.push_back(from);
  }

 private:
  struct Slot {
    std::array<OpTrace, kEntries> entries;
    std::uint32_t references = 0;
  };
  std::deque<Slot> pages_;
  std::vector<Page> free_;
};

// The trace of one rank class's current step, by op.
class Trace {
 public:
  // REQUIRES: both outlive it.
  Trace(TracePages& pages, const StreamTable& table)
      : pages_(&pages),
        table_(&table),
        page_((table.trace_index.size() + TracePages::kEntries - 1) / TracePages::kEntries,
              TracePages::kNone) {}

  [[nodiscard]] const OpTrace& operator[](std::uint32_t op) const {
    static constexpr OpTrace kNothing{};
    const std::uint32_t at = table_->trace_index[op];
    const TracePages::Page page = page_[at / TracePages::kEntries];
    return page == TracePages::kNone ? kNothing : pages_->entry(page, at % TracePages::kEntries);
  }
  [[nodiscard]] OpTrace& edit(std::uint32_t op) {
    const std::uint32_t at = table_->trace_index[op];
    TracePages::Page& page = page_[at / TracePages::kEntries];
    page = pages_->make_own(page);
    return pages_->entry(page, at % TracePages::kEntries);
  }
  // Ops at positions [first, last) of a stream become what they are in `other`.
  void share(const Trace& other, std::uint16_t stream, std::uint32_t first, std::uint32_t last) {
    if (first == last) return;
    const auto& ops = table_->ops[stream];
    const std::uint32_t begin = table_->trace_index[ops[first]], end = begin + (last - first);
    for (std::uint32_t at = begin; at < end;) {
      const std::uint32_t p = at / TracePages::kEntries;
      const std::uint32_t stop = std::min(end, (p + 1) * TracePages::kEntries);
      if (page_[p] != other.page_[p]) {
        if (stop - at == TracePages::kEntries) {
          pages_->exchange(page_[p], other.page_[p]);
          page_[p] = other.page_[p];
        } else {
          page_[p] = pages_->make_own(page_[p]);
          for (std::uint32_t i = at; i < stop; ++i)
            pages_->entry(page_[p], i % TracePages::kEntries) =
                pages_->entry(other.page_[p], i % TracePages::kEntries);
        }
      }
      at = stop;
    }
  }

 private:
  TracePages* pages_;
  const StreamTable* table_;
  std::vector<TracePages::Page> page_;  // by trace index / kEntries
};
}  // namespace topsim::executor
