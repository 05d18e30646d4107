#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <numeric>
#include <tuple>
#include <unordered_set>

#include "sim/base/error.hpp"
#include "topology/topology.hpp"

namespace topsim::topology {
namespace {

// Counting sort of links first, first + 1, ... by their start; numbers stay ascending within a device.
void sort_by_start(std::span<const Link> links, std::size_t first, std::size_t devices,
                   std::vector<std::uint32_t>& begin, std::vector<LinkId>& sorted) {
  begin.assign(devices + 2, 0);  // shifted by one until all links are placed
  for (const Link& link : links) ++begin[link.from.index() + 2];
  std::partial_sum(begin.begin(), begin.end(), begin.begin());
  sorted.resize(links.size());
  for (const Link& link : links) sorted[begin[link.from.index() + 1]++] = LinkId(first++);
  begin.pop_back();
}

// Devices of nodes, ordered by node and by their number in it.
class ByNode {
 public:
  explicit ByNode(std::vector<DeviceId>& list) : list_(list) {}
  void add(DeviceId id, const Device& device) {
    const std::pair place(device.node, device.local);
    in_order_ = in_order_ && (list_.empty() || last_ <= place);
    last_ = place;
    list_.push_back(id);
  }
  void sort(const Topology& t) {
    if (in_order_) return;  // recipes create them in order
    std::sort(list_.begin(), list_.end(), [&t](DeviceId a, DeviceId b) {
      const Device x = t.device(a), y = t.device(b);
      return std::tie(x.node, x.local, a) < std::tie(y.node, y.local, b);
    });
  }

 private:
  std::vector<DeviceId>& list_;
  std::pair<std::uint32_t, std::uint32_t> last_;
  bool in_order_ = true;
};
}  // namespace

std::uint16_t TopologyBuilder::link_type(LinkType type) {
  auto& types = result_.link_types_;
  const auto found =
      std::find_if(types.begin(), types.end(), [&](const LinkType& t) { return t.id == type.id; });
  if (found != types.end()) return static_cast<std::uint16_t>(found - types.begin());
  if (types.size() > std::numeric_limits<std::uint16_t>::max())  // links name their type in 16 bits
    throw ConfigError(fmt::format("the topology has more than {} types of link", types.size()),
                      "let links of one kind share a type");
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
  return DeviceId(result_.devices().size() - 1);
}

LinkId TopologyBuilder::link(Link link) {
  result_.links_.push_back(link);
  return LinkId(result_.links().size() - 1);
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
  if (count == 0) return;
  t.copies_ = {count, static_cast<std::uint32_t>(devices.size()), static_cast<std::uint32_t>(links.size())};
  t.devices_.insert(t.devices_.end(), devices.begin(), devices.end());
  for (Device& device : t.devices_) device.node = 0;
  t.links_.insert(t.links_.end(), links.begin(), links.end());
}

void TopologyBuilder::check(LinkId id) const {
  const Topology& t = result_;
  const std::size_t before = id.value < t.copies_.links ? 0 : t.links().size() - t.links_.size();
  const Link& l = t.links_[id.index() - before];
  const std::size_t devices = t.devices().size();
  if (l.from.index() >= devices || l.to.index() >= devices)  // an invalid id is out of range too
    throw InternalError(fmt::format("link {} has an end that is no device", id.value));
  if (l.from == l.to) throw InternalError(fmt::format("link {} joins a device to itself", id.value));
  if (!(l.capacity.value() > 0) || !(l.line_rate.value() > 0) || l.latency < Duration::zero())
    throw InternalError(
        fmt::format("link {} needs a positive capacity and no negative latency", t.name(l.from)));
  if (l.type >= t.link_types_.size()) throw InternalError(fmt::format("link {} has no type", id.value));
}

// What holds for the first of equal nodes holds for all, so only the first is examined.
void TopologyBuilder::sort_links() {
  Topology& t = result_;
  const std::size_t copied = std::size_t{t.copies_.nodes} * t.copies_.links;
  const auto first_node = std::span<const Link>(t.links_).first(t.copies_.links);
  const auto others = std::span<const Link>(t.links_).subspan(t.copies_.links);
  for (std::size_t i = 0; i < first_node.size(); ++i) check(LinkId(i));
  t.cables_.reserve(others.size());
  for (std::size_t i = 0; i < others.size(); ++i) {
    const LinkId id(copied + i);
    check(id);
    const Device from = t.device(others[i].from), to = t.device(others[i].to);
    if (from.node != to.node || from.node == DeviceId::kNone || from.kind == DeviceKind::fabric_switch ||
        to.kind == DeviceKind::fabric_switch)
      t.cables_.push_back(id);
  }
  sort_by_start(first_node, 0, t.copies_.devices, t.inner_begin_, t.inner_links_);
  sort_by_start(others, copied, t.devices().size(), t.out_begin_, t.out_links_);
}

void TopologyBuilder::list_devices() {
  Topology& t = result_;
  t.nics_begin_.assign(t.nodes_ + 1, 0);
  ByNode accelerators(t.accelerators_), nics(t.nics_);
  const auto is_listed = [](const Device& d) {
    return d.kind == DeviceKind::accelerator || (d.kind == DeviceKind::nic && d.node != DeviceId::kNone);
  };
  const auto list = [&](std::size_t i, const Device& d) {
    if (d.kind == DeviceKind::accelerator) return accelerators.add(DeviceId(i), d);
    nics.add(DeviceId(i), d);
    ++t.nics_begin_[d.node + 1];
  };
  const auto check = [&](std::size_t i, const Device& d) {
    if (d.node != DeviceId::kNone && d.node >= t.nodes_)
      throw InternalError(fmt::format("device {} is on node {} of {}", i, d.node, t.nodes_));
    if (d.model >= t.models_.size()) throw InternalError(fmt::format("device {} has no model", i));
  };
  if (t.copies_.nodes > t.nodes_)
    throw InternalError(fmt::format("{} nodes of {} are copies", t.copies_.nodes, t.nodes_));
  std::vector<std::size_t> listed;  // of each copied node
  for (std::size_t i = 0; i < t.copies_.devices; ++i) {
    check(i, t.devices_[i]);
    if (is_listed(t.devices_[i])) listed.push_back(i);
  }
  for (std::uint32_t node = 0; node < t.copies_.nodes; ++node)
    for (const std::size_t i : listed)
      list(std::size_t{node} * t.copies_.devices + i, DeviceOfNode{}(t.devices_[i], node));
  for (std::size_t i = std::size_t{t.copies_.nodes} * t.copies_.devices; i < t.devices().size(); ++i) {
    const Device d = t.device(DeviceId(i));
    check(i, d);
    if (d.node < t.copies_.nodes)
      throw InternalError(fmt::format("device {} is added to a node that is a copy", i));
    if (is_listed(d)) list(i, d);
  }
  std::partial_sum(t.nics_begin_.begin(), t.nics_begin_.end(), t.nics_begin_.begin());
  accelerators.sort(t);
  nics.sort(t);
}

Topology TopologyBuilder::finish() && {
  sort_links();
  std::unordered_set<std::string_view> seen;
  for (const std::string& name : result_.explicit_names_)
    if (!seen.insert(name).second) throw InternalError("two devices are called " + name);
  list_devices();
  result_.bound_by_credits();
  return std::move(result_);
}

}  // namespace topsim::topology
