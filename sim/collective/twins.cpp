#include "sim/collective/twins.hpp"

#include <algorithm>

namespace topsim::collective {

std::optional<Twins::Key> Twins::key_of(std::span<const CollectiveCall> calls,
                                        std::span<const DeviceId> gpus) const {
  const topology::Topology& topology = router_.topology();
  const std::uint32_t node = topology.device(gpus.front()).node;
  const auto inside = [&](DeviceId gpu) { return topology.device(gpu).node == node; };
  if (node == DeviceId::kNone || !std::all_of(gpus.begin(), gpus.end(), inside)) return std::nullopt;
  Key key{router_.node_shape(node), placer_.signature(node), gpus.size()};
  for (const DeviceId gpu : gpus) key.push_back(router_.place_of(gpu));
  for (const CollectiveCall& call : calls) {
    key.push_back(static_cast<std::uint64_t>(call.kind));
    key.push_back(static_cast<std::uint64_t>(call.bytes.value()));
    key.push_back(static_cast<std::uint64_t>(call.own_kernels.count()));
  }
  return key;
}

std::optional<LoweredCalls> Twins::find(const Key& key, std::uint32_t node) const {
  std::optional<LoweredCalls> result;
  {
    const std::lock_guard lock(mutex_);
    const auto twin = known_.find(key);
    if (twin == known_.end()) return result;
    result = twin->second;
  }
  for (auto& way : result->ways)
    for (topology::LinkShare& use : way) use.link = router_.link_at(node, use.link.value);
  return result;
}

void Twins::keep(const Key& key, std::uint32_t node, const LoweredCalls& lowered) const {
  LoweredCalls placed = lowered;
  for (auto& way : placed.ways) {
    for (topology::LinkShare& use : way) {
      const auto place = router_.place_of(use.link, node);
      if (!place) return;  // over switches that the node shares with others
      use.link = LinkId(*place);
    }
  }
  const std::lock_guard lock(mutex_);
  known_.emplace(key, std::move(placed));
}
}  // namespace topsim::collective
