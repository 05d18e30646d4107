#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <tuple>
#include <unordered_set>

#include "sim/base/error.hpp"
#include "topology/topology.hpp"

namespace topsim::topology {

std::uint16_t TopologyBuilder::link_type(LinkType type) {
  auto& types = result_.link_types_;
  const auto found =
      std::find_if(types.begin(), types.end(), [&](const LinkType& t) { return t.id == type.id; });
  if (found != types.end()) return static_cast<std::uint16_t>(found - types.begin());
  types.push_back(std::move(type));
  return static_cast<std::uint16_t>(types.size() - 1);
}

std::uint32_t TopologyBuilder::model(std::string id) {
  auto& models = result_.models_;
  const auto found = std::find(models.begin(), models.end(), id);
  if (found != models.end()) return static_cast<std::uint32_t>(found - models.begin());
  models.push_back(std::move(id));
  return static_cast<std::uint32_t>(models.size() - 1);
}

DeviceId TopologyBuilder::device(Device device, std::string explicit_name) {
  if (explicit_name.empty() != result_.explicit_names_.empty() && !result_.devices_.empty())
    throw InternalError("either every device has an explicit name or none");
  result_.devices_.push_back(device);
  if (!explicit_name.empty()) result_.explicit_names_.push_back(std::move(explicit_name));
  return DeviceId(result_.devices_.size() - 1);
}

LinkId TopologyBuilder::link(Link link) {
  result_.links_.push_back(link);
  return LinkId(result_.links_.size() - 1);
}

void TopologyBuilder::cable(Link forward) {
  Link back = forward;
  std::swap(back.from, back.to);
  link(forward);
  link(back);
}

void TopologyBuilder::reserve(std::size_t devices, std::size_t links) {
  result_.devices_.reserve(devices);
  result_.links_.reserve(links);
}

void TopologyBuilder::nodes(std::uint32_t count, std::span<const Device> devices,
                            std::span<const Link> links) {
  Topology& t = result_;
  t.copies_ = {count, static_cast<std::uint32_t>(devices.size()), static_cast<std::uint32_t>(links.size())};
  for (std::uint32_t n = 0, base = 0; n < count; ++n, base += t.copies_.devices) {
    t.devices_.insert(t.devices_.end(), devices.begin(), devices.end());
    for (auto device = t.devices_.end() - t.copies_.devices; device != t.devices_.end(); ++device)
      device->node = n;
    t.links_.insert(t.links_.end(), links.begin(), links.end());
    for (auto link = t.links_.end() - t.copies_.links; link != t.links_.end(); ++link) {
      link->from.value += base;
      link->to.value += base;
    }
  }
}

void TopologyBuilder::check(std::size_t i) const {
  const Topology& t = result_;
  const Link& l = t.links_[i];
  const std::size_t devices = t.devices_.size();
  if (l.from.index() >= devices || l.to.index() >= devices)  // what is invalid is beyond them, too
    throw InternalError(fmt::format("link {} has an end that is no device", i));
  if (l.from == l.to) throw InternalError(fmt::format("link {} joins a device to itself", i));
  if (!(l.capacity.value() > 0) || !(l.line_rate.value() > 0) || l.latency < Duration::zero())
    throw InternalError(
        fmt::format("link {} needs a positive capacity and no negative latency", t.name(l.from)));
  if (l.type >= t.link_types_.size()) throw InternalError(fmt::format("link {} has no type", i));
}

// Counting sort of links by their start: ids stay ascending inside a device. What is true of the first of
// nodes that are copies is true of all: neither is looked at again.
void TopologyBuilder::sort_links() {
  Topology& t = result_;
  const Topology::Copies copies = t.copies_;
  const std::span<const Link> links(t.links_);
  const std::size_t first_single = std::size_t{copies.nodes} * copies.links;
  t.out_begin_.assign(t.devices_.size() + 1, 0);
  const std::span<std::uint32_t> out(t.out_begin_);
  std::vector<std::uint32_t> starts;  // of the first node's links
  for (std::size_t i = 0; i < (copies.nodes > 0 ? copies.links : 0); ++i) {
    check(i);
    starts.push_back(links[i].from.value);
    ++out[links[i].from.index() + 1];
  }
  for (std::size_t d = copies.devices; d < std::size_t{copies.nodes} * copies.devices; ++d)
    out[d + 1] = out[d + 1 - copies.devices];
  for (std::size_t i = first_single; i < links.size(); ++i) {
    check(i);
    ++out[links[i].from.index() + 1];
    const Device &from = t.device(links[i].from), &to = t.device(links[i].to);
    if (from.node != to.node || from.node == DeviceId::kNone || from.kind == DeviceKind::fabric_switch ||
        to.kind == DeviceKind::fabric_switch)
      t.cables_.push_back(LinkId(i));
  }
  std::partial_sum(t.out_begin_.begin(), t.out_begin_.end(), t.out_begin_.begin());
  t.out_links_.resize(links.size());
  std::vector<std::uint32_t> next(t.out_begin_.begin(), t.out_begin_.end() - 1);
  const std::span<LinkId> out_links(t.out_links_);
  std::size_t link = 0;
  for (std::size_t n = 0, base = 0; n < copies.nodes; ++n, base += copies.devices)
    for (const std::uint32_t start : starts) out_links[next[base + start]++] = LinkId(link++);
  for (std::size_t i = first_single; i < links.size(); ++i)
    out_links[next[links[i].from.index()]++] = LinkId(i);
}

void TopologyBuilder::list_devices() {
  Topology& t = result_;
  t.nics_begin_.assign(t.nodes_ + 1, 0);
  for (std::size_t i = 0; i < t.devices_.size(); ++i) {
    const Device& d = t.devices_[i];
    if (d.node != DeviceId::kNone && d.node >= t.nodes_)
      throw InternalError(fmt::format("device {} is on node {} of {}", i, d.node, t.nodes_));
    if (d.model >= t.models_.size()) throw InternalError(fmt::format("device {} has no model", i));
    if (d.kind == DeviceKind::accelerator) t.accelerators_.push_back(DeviceId(i));
    if (d.kind == DeviceKind::nic && d.node != DeviceId::kNone) {
      t.nics_.push_back(DeviceId(i));
      ++t.nics_begin_[d.node + 1];
    }
  }
  std::partial_sum(t.nics_begin_.begin(), t.nics_begin_.end(), t.nics_begin_.begin());
  const auto by_node = [&t](DeviceId a, DeviceId b) {
    const Device &x = t.device(a), &y = t.device(b);
    return std::tie(x.node, x.local, a) < std::tie(y.node, y.local, b);
  };
  for (auto* devices_of_nodes : {&t.accelerators_, &t.nics_}) {  // recipes make them in order
    if (!std::is_sorted(devices_of_nodes->begin(), devices_of_nodes->end(), by_node))
      std::sort(devices_of_nodes->begin(), devices_of_nodes->end(), by_node);
  }
}

Topology TopologyBuilder::finish() && {
  sort_links();
  std::unordered_set<std::string_view> seen;
  for (const std::string& name : result_.explicit_names_)
    if (!seen.insert(name).second) throw InternalError("two devices are called " + name);
  list_devices();
  return std::move(result_);
}

}  // namespace topsim::topology
