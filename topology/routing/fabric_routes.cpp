#include "topology/routing/fabric_routes.hpp"

#include <algorithm>
#include <numeric>
#include <tuple>

namespace topsim::topology {
namespace {

// splitmix64 (Vigna): a full-avalanche mix of 64 bits.
std::uint64_t mix(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15ULL;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
  return x ^ (x >> 31);
}

}  // namespace

std::uint32_t PathChoice::pick(std::uint32_t n, std::uint32_t level) {
  if (n <= 1) return 0;
  if (routing == Routing::static_) {
    const auto digit = static_cast<std::uint32_t>(destination % n);
    destination /= n;
    return digit;
  }
  return static_cast<std::uint32_t>(mix(hash + level) % n);
}

PathChoice choose(Routing routing, std::uint64_t seed, DeviceId from, DeviceId to, std::uint64_t lid,
                  std::uint64_t connection) {
  const std::uint64_t ends = (std::uint64_t{from.value} << 32) | to.value;
  return {routing, lid, mix(mix(mix(seed) ^ ends) ^ connection)};
}

FabricPorts::FabricPorts(const Topology& t, const std::vector<bool>& dead, std::span<const LinkId> cables) {
  const auto works = [&](LinkId l) { return dead.empty() || !dead[l.index()]; };
  const auto is_switch = [&](DeviceId d) { return t.device(d).kind == DeviceKind::fabric_switch; };
  std::vector<std::pair<std::uint32_t, LinkId>> ups, downs;
  for (const LinkId id : cables) {
    if (!works(id)) continue;
    const Link& l = t.link(id);
    if (is_switch(l.from) == is_switch(l.to)) continue;
    if (is_switch(l.to))
      ups.emplace_back(l.from.value, id);
    else
      downs.emplace_back(l.to.value, id);
  }
  const auto by_port_and_switch = [&](bool up) {
    return [&, up](const auto& a, const auto& b) {
      const auto end = [&](LinkId id) { return up ? t.link(id).to : t.link(id).from; };
      return std::tuple(a.first, end(a.second), a.second) < std::tuple(b.first, end(b.second), b.second);
    };
  };
  // Recipes make them in order.
  const auto sort = [](auto& some, const auto& before) {
    if (!std::is_sorted(some.begin(), some.end(), before)) std::sort(some.begin(), some.end(), before);
  };
  sort(ups, by_port_and_switch(true));
  sort(downs, by_port_and_switch(false));
  // Pair the k-th cable up with the k-th down of the same two devices.
  ordinal_.assign(t.devices().size(), DeviceId::kNone);
  cables_.reserve(ups.size());
  std::size_t d = 0;
  for (const auto& [port, up] : ups) {
    const DeviceId at = t.link(up).to;
    const auto position = [&](std::size_t i) {
      return std::pair(downs[i].first, t.link(downs[i].second).from);
    };
    while (d < downs.size() && position(d) < std::pair(port, at)) ++d;
    if (d == downs.size() || position(d) != std::pair(port, at)) continue;
    const LinkId down = downs[d++].second;
    std::uint32_t& ordinal = ordinal_[port];
    if (ordinal == DeviceId::kNone) {
      ordinal = static_cast<std::uint32_t>(begin_.size());
      begin_.push_back(static_cast<std::uint32_t>(cables_.size()));
    }
    cables_.push_back({up, down, at, t.link(up).latency, t.link(down).latency});
  }
  std::vector<std::uint32_t> order(begin_.size());
  std::iota(order.begin(), order.end(), 0);
  const auto leaf_by_leaf = [this](std::uint32_t a, std::uint32_t b) {
    return cables_[begin_[a]].at < cables_[begin_[b]].at;
  };
  if (!std::is_sorted(order.begin(), order.end(), leaf_by_leaf))
    std::stable_sort(order.begin(), order.end(), leaf_by_leaf);
  lid_.resize(order.size());
  for (std::uint32_t i = 0; i < order.size(); ++i) lid_[order[i]] = i;
  begin_.push_back(static_cast<std::uint32_t>(cables_.size()));
}

}  // namespace topsim::topology
