// Lists of a cluster's devices and links: nodes that are copies of one are stored once, and the elements of
// each are made when asked for. That is faster than reading them: thousands of nodes fit no cache.
#pragma once

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <span>

#include "sim/base/ids.hpp"

namespace topsim::topology {

// `nodes` times the first `each` stored elements, moved to each node by `Move`, then the other stored
// elements.
template <class Value, class Move>
class Repeated {
 public:
  class const_iterator {
   public:
    using iterator_category = std::input_iterator_tag;  // a value has no place to refer to
    using value_type = Value;
    using difference_type = std::ptrdiff_t;
    using reference = Value;
    struct pointer {
      Value value;
      const Value* operator->() const { return &value; }
    };
    const_iterator() = default;
    Value operator*() const { return list_.move_(*at_, node_); }
    pointer operator->() const { return {**this}; }
    const_iterator& operator++() {
      ++at_;
      if (++place_ != list_.each_) return *this;
      if (++node_ < list_.nodes_) {
        at_ -= place_;
        place_ = 0;
      } else {
        node_ = 0;  // from here on nothing moves
      }
      return *this;
    }
    const_iterator operator++(int) {
      const_iterator before = *this;
      ++*this;
      return before;
    }
    bool operator==(const const_iterator& other) const { return at_ == other.at_ && node_ == other.node_; }
    difference_type operator-(const const_iterator& other) const { return index() - other.index(); }

   private:
    friend class Repeated;
    const_iterator(const Repeated& list, const Value* at) : list_(list), at_(at) {}
    [[nodiscard]] difference_type index() const {
      const auto kept = at_ - list_.kept_.data();
      const bool after = kept >= static_cast<difference_type>(list_.each_) && list_.nodes_ > 0;
      return kept + static_cast<difference_type>(after ? list_.left_out() : node_ * std::size_t{list_.each_});
    }
    Repeated list_;
    const Value* at_ = nullptr;
    std::uint32_t place_ = 0, node_ = 0;
  };
  using iterator = const_iterator;
  using value_type = Value;
  using size_type = std::size_t;

  Repeated() = default;
  Repeated(std::span<const Value> kept, std::uint32_t nodes, std::uint32_t each, Move move)
      : kept_(kept), nodes_(nodes), each_(each), move_(move) {}

  [[nodiscard]] std::size_t size() const { return kept_.size() + left_out(); }
  [[nodiscard]] bool empty() const { return size() == 0; }
  Value operator[](std::size_t i) const {
    const auto at = static_cast<std::uint32_t>(i);
    const std::uint32_t copied = nodes_ * each_;
    if (at >= copied) return kept_[at - copied + each_];
    const std::uint32_t node = at / each_;
    return move_(kept_[at - node * each_], node);
  }
  [[nodiscard]] Value front() const { return (*this)[0]; }
  [[nodiscard]] Value back() const { return (*this)[size() - 1]; }
  [[nodiscard]] const_iterator begin() const { return {*this, kept_.data()}; }
  [[nodiscard]] const_iterator end() const { return {*this, kept_.data() + kept_.size()}; }

 private:
  [[nodiscard]] std::size_t left_out() const { return nodes_ > 1 ? (std::size_t{nodes_} - 1) * each_ : 0; }
  std::span<const Value> kept_;
  std::uint32_t nodes_ = 0, each_ = 0;
  Move move_{};
};

// Links that leave a device: those inside its node, kept as numbers of the first node's, then the others.
class LinksFrom {
 public:
  class const_iterator {
   public:
    using iterator_category = std::input_iterator_tag;
    using value_type = LinkId;
    using difference_type = std::ptrdiff_t;
    using reference = LinkId;
    using pointer = const LinkId*;
    const_iterator() = default;
    LinkId operator*() const { return LinkId(std::size_t{at_->value} + moved_); }
    const_iterator& operator++() {
      if (++at_ != inner_end_) return *this;
      at_ = outer_;
      moved_ = 0;
      return *this;
    }
    const_iterator operator++(int) {
      const_iterator before = *this;
      ++*this;
      return before;
    }
    bool operator==(const const_iterator& other) const { return at_ == other.at_; }

   private:
    friend class LinksFrom;
    const LinkId *at_ = nullptr, *inner_end_ = nullptr, *outer_ = nullptr;
    std::uint32_t moved_ = 0;
  };
  using iterator = const_iterator;
  using value_type = LinkId;
  using size_type = std::size_t;

  LinksFrom() = default;
  LinksFrom(std::span<const LinkId> inner, std::uint32_t moved, std::span<const LinkId> outer)
      : inner_(inner), outer_(outer), moved_(moved) {}

  [[nodiscard]] std::size_t size() const { return inner_.size() + outer_.size(); }
  [[nodiscard]] bool empty() const { return size() == 0; }
  LinkId operator[](std::size_t i) const {
    return i < inner_.size() ? LinkId(std::size_t{inner_[i].value} + moved_) : outer_[i - inner_.size()];
  }
  [[nodiscard]] LinkId front() const { return (*this)[0]; }
  [[nodiscard]] LinkId back() const { return (*this)[size() - 1]; }
  [[nodiscard]] const_iterator begin() const {
    const_iterator it;
    const bool none = inner_.empty();
    it.at_ = none ? outer_.data() : inner_.data();
    it.inner_end_ = none ? nullptr : inner_.data() + inner_.size();
    it.outer_ = outer_.data();
    it.moved_ = none ? 0 : moved_;
    return it;
  }
  [[nodiscard]] const_iterator end() const {
    const_iterator it;
    it.at_ = outer_.data() + outer_.size();
    return it;
  }

 private:
  std::span<const LinkId> inner_, outer_;
  std::uint32_t moved_ = 0;
};
}  // namespace topsim::topology
