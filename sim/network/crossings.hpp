// The activities that cross one link: a small vector whose first element lives in the link itself, since a
// network in lock-step has mostly links with one activity. The first `members` have their bottleneck here and
// are a binary heap by finish.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <span>

namespace topsim::network {

struct Crossing {
  double finish;  // the link's clock when the activity ends; meaningful for members only
  std::uint32_t activity;
  std::uint32_t step;  // of the activity, see MaxMin::Step
};

class Crossings {
 public:
  [[nodiscard]] std::uint32_t size() const { return size_; }
  [[nodiscard]] bool empty() const { return size_ == 0; }
  [[nodiscard]] Crossing& operator[](std::uint32_t at) { return data()[at]; }
  [[nodiscard]] const Crossing& operator[](std::uint32_t at) const { return data()[at]; }
  [[nodiscard]] std::span<const Crossing> all() const { return {data(), size_}; }

  void push_back(const Crossing& crossing) {
    if (size_ == capacity_) grow();
    data()[size_++] = crossing;
  }
  void pop_back() { --size_; }

 private:
  [[nodiscard]] Crossing* data() { return capacity_ == 1 ? &only_ : many_.get(); }
  [[nodiscard]] const Crossing* data() const { return capacity_ == 1 ? &only_ : many_.get(); }
  void grow() {
    const std::uint32_t larger = capacity_ < 4 ? 4 : 2 * capacity_;
    auto moved = std::make_unique_for_overwrite<Crossing[]>(larger);  // memory is touched when it is used
    std::copy_n(data(), size_, moved.get());
    many_ = std::move(moved);
    capacity_ = larger;
  }

  Crossing only_{};
  std::unique_ptr<Crossing[]> many_;
  std::uint32_t size_ = 0, capacity_ = 1;
};
}  // namespace topsim::network
