#include "topology/draw/alike.hpp"

#include <algorithm>
#include <map>
#include <numeric>
#include <tuple>

namespace topsim::topology {
namespace {

constexpr std::uint32_t kNone = DeviceId::kNone;

// Position in the node, and figures; `to` is none if the link leaves the node.
using LinkSign =
    std::tuple<std::uint32_t, std::uint32_t, LinkKind, std::uint16_t, std::uint16_t, double, double>;
using DeviceSign = std::tuple<DeviceKind, std::uint32_t, std::uint32_t, std::uint16_t>;

}  // namespace

std::vector<NodeGroup> alike_nodes(const Topology& t) {
  std::vector<std::vector<DeviceId>> members(t.nodes());
  std::vector<std::uint32_t> position(t.devices().size(), kNone);
  for (std::size_t i = 0; i < t.devices().size(); ++i) {
    const std::uint32_t node = t.devices()[i].node;
    if (node == kNone) continue;
    position[i] = static_cast<std::uint32_t>(members[node].size());
    members[node].push_back(DeviceId(i));
  }
  std::map<std::pair<std::vector<DeviceSign>, std::vector<LinkSign>>, std::size_t> known;
  std::vector<NodeGroup> groups;
  for (std::uint32_t node = 0; node < t.nodes(); ++node) {
    std::pair<std::vector<DeviceSign>, std::vector<LinkSign>> sign;
    for (const DeviceId d : members[node]) {
      const Device& device = t.device(d);
      sign.first.emplace_back(device.kind, device.local, device.model, device.count);
      for (const LinkId id : t.links_from(d)) {
        const Link& l = t.link(id);
        const bool inside = t.device(l.to).node == node;
        sign.second.emplace_back(position[d.index()], inside ? position[l.to.index()] : kNone, l.kind,
                                 l.count, l.type, l.line_rate.value(), l.capacity.value());
      }
    }
    const auto [found, fresh] = known.emplace(std::move(sign), groups.size());
    if (fresh) {
      groups.emplace_back();
      groups.back().device_kinds.resize(device_kind_names().size());
      for (const DeviceId d : members[node])
        groups.back().device_kinds[static_cast<std::size_t>(t.device(d).kind)].push_back(d);
      for (auto& kind : groups.back().device_kinds)
        std::stable_sort(kind.begin(), kind.end(),
                         [&](DeviceId a, DeviceId b) { return t.device(a).local < t.device(b).local; });
    }
    groups[found->second].nodes.push_back(node);
  }
  return groups;
}

std::vector<SwitchGroup> alike_switches(const Topology& t) {
  std::map<std::tuple<int, std::uint32_t, double, double, double, double>, SwitchGroup> groups;
  for (std::size_t i = 0; i < t.devices().size(); ++i) {
    const Device& d = t.devices()[i];
    if (d.kind != DeviceKind::fabric_switch) continue;
    SwitchGroup g;
    g.tier = d.tier;
    g.model = d.model;
    for (const LinkId id : t.links_from(DeviceId(i))) {
      const Link& l = t.link(id);
      const int other = t.device(l.to).kind == DeviceKind::fabric_switch ? t.device(l.to).tier : 0;
      (other < g.tier ? g.down_cables : g.up_cables) += l.count;
      (other < g.tier ? g.down : g.up) += l.line_rate.value();
    }
    for (double* figure : {&g.down_cables, &g.up_cables, &g.down, &g.up}) *figure /= d.count;
    SwitchGroup& group =
        groups.try_emplace({g.tier, g.model, g.down_cables, g.up_cables, g.down, g.up}, g).first->second;
    group.switches.push_back(DeviceId(i));
    group.physical += d.count;
  }
  std::vector<SwitchGroup> result;
  for (auto& [key, group] : groups) result.push_back(std::move(group));
  return result;
}

}  // namespace topsim::topology
