// A 4-ary min-heap of small integers with keys that change: push, re-time, erase by id in O(log n), no
// allocation once it has held its largest size. Equal keys cost O(1) to push and to pop, which is what ranks
// in lock-step produce; their order is then unspecified, so a caller that needs one puts a sequence in the
// key.
#pragma once

#include <algorithm>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

namespace topsim::engine {

template <class Key>
class IndexedHeap {
 public:
  using Id = std::uint32_t;
  struct Node {
    Key key;
    Id id;
  };

  [[nodiscard]] bool empty() const { return nodes_.empty(); }
  [[nodiscard]] std::size_t size() const { return nodes_.size(); }
  // REQUIRES: not empty.
  [[nodiscard]] const Node& top() const { return nodes_.front(); }
  [[nodiscard]] bool contains(Id id) const { return id < place_.size() && place_[id] != kAbsent; }
  // REQUIRES: contains(id).
  [[nodiscard]] const Key& key(Id id) const { return nodes_[place_[id]].key; }

  // Inserts id, or re-times it.
  void set(Id id, Key key) {
    if (id >= place_.size()) place_.resize(std::max<std::size_t>(id + 1, place_.size() * 2), kAbsent);
    std::uint32_t at = place_[id];
    if (at == kAbsent) {
      at = static_cast<std::uint32_t>(nodes_.size());
      nodes_.push_back({key, id});
      sift_up(at);
    } else if (key < nodes_[at].key) {
      nodes_[at].key = key;
      sift_up(at);
    } else if (nodes_[at].key < key) {
      nodes_[at].key = key;
      sift_down(at);
    }
  }

  // REQUIRES: contains(id).
  void erase(Id id) {
    const std::uint32_t at = place_[id];
    place_[id] = kAbsent;
    const Node last = nodes_.back();
    nodes_.pop_back();
    if (at == nodes_.size()) return;
    const bool up = last.key < nodes_[at].key;
    nodes_[at] = last;
    up ? sift_up(at) : sift_down(at);
  }

  void pop() { erase(nodes_.front().id); }

  // Takes every id whose key is not above `limit`, in no particular order but the same on every machine.
  void take_until(const Key& limit, std::vector<Id>& taken) {
    if (nodes_.empty() || limit < nodes_.front().key) return;
    due_.assign(1, 0);  // places; children can only be due if their parent is
    for (std::size_t i = 0; i < due_.size(); ++i) {
      const std::size_t first = 4 * static_cast<std::size_t>(due_[i]) + 1;
      const std::size_t end = std::min(first + 4, nodes_.size());
      for (std::size_t child = first; child < end; ++child)
        if (!(limit < nodes_[child].key)) due_.push_back(static_cast<std::uint32_t>(child));
    }
    for (const std::uint32_t at : due_) taken.push_back(nodes_[at].id);
    if (4 * due_.size() < nodes_.size()) {
      for (std::size_t i = due_.size(); i > 0; --i) pop();
      return;
    }
    std::size_t kept = 0;
    for (const Node& node : nodes_) {
      if (limit < node.key)
        put(kept++, node);
      else
        place_[node.id] = kAbsent;
    }
    nodes_.resize(kept);
    for (std::size_t at = kept / 4 + 1; at-- > 0;)
      if (at < kept) sift_down(at);
  }

 private:
  static constexpr std::uint32_t kAbsent = std::numeric_limits<std::uint32_t>::max();

  void sift_up(std::size_t at) {
    const Node node = nodes_[at];
    while (at > 0) {
      const std::size_t parent = (at - 1) / 4;
      if (!(node.key < nodes_[parent].key)) break;
      put(at, nodes_[parent]);
      at = parent;
    }
    put(at, node);
  }

  void sift_down(std::size_t at) {
    const Node node = nodes_[at];
    for (;;) {
      const std::size_t first = 4 * at + 1;
      if (first >= nodes_.size()) break;
      const std::size_t least = least_of(first);
      if (!(nodes_[least].key < node.key)) break;
      put(at, nodes_[least]);
      at = least;
    }
    put(at, node);
  }

  // The least of up to four from `first` on, of equal ones the first; no branches (not predictable).
  [[nodiscard]] std::size_t least_of(std::size_t first) const {
    const auto less = [&](std::size_t a, std::size_t b) -> std::size_t {
      return nodes_[a].key < nodes_[b].key ? 1 : 0;
    };
    if (first + 4 <= nodes_.size()) {
      const std::size_t a = first + less(first + 1, first), b = first + 2 + less(first + 3, first + 2);
      return a + (b - a) * less(b, a);
    }
    std::size_t least = first;
    for (std::size_t child = first + 1; child < nodes_.size(); ++child)
      if (nodes_[child].key < nodes_[least].key) least = child;
    return least;
  }

  void put(std::size_t at, const Node& node) {
    nodes_[at] = node;
    place_[node.id] = static_cast<std::uint32_t>(at);
  }

  std::vector<Node> nodes_;
  std::vector<std::uint32_t> due_;    // scratch of take_until
  std::vector<std::uint32_t> place_;  // by id
};
}  // namespace topsim::engine
