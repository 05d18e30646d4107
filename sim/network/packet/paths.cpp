#include "sim/network/packet/paths.hpp"

#include <algorithm>

#include "sim/base/mix.hpp"

namespace topsim::network::packet {
namespace {
constexpr std::uint16_t kFar = 0xffff;
}

Paths::Paths(const Graph& graph) : graph_(graph), out_begin_(graph.devices + 1, 0), distance_(graph.devices) {
  for (const PortSpec& port : graph.ports) ++out_begin_[port.from + 1];
  for (std::size_t d = 0; d < graph.devices; ++d) out_begin_[d + 1] += out_begin_[d];
  out_.resize(graph.ports.size());
  auto place = out_begin_;
  for (PortIndex p = 0; p < graph.ports.size(); ++p) out_[place[graph.ports[p].from]++] = p;
}

Way Paths::chain(std::span<const PortIndex> ports) {
  std::uint32_t row = 0, count = 0;
  for (std::size_t i = ports.size(); i-- > 0;) {
    const auto [known, fresh] =
        chains_.try_emplace(std::tuple(ports[i], row, count), static_cast<std::uint32_t>(hops_.size()));
    if (fresh) hops_.push_back({ports[i], row, count});
    row = known->second;
    count = 1;
  }
  return {row, count};
}

Way Paths::all_of(std::span<const PortIndex> ports, DeviceIndex from, DeviceIndex to) {
  // The hops of one device are stored side by side, so that a hop can refer to its successors by a range.
  std::vector<PortIndex> sorted(ports.begin(), ports.end());
  const auto by_origin = [&](PortIndex a, PortIndex b) {
    return std::pair(graph_.ports[a].from, a) < std::pair(graph_.ports[b].from, b);
  };
  std::sort(sorted.begin(), sorted.end(), by_origin);
  sorted.erase(std::unique(sorted.begin(), sorted.end()), sorted.end());
  const auto base = static_cast<std::uint32_t>(hops_.size());
  const auto range_from = [&](DeviceIndex device) -> Way {
    const auto begin = std::partition_point(sorted.begin(), sorted.end(),
                                            [&](PortIndex p) { return graph_.ports[p].from < device; });
    const auto end = std::partition_point(begin, sorted.end(),
                                          [&](PortIndex p) { return graph_.ports[p].from == device; });
    return {base + static_cast<std::uint32_t>(begin - sorted.begin()),
            static_cast<std::uint32_t>(end - begin)};
  };
  for (const PortIndex port : sorted) {
    const DeviceIndex next = graph_.ports[port].to;
    const Way way = next == to ? Way{} : range_from(next);
    hops_.push_back({port, way.first, way.count});
  }
  return range_from(from);
}

const std::vector<std::uint16_t>& Paths::distances_to(DeviceIndex to) {
  auto& distance = distance_[to];
  if (!distance.empty()) return distance;
  distance.assign(graph_.devices, kFar);
  distance[to] = 0;
  std::vector<DeviceIndex> frontier{to};
  for (std::size_t i = 0; i < frontier.size(); ++i) {
    const DeviceIndex device = frontier[i];
    for (std::uint32_t o = out_begin_[device]; o < out_begin_[device + 1]; ++o) {
      const DeviceIndex before = graph_.ports[out_[o]].to;  // cables have both directions
      if (distance[before] != kFar) continue;
      distance[before] = static_cast<std::uint16_t>(distance[device] + 1);
      frontier.push_back(before);
    }
  }
  return distance;
}

std::vector<PortIndex> Paths::all_shortest(DeviceIndex from, DeviceIndex to) {
  // A host with a single cable shares the distances of the device at its other end.
  const bool leaf = out_begin_[to + 1] - out_begin_[to] == 1;
  const DeviceIndex gate = leaf ? graph_.ports[out_[out_begin_[to]]].to : to;
  std::vector<PortIndex> ports;
  if (from == to || (from != gate && distances_to(gate)[from] == kFar)) return ports;
  std::vector<DeviceIndex> layer{from};
  while (layer.front() != gate) {
    const auto& distance = distances_to(gate);
    std::vector<DeviceIndex> next;
    for (const DeviceIndex device : layer) {
      for (std::uint32_t o = out_begin_[device]; o < out_begin_[device + 1]; ++o) {
        const DeviceIndex after = graph_.ports[out_[o]].to;
        if (distance[after] + 1 != distance[device]) continue;
        ports.push_back(out_[o]);
        next.push_back(after);
      }
    }
    std::sort(next.begin(), next.end());
    next.erase(std::unique(next.begin(), next.end()), next.end());
    layer = std::move(next);
  }
  if (leaf) ports.push_back(graph_.ports[out_[out_begin_[to]]].reverse);
  return ports;
}

std::vector<PortIndex> Paths::shortest(DeviceIndex from, DeviceIndex to, std::uint64_t hash) {
  const bool leaf = out_begin_[to + 1] - out_begin_[to] == 1;
  const DeviceIndex gate = leaf ? graph_.ports[out_[out_begin_[to]]].to : to;
  std::vector<PortIndex> ports;
  if (from == to || (from != gate && distances_to(gate)[from] == kFar)) return ports;
  std::vector<PortIndex> equal;
  for (DeviceIndex device = from; device != gate;) {
    const auto& distance = distances_to(gate);
    equal.clear();
    for (std::uint32_t o = out_begin_[device]; o < out_begin_[device + 1]; ++o) {
      if (distance[graph_.ports[out_[o]].to] + 1 == distance[device]) equal.push_back(out_[o]);
    }
    ports.push_back(equal[mix(hash ^ mix(device)) % equal.size()]);
    device = graph_.ports[ports.back()].to;
  }
  if (leaf) ports.push_back(graph_.ports[out_[out_begin_[to]]].reverse);
  return ports;
}
}  // namespace topsim::network::packet
