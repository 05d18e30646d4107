#include "sim/fold/refine.hpp"

#include <algorithm>
#include <numeric>
#include <unordered_map>

namespace topsim::fold {
namespace {
// Which items see an item: one row per item seen.
struct Neighbours {
  struct Seer {
    std::uint32_t item, mark, count;
  };
  std::vector<std::size_t> begin;
  std::vector<Seer> seers;
  std::vector<Colour> marks;  // what an edge adds to the seer's sum: two per label, one for each end

  explicit Neighbours(const LabelledGraph& graph) : begin(graph.size() + 1) {
    std::uint32_t labels = 0;
    for (const Edge& e : graph.edges()) {
      ++begin[e.from + 1];
      ++begin[e.to + 1];
      labels = std::max(labels, e.label + 1);
    }
    for (std::uint32_t label = 0; label < labels; ++label) {
      marks.push_back(mix(label, 0));
      marks.push_back(mix(label, 1));
    }
    std::partial_sum(begin.begin(), begin.end(), begin.begin());
    std::vector<std::size_t> next(begin.begin(), begin.end() - 1);
    seers.resize(2 * graph.edges().size());
    for (const Edge& e : graph.edges()) {
      seers[next[e.to]++] = {e.from, 2 * e.label, e.count};
      seers[next[e.from]++] = {e.to, 2 * e.label + 1, graph.count_back(e)};
    }
  }
};

class Partition {
 public:
  Partition(const LabelledGraph& graph, const std::vector<Colour>& colours)
      : neighbours_(graph),
        order_(colours.size()),
        place_(colours.size()),
        class_(colours.size()),
        sums_(colours.size()),
        seen_(colours.size()) {
    std::unordered_map<Colour, std::uint32_t> block_of;
    for (std::uint32_t i = 0; i < colours.size(); ++i) {
      const auto next = static_cast<std::uint32_t>(blocks_.size());
      const bool as_before = i > 0 && colours[i] == colours[i - 1];
      class_[i] = as_before ? class_[i - 1] : block_of.try_emplace(colours[i], next).first->second;
      if (class_[i] == next) blocks_.push_back({0, 0});
      ++blocks_[class_[i]].end;  // the count of items, until the blocks are laid out
    }
    std::uint32_t begin = 0;
    for (Block& block : blocks_) {
      const std::uint32_t size = block.end;
      block = {begin, begin};
      begin += size;
    }
    for (std::uint32_t i = 0; i < colours.size(); ++i) {
      place_[i] = blocks_[class_[i]].end++;
      order_[place_[i]] = i;
    }
    for (std::uint32_t b = 0; b < blocks_.size(); ++b) pending_.push_back(b);
    tallies_.resize(blocks_.size());
  }

  void refine() {
    while (!pending_.empty()) {
      const std::uint32_t splitter = pending_.back();
      pending_.pop_back();
      look_from(splitter);
      for (const std::uint32_t c : touched_classes_) split(c);
      for (const std::uint32_t x : touched_) {
        sums_[x] = 0;
        seen_[x] = 0;
      }
    }
  }

  [[nodiscard]] std::uint32_t class_of(std::uint32_t item) const { return class_[item]; }
  [[nodiscard]] std::size_t classes() const { return blocks_.size(); }

 private:
  struct Block {
    std::uint32_t begin, end;  // in order_
    [[nodiscard]] std::uint32_t size() const { return end - begin; }
  };
  struct Tally {
    std::uint32_t seen = 0;  // members that see the splitter; they come first in the block
    Colour sum = 0;          // of the first of them
    bool differ = false;
  };

  void look_from(std::uint32_t splitter) {
    touched_.clear();
    touched_classes_.clear();
    for (std::uint32_t i = blocks_[splitter].begin; i < blocks_[splitter].end; ++i) {
      const std::uint32_t y = order_[i];
      for (std::size_t n = neighbours_.begin[y]; n < neighbours_.begin[y + 1]; ++n) {
        const auto [x, mark, count] = neighbours_.seers[n];
        if (seen_[x] == 0) {
          seen_[x] = 1;
          touched_.push_back(x);
        }
        sums_[x] += count * neighbours_.marks[mark];
      }
    }
    // A class with a single member cannot be split.
    for (const std::uint32_t x : touched_) {
      const std::uint32_t c = class_[x];
      if (blocks_[c].size() == 1) continue;
      Tally& tally = tallies_[c];
      if (tally.seen == 0) {
        touched_classes_.push_back(c);
        tally = {0, sums_[x], false};
      }
      tally.differ |= sums_[x] != tally.sum;
      exchange(blocks_[c].begin + tally.seen++, place_[x]);
    }
  }

  void exchange(std::uint32_t a, std::uint32_t b) {
    std::swap(order_[a], order_[b]);
    place_[order_[a]] = a;
    place_[order_[b]] = b;
  }

  // Splits a class into the members that do not see the splitter and one part per sum.
  void split(std::uint32_t c) {
    const Tally tally = tallies_[c];
    tallies_[c] = {};
    const Block whole = blocks_[c];
    if (!tally.differ && tally.seen == whole.size()) return;
    const auto first = order_.begin() + whole.begin;
    if (tally.differ) {
      std::sort(first, first + tally.seen, [&](std::uint32_t a, std::uint32_t b) {
        return sums_[a] != sums_[b] ? sums_[a] < sums_[b] : a < b;
      });
    }
    parts_.clear();
    for (std::uint32_t i = whole.begin; i < whole.begin + tally.seen; ++i) {
      if (i == whole.begin || sums_[order_[i]] != sums_[order_[i - 1]]) parts_.push_back({i, i});
      parts_.back().end = i + 1;
    }
    if (tally.seen < whole.size()) parts_.push_back({whole.begin + tally.seen, whole.end});
    std::size_t largest = 0;
    for (std::size_t p = 1; p < parts_.size(); ++p)
      if (parts_[p].size() > parts_[largest].size()) largest = p;
    if (tally.differ)
      for (std::uint32_t i = whole.begin; i < whole.begin + tally.seen; ++i) place_[order_[i]] = i;
    // The largest part keeps the number. If that is pending it stays pending, else the other parts suffice as
    // splitters.
    blocks_[c] = parts_[largest];
    for (std::size_t p = 0; p < parts_.size(); ++p) {
      if (p == largest) continue;
      const auto fresh = static_cast<std::uint32_t>(blocks_.size());
      blocks_.push_back(parts_[p]);
      tallies_.emplace_back();
      for (std::uint32_t i = parts_[p].begin; i < parts_[p].end; ++i) class_[order_[i]] = fresh;
      pending_.push_back(fresh);
    }
  }

  Neighbours neighbours_;
  std::vector<std::uint32_t> order_, place_, class_;  // items by class; the position of each; its class
  std::vector<Block> blocks_;
  std::vector<Tally> tallies_;  // by class, for the current splitter
  std::vector<std::uint32_t> pending_, touched_, touched_classes_;
  std::vector<Block> parts_;
  std::vector<Colour> sums_;
  std::vector<std::uint8_t> seen_;  // faster than bits
};
}  // namespace

std::uint32_t LabelledGraph::add(Colour initial, std::uint32_t weight) {
  colours_.push_back(initial);
  weights_.push_back(weight);
  return static_cast<std::uint32_t>(colours_.size() - 1);
}

std::vector<std::uint32_t> LabelledGraph::classes(bool fold) const {
  std::vector<std::uint32_t> result(colours_.size());
  if (!fold) {
    std::iota(result.begin(), result.end(), 0U);
    return result;
  }
  Partition partition(*this, colours_);
  partition.refine();
  std::vector<std::uint32_t> number(partition.classes(), ~0U);
  std::uint32_t next = 0;
  for (std::uint32_t i = 0; i < result.size(); ++i) {
    std::uint32_t& n = number[partition.class_of(i)];
    if (n == ~0U) n = next++;
    result[i] = n;
  }
  return result;
}
}  // namespace topsim::fold
