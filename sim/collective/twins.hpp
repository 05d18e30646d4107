// Communicators inside one node are lowered once for each shape of node. A twin is a group at the same places
// in another node of that shape: it has the same usage on the links at the same places there.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "sim/collective/collective.hpp"
#include "sim/collective/placement.hpp"

namespace topsim::collective {

class Twins {
 public:
  // REQUIRES: both outlive it.
  Twins(const topology::Router& router, const Placer& placer) : router_(router), placer_(placer) {}

  // The key of such calls of such ranks; none where they leave their node.
  using Key = std::vector<std::uint64_t>;
  [[nodiscard]] std::optional<Key> key_of(std::span<const CollectiveCall> calls,
                                          std::span<const DeviceId> gpus) const;
  // The lowering of a twin, moved to `node`. Thread-safe, like keep().
  [[nodiscard]] std::optional<LoweredCalls> find(const Key& key, std::uint32_t node) const;
  void keep(const Key& key, std::uint32_t node, const LoweredCalls& lowered) const;

 private:
  const topology::Router& router_;
  const Placer& placer_;
  mutable std::mutex mutex_;
  mutable std::map<Key, LoweredCalls> known_;  // links as places in their node
};
}  // namespace topsim::collective
