// Routes between nodes, inside the nodes of their ends: what follows from the nodes' shapes and the places of
// the ends in them is worked out once. Large clusters ask for hundreds of thousands of routes of a few dozen
// kinds.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "sim/base/units.hpp"

namespace topsim::topology {

struct Journey {
  // Everything that it follows from; devices as positions in their node, none where the router chooses.
  struct Key {
    std::uint32_t from_shape, to_shape;
    std::uint32_t from, to, from_nic, to_nic;
    std::uint32_t from_turn, to_turn;  // of the connection, among the ports that its node deals out
    bool allow_pxn;
    friend bool operator==(const Key&, const Key&) = default;
  };
  bool reachable = false;
  std::uint32_t proxy = 0, leave = 0, enter = 0;  // whose NIC it takes, that NIC, and the one it arrives at
  Duration latency{};                             // of the ways inside both nodes
};

// Thread-safe without locks: entries are only ever added.
class Journeys {
 public:
  Journeys() : slots_(std::make_unique<Slot[]>(kSlots)) {}

  // Null: not known.
  [[nodiscard]] const Journey* find(const Journey::Key& key) const {
    for (std::size_t at = hash(key), tries = 0; tries < kTries; ++tries, ++at) {
      const Entry* entry = slots_[at % kSlots].entry.load(std::memory_order_acquire);
      if (entry == nullptr) return nullptr;
      if (entry->key == key) return &entry->journey;
    }
    return nullptr;
  }
  // Forgets it where there is no room: whoever asks must be able to work it out again.
  void keep(const Journey::Key& key, const Journey& journey) const {
    auto fresh = std::make_unique<Entry>(Entry{key, journey});
    for (std::size_t at = hash(key), tries = 0; tries < kTries; ++tries, ++at) {
      Entry* nobody = nullptr;
      if (slots_[at % kSlots].entry.compare_exchange_strong(nobody, fresh.get(), std::memory_order_release,
                                                            std::memory_order_acquire)) {
        static_cast<void>(fresh.release());
        return;
      }
      if (nobody->key == key) return;
    }
  }

 private:
  static constexpr std::size_t kSlots = 4096, kTries = 32;
  struct Entry {
    Journey::Key key;
    Journey journey;
  };
  struct Slot {
    ~Slot() { delete entry.load(std::memory_order_relaxed); }
    std::atomic<Entry*> entry{nullptr};
  };
  static std::size_t hash(const Journey::Key& key) {
    std::uint64_t h = key.allow_pxn ? 1 : 0;
    for (const std::uint64_t pair :
         {std::uint64_t{key.from_shape} << 32 | key.to_shape, std::uint64_t{key.from} << 32 | key.to,
          std::uint64_t{key.from_nic} << 32 | key.to_nic, std::uint64_t{key.from_turn} << 32 | key.to_turn})
      h = (h ^ pair) * 0x9e3779b97f4a7c15ULL, h ^= h >> 32;
    return static_cast<std::size_t>(h);
  }

  std::unique_ptr<Slot[]> slots_;
};
}  // namespace topsim::topology
