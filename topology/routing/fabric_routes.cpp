#include "topology/routing/fabric_routes.hpp"

#include <algorithm>
#include <numeric>
#include <tuple>

#include "sim/base/mix.hpp"

namespace topsim::topology {

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
  const std::uint32_t copied = t.copies().nodes * t.copies().devices;  // devices in copied nodes: no switches
  const auto is_switch = [&](DeviceId d) {
    return d.value >= copied && t.device(d).kind == DeviceKind::fabric_switch;
  };
  struct Way {
    DeviceId port, at;
    LinkId link;
    [[nodiscard]] bool joins_what(const Way& other) const { return port == other.port && at == other.at; }
    bool operator<(const Way& other) const {
      return std::tie(port, at, link) < std::tie(other.port, other.at, other.link);
    }
  };
  std::vector<Way> ups, downs;
  ups.reserve(cables.size() / 2);
  downs.reserve(cables.size() / 2);
  for (const LinkId id : cables) {
    if (!dead.empty() && dead[id.index()]) continue;
    const Link& l = t.link(id);
    const bool up = is_switch(l.to);
    if (is_switch(l.from) == up) continue;
    if (up)
      ups.push_back({l.from, l.to, id});
    else
      downs.push_back({l.to, l.from, id});
  }
  for (auto* ways : {&ups, &downs})  // recipes create them in order
    if (!std::is_sorted(ways->begin(), ways->end())) std::sort(ways->begin(), ways->end());
  // Pairs the k-th cable up with the k-th cable down between the same two devices.
  ordinal_.assign(t.devices().size(), DeviceId::kNone);
  cables_.reserve(ups.size());
  auto down = downs.begin();
  for (const Way& up : ups) {
    const auto before = [](const Way& a, const Way& b) {
      return std::tie(a.port, a.at) < std::tie(b.port, b.at);
    };
    while (down != downs.end() && before(*down, up)) ++down;
    if (down == downs.end() || !down->joins_what(up)) continue;
    std::uint32_t& ordinal = ordinal_[up.port.index()];
    if (ordinal == DeviceId::kNone) {
      ordinal = static_cast<std::uint32_t>(begin_.size());
      begin_.push_back(static_cast<std::uint32_t>(cables_.size()));
    }
    cables_.push_back({up.link, down->link, up.at, t.link(up.link).latency, t.link(down->link).latency});
    ++down;
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
