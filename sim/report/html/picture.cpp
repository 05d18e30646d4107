#include "sim/report/html/picture.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

#include "topology/link_name.hpp"

namespace topsim::report {
namespace {
using topology::Device;
using topology::Link;
using topology::Topology;

constexpr std::size_t kShapes = 120;  // more do not fit a screen
using Key = std::vector<std::uint32_t>;

struct Load {
  double bytes = 0, utilization = 0, peak = 0;
  std::int32_t link_class = -1;
};

std::vector<Load> loads_of(const Topology& topology, const executor::Outcome& outcome) {
  const double window = seconds(outcome.end - outcome.measured_begin);
  std::vector<Load> loads(topology.links().size());
  for (std::size_t i = 0; i < outcome.links.size(); ++i) {
    const executor::LinkClass& each = outcome.links[i];
    for (LinkId member : each.members) {
      const double capacity = topology.link(member).capacity.value();
      loads[member.index()] = {each.bytes, window > 0 ? each.bytes / (capacity * window) : 0,
                               each.peak_rate / capacity, static_cast<std::int32_t>(i)};
    }
  }
  return loads;
}

// Numbers keys in the order of their first occurrence, so that classes are in device order.
class Classes {
 public:
  std::uint32_t of(Key key) {
    return ids_.try_emplace(std::move(key), static_cast<std::uint32_t>(ids_.size())).first->second;
  }
  [[nodiscard]] std::size_t size() const { return ids_.size(); }

 private:
  std::map<Key, std::uint32_t> ids_;
};

struct Folding {
  std::vector<std::uint32_t> device, node;  // class of each device; node class of each node
  std::size_t devices = 0;
};

// Devices are alike if their kind, model, links and utilisation, in steps of 1 / resolution, are equal.
Folding fold(const Topology& topology, const std::vector<Load>& loads,
             const std::vector<std::int32_t>& rank_class, std::uint32_t resolution) {
  const auto devices = topology.devices();
  std::vector<Key> keys(devices.size());
  for (std::size_t i = 0; i < devices.size(); ++i) {
    const Device& device = devices[i];
    keys[i] = {static_cast<std::uint32_t>(device.kind), device.tier, device.model,
               resolution > 1 ? static_cast<std::uint32_t>(rank_class[i] + 1) : 0};
  }
  std::vector<std::vector<std::uint32_t>> ends(devices.size());
  for (std::size_t i = 0; i < topology.links().size(); ++i) {
    const Link& link = topology.links()[i];
    const auto load = static_cast<std::uint32_t>(std::lround(loads[i].utilization * resolution));
    const std::uint32_t end = (link.type * (resolution + 2) + (resolution > 1 ? load : 0)) * 2;
    ends[link.from.index()].push_back(end);
    ends[link.to.index()].push_back(end + 1);
  }
  Classes alike;
  std::vector<std::uint32_t> first(devices.size());
  std::vector<Key> inside(topology.nodes());
  for (std::size_t i = 0; i < devices.size(); ++i) {
    std::sort(ends[i].begin(), ends[i].end());
    keys[i].insert(keys[i].end(), ends[i].begin(), ends[i].end());
    first[i] = alike.of(std::move(keys[i]));
    if (devices[i].node < inside.size()) inside[devices[i].node].push_back(first[i]);
  }
  Folding folding;
  Classes node_classes, device_classes;
  for (Key& each : inside) {
    std::sort(each.begin(), each.end());
    folding.node.push_back(node_classes.of(std::move(each)));
  }
  for (std::size_t i = 0; i < devices.size(); ++i) {
    const std::uint32_t node = devices[i].node < inside.size() ? folding.node[devices[i].node] + 1 : 0;
    folding.device.push_back(device_classes.of({first[i], node}));
  }
  folding.devices = device_classes.size();
  return folding;
}

void add_devices(Picture& picture, const Topology& topology, const Folding& folding,
                 const std::vector<std::int32_t>& rank_of) {
  picture.devices.resize(folding.devices);
  for (std::size_t i = 0; i < topology.devices().size(); ++i) {
    const Device& device = topology.devices()[i];
    PictureDevice& shape = picture.devices[folding.device[i]];
    if (shape.count == 0) {
      shape.name = topology.name(DeviceId(i));
      shape.model = topology.model_of(DeviceId(i));
      shape.kind = device.kind;
      shape.tier = device.tier;
      shape.node = device.node < topology.nodes() ? static_cast<std::int32_t>(folding.node[device.node]) : -1;
      shape.rank = rank_of[i];
    }
    shape.count += device.count;
  }
  for (std::size_t i = 0; i < folding.node.size(); ++i) {
    if (folding.node[i] >= picture.nodes.size()) picture.nodes.push_back({"node" + std::to_string(i), 0});
    ++picture.nodes[folding.node[i]].count;
  }
}

void add_links(Picture& picture, const Topology& topology, const Folding& folding,
               const std::vector<Load>& loads) {
  std::map<std::tuple<std::uint32_t, std::uint32_t, std::uint16_t>, std::size_t> seen;
  for (std::size_t i = 0; i < topology.links().size(); ++i) {
    const Link& link = topology.links()[i];
    const std::uint32_t from = folding.device[link.from.index()];
    const std::uint32_t to = folding.device[link.to.index()];
    const auto [at, fresh] = seen.try_emplace({from, to, link.type}, picture.links.size());
    if (fresh) {
      PictureLink line;
      line.from = from;
      line.to = to;
      line.id = topology.name(LinkId(i));
      line.kind = name_of(link.kind);
      line.type = name_with_speed(topology, link);
      line.capacity = link.capacity.value();
      picture.links.push_back(std::move(line));
    }
    PictureLink& line = picture.links[at->second];
    ++line.count;
    line.bytes += loads[i].bytes;
    line.utilization += loads[i].utilization;  // a sum until all links are added
    if (line.series < 0 || loads[i].utilization > line.most) line.series = loads[i].link_class;
    line.most = std::max(line.most, loads[i].utilization);
    line.peak = std::max(line.peak, loads[i].peak);
  }
  for (PictureLink& line : picture.links) line.utilization /= line.count;
}
}  // namespace

Picture make_picture(const Topology& topology, const executor::Outcome& outcome) {
  std::vector<std::int32_t> rank_of(topology.devices().size(), -1), rank_class(topology.devices().size(), -1);
  std::vector<std::uint32_t> class_of(topology.accelerators().size(), 0);
  for (std::size_t i = 0; i < outcome.ranks.size(); ++i) {
    for (RankId member : outcome.ranks[i].members) {
      class_of[member.index()] = static_cast<std::uint32_t>(i);
      rank_class[topology.accelerators()[member.index()].index()] = static_cast<std::int32_t>(i);
    }
  }
  Picture picture;
  for (std::size_t rank = 0; rank < class_of.size(); ++rank) {
    rank_of[topology.accelerators()[rank].index()] = static_cast<std::int32_t>(rank);
    if (rank == 0 || class_of[rank] != class_of[rank - 1]) {
      picture.rank_classes.emplace_back(static_cast<std::uint32_t>(rank), class_of[rank]);
    }
  }
  const std::vector<Load> loads = loads_of(topology, outcome);
  Folding folding;
  for (const std::uint32_t resolution : {1000U, 100U, 10U, 1U}) {
    folding = fold(topology, loads, rank_class, resolution);
    picture.exact = resolution >= 100;
    if (folding.devices <= kShapes) break;
  }
  add_devices(picture, topology, folding, rank_of);
  add_links(picture, topology, folding, loads);
  return picture;
}
}  // namespace topsim::report
