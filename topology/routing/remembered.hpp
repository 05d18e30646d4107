// Results that are computed once, by key. Thread-safe without locks: entries are only ever added.
#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <utility>

namespace topsim::topology {

// REQUIRES: `Key` has operator== and hash().
template <class Key, class Value, std::size_t kSlots = 4096>
class Remembered {
 public:
  Remembered() : slots_(std::make_unique<Slot[]>(kSlots)) {}

  // Null: not known.
  [[nodiscard]] const Value* find(const Key& key) const {
    for (std::size_t at = key.hash(), tries = 0; tries < kTries; ++tries, ++at) {
      const Entry* entry = slots_[at % kSlots].entry.load(std::memory_order_acquire);
      if (entry == nullptr) return nullptr;
      if (entry->key == key) return &entry->value;
    }
    return nullptr;
  }
  // The stored value; null where there is no space: callers must be able to compute it again.
  const Value* keep(const Key& key, Value value) const {
    auto fresh = std::make_unique<Entry>(Entry{key, std::move(value)});
    for (std::size_t at = key.hash(), tries = 0; tries < kTries; ++tries, ++at) {
      Entry* known = nullptr;
      if (slots_[at % kSlots].entry.compare_exchange_strong(known, fresh.get(), std::memory_order_release,
                                                            std::memory_order_acquire))
        return &fresh.release()->value;
      if (known->key == key) return &known->value;
    }
    return nullptr;
  }

 private:
  static constexpr std::size_t kTries = 32;
  struct Entry {
    Key key;
    Value value;
  };
  struct Slot {
    ~Slot() { delete entry.load(std::memory_order_relaxed); }
    std::atomic<Entry*> entry{nullptr};
  };

  std::unique_ptr<Slot[]> slots_;
};
}  // namespace topsim::topology
