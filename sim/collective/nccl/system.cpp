#include "sim/collective/nccl/system.hpp"

#include <algorithm>
#include <map>
#include <numeric>
#include <optional>
#include <set>

#include "topology/import/nccl_assumptions.hpp"

namespace topsim::collective::nccl {
namespace {

using topology::Device;
using topology::DeviceKind;
using topology::LinkKind;

CpuVendor vendor_of(std::string_view family) {
  if (family.starts_with("intel")) return CpuVendor::intel;
  if (family.starts_with("amd")) return CpuVendor::amd;
  if (family.starts_with("arm")) return CpuVendor::arm;
  if (family.starts_with("power")) return CpuVendor::power;
  return CpuVendor::unknown;
}

// Whether a NIC's link leads into the fabric. Omni-Path is "other", and so is the link between a NIC and the
// accelerator on the same die.
bool in_fabric(const topology::Topology& topology, const topology::Link& link) {
  return (link.kind == LinkKind::infiniband || link.kind == LinkKind::ethernet ||
          link.kind == LinkKind::other) &&
         topology.device(link.to).node != topology.device(link.from).node;
}

bool is_pci_vertex(DeviceKind kind) {
  return kind == DeviceKind::accelerator || kind == DeviceKind::pcie_switch || kind == DeviceKind::cpu ||
         kind == DeviceKind::nic;
}

// The bandwidth that NCCL assumes for one scale-up link.
float scale_up_bandwidth(const topology::Link& link, int compute_capability) {
  using namespace topology::nccl;
  if (compute_capability == 0) return static_cast<float>(link.capacity.value() / 1e9);
  const double links =
      std::max(1.0, std::round(link.line_rate.value() / nvlink_line_rate(compute_capability)));
  return nvlink_bandwidth(compute_capability) * static_cast<float>(links);
}

// How many accelerators of the NIC's box are nearest to it, by hops.
int accelerators_nearest(const topology::Topology& topology, DeviceId nic) {
  std::vector<DeviceId> front{nic}, seen{nic};
  while (!front.empty()) {
    std::vector<DeviceId> next;
    int found = 0;
    for (const DeviceId id : front)
      for (const LinkId l : topology.links_from(id)) {
        const DeviceId to = topology.link(l).to;
        const Device& d = topology.device(to);
        if (d.node != topology.device(nic).node || !is_pci_vertex(d.kind) ||
            std::find(seen.begin(), seen.end(), to) != seen.end())
          continue;
        found += d.kind == DeviceKind::accelerator ? 1 : 0;
        seen.push_back(to);
        next.push_back(to);
      }
    if (found > 0) return found;
    front = std::move(next);
  }
  return 0;
}

// What the GPUs' links lead to, box by box. Other GPUs of a box do not belong to the communicator.
std::vector<DeviceId> devices_around(const topology::Topology& topology, std::span<const std::uint32_t> nodes,
                                     std::span<const DeviceId> gpus, const System::Works& works) {
  const auto wanted = [&](const Device& d) {
    if (d.kind == DeviceKind::nvswitch) return true;  // also of a rack
    return std::find(nodes.begin(), nodes.end(), d.node) != nodes.end() &&
           (d.kind == DeviceKind::pcie_switch || d.kind == DeviceKind::cpu || d.kind == DeviceKind::nic);
  };
  std::set<DeviceId> seen(gpus.begin(), gpus.end());
  std::vector<DeviceId> around, front(gpus.begin(), gpus.end());
  while (!front.empty()) {
    std::vector<DeviceId> next;
    for (const DeviceId id : front)
      for (const LinkId l : topology.links_from(id)) {
        const DeviceId to = topology.link(l).to;
        if (!seen.contains(to) && works(l) && wanted(topology.device(to))) {
          seen.insert(to);
          next.push_back(to);
        }
      }
    around.insert(around.end(), next.begin(), next.end());
    front = std::move(next);
  }
  std::sort(around.begin(), around.end(), [&](DeviceId a, DeviceId b) {
    return std::tuple(topology.device(a).node, a) < std::tuple(topology.device(b).node, b);
  });
  return around;
}

std::optional<DeviceId> switch_above(const topology::Topology& topology, DeviceId nic) {
  for (const LinkId l : topology.links_from(nic))
    if (const DeviceId to = topology.link(l).to; topology.device(to).kind == DeviceKind::pcie_switch)
      return to;
  return std::nullopt;
}

}  // namespace

std::string_view name_of(PathType type) {
  constexpr std::string_view kNames[] = {"LOC", "NVL", "NVB", "C2C", "PIX", "PXB",
                                         "P2C", "PXN", "PHB", "SYS", "NET", "DIS"};
  return kNames[static_cast<std::size_t>(type)];
}

System::System(const topology::Topology& topology, std::span<const std::uint32_t> nodes,
               std::span<const DeviceId> gpus, bool inter, const Detours& allowed, const Works& works)
    : inter_(inter) {
  read(topology, nodes, gpus, works);
  order_edges();
  if (searchable()) find_paths(allowed);
  measure();
}

int System::add(Vertex vertex) {
  vertices_.push_back(std::move(vertex));
  return static_cast<int>(vertices_.size()) - 1;
}

void System::connect(int a, int b, EdgeKind kind, float bandwidth) {
  for (const auto& [from, to] : {std::pair(a, b), std::pair(b, a)}) {
    auto& leaving = vertices_[static_cast<std::size_t>(from)].edges;
    const auto parallel = std::find_if(leaving.begin(), leaving.end(), [&, end = to](int e) {
      return edges_[static_cast<std::size_t>(e)].to == end &&
             edges_[static_cast<std::size_t>(e)].kind == kind;
    });
    if (parallel != leaving.end()) {
      edges_[static_cast<std::size_t>(*parallel)].bandwidth += bandwidth;
      continue;
    }
    leaving.push_back(static_cast<int>(edges_.size()));
    edges_.push_back({from, to, kind, bandwidth});
  }
}

void System::read(const topology::Topology& topology, std::span<const std::uint32_t> nodes,
                  std::span<const DeviceId> gpus, const Works& works) {
  std::map<DeviceId, int> vertex_of;
  const auto node_of = [&](DeviceId id) {
    const auto at = std::find(nodes.begin(), nodes.end(), topology.device(id).node);
    return static_cast<std::uint32_t>(at - nodes.begin());
  };
  for (const DeviceId id : gpus) {
    const topology::ModelFacts facts = topology.facts_of(id);
    gpus_.push_back(vertex_of[id] = add({.kind = VertexKind::gpu,
                                         .node = node_of(id),
                                         .compute_capability = facts.compute_capability,
                                         .gpu_direct = facts.gpu_direct,
                                         .peer_to_peer = topology.peer_to_peer,
                                         .number = static_cast<int>(topology.device(id).local)}));
  }
  const std::vector<DeviceId> around = devices_around(topology, nodes, gpus, works);
  std::map<DeviceId, int> ports_below;  // PCIe switches
  for (const DeviceId id : around) vertex_of[id] = read_device(topology, id, node_of(id), ports_below, works);
  const auto read_links = [&](DeviceId id) {
    for (const LinkId l : topology.links_from(id)) {
      const DeviceId to = topology.link(l).to;
      const auto end = vertex_of.find(to);
      if (end == vertex_of.end() || to < id || !works(l)) continue;  // each cable once
      read_link(topology, l, vertex_of[id], end->second);
    }
  };
  for (const DeviceId id : gpus) read_links(id);
  for (const DeviceId id : around) read_links(id);
  if (!gpus_.empty()) {
    min_capability_ = max_capability_ = gpu(0).compute_capability;
    for (int g = 1; g < this->gpus(); ++g) {
      min_capability_ = std::min(min_capability_, gpu(g).compute_capability);
      max_capability_ = std::max(max_capability_, gpu(g).compute_capability);
    }
  }
}

int System::read_device(const topology::Topology& topology, DeviceId id, std::uint32_t node,
                        std::map<DeviceId, int>& ports_below, const Works& works) {
  const Device& d = topology.device(id);
  if (d.kind == DeviceKind::nvswitch) {
    // NCCL models one switch, however many chips there are.
    if (nvswitch_ < 0) nvswitch_ = add({.kind = VertexKind::nvswitch});
    return nvswitch_;
  }
  if (d.kind == DeviceKind::cpu) {
    const CpuVendor vendor = vendor_of(topology.facts_of(id).cpu_family);
    cpus_.push_back(add({.kind = VertexKind::cpu, .vendor = vendor}));
    if (cpu_vendor_ == CpuVendor::unknown) cpu_vendor_ = vendor;
    return cpus_.back();
  }
  if (d.kind == DeviceKind::pcie_switch) return add({.kind = VertexKind::pci});
  const int vertex = add({.kind = VertexKind::nic});
  const NetPlugin* plugin = net_plugin_of(topology.model_of(id));
  if (plugin != nullptr) plugins_.push_back(*plugin);
  read_port(topology, id, vertex, node, plugin != nullptr && plugin->joins_nics, ports_below, works);
  return vertex;
}

void System::read_link(const topology::Topology& topology, LinkId id, int a, int b) {
  const topology::Link& link = topology.link(id);
  const DeviceKind from = topology.device(link.from).kind, to = topology.device(link.to).kind;
  const bool scale_up = (from == DeviceKind::accelerator || from == DeviceKind::nvswitch) &&
                        (to == DeviceKind::accelerator || to == DeviceKind::nvswitch);
  if (a == b || !(scale_up || (is_pci_vertex(from) && is_pci_vertex(to)))) return;
  if (scale_up) {
    const int capability = std::max(vertices_[static_cast<std::size_t>(a)].compute_capability,
                                    vertices_[static_cast<std::size_t>(b)].compute_capability);
    const float assumed = scale_up_bandwidth(link, capability);
    connect(a, b, EdgeKind::nvl, assumed);
    nvlink_wire_ += link.capacity.value() / 1e9;
    nvlink_assumed_ += static_cast<double>(assumed);
    if (link.kind == LinkKind::infinity_fabric)
      infinity_fabric_ = std::max(infinity_fabric_, link.line_rate.value() / 1e9 / link.count);
  } else if (from == DeviceKind::cpu && to == DeviceKind::cpu) {
    const float assumed = topology::nccl::socket_bandwidth(topology.facts_of(link.from).cpu_family);
    if (const auto& leaving = vertices_[static_cast<std::size_t>(a)].edges;
        std::any_of(leaving.begin(), leaving.end(),
                    [&](int e) { return edges_[static_cast<std::size_t>(e)].to == b; }))
      return;  // NCCL has one figure per pair of sockets, for any number of links
    connect(a, b, EdgeKind::sys, assumed > 0 ? assumed : static_cast<float>(link.capacity.value() / 1e9));
  } else if (link.kind == LinkKind::c2c) {
    connect(a, b, EdgeKind::c2c, static_cast<float>(link.line_rate.value() / 1e9));
  } else if (link.kind == LinkKind::other && (from == DeviceKind::nic || to == DeviceKind::nic)) {
    connect(a, b, EdgeKind::pci, topology::nccl::kLocal);  // on one die: no slot between them
  } else {
    for (const int v : {a, b}) vertices_[static_cast<std::size_t>(v)].wire = link.capacity.value() / 1e9;
    connect(a, b, EdgeKind::pci, topology::nccl::pcie_bandwidth(link.line_rate));
  }
}

void System::read_port(const topology::Topology& topology, DeviceId nic, int vertex, std::uint32_t node,
                       bool joins_nics, std::map<DeviceId, int>& below, const Works& works) {
  double port_rate = 0, wire = 0;
  bool tcp = false;  // TCP sockets use only host memory (net_socket.cc, ptrSupport)
  for (const LinkId l : topology.links_from(nic))
    if (in_fabric(topology, topology.link(l)) && works(l)) {
      tcp = tcp || topology.type_of(l).transport == "tcp";
      port_rate += topology.link(l).line_rate.value();
      wire += topology.link(l).capacity.value();
    }
  if (port_rate == 0) return;
  Vertex port{.kind = VertexKind::net,
              .node = node,
              .gpu_direct = !tcp && topology.facts_of(nic).gpu_direct,
              .number = static_cast<int>(topology.device(nic).local),
              .bandwidth = static_cast<float>(port_rate / 1e9),
              .in_network_reduction = topology.sharp,
              .accelerators = accelerators_nearest(topology, nic),
              .wire = wire / 1e9};
  const float bandwidth = port.bandwidth;
  if (const auto above = joins_nics ? switch_above(topology, nic) : std::nullopt) {
    const auto [known, first] = below.try_emplace(*above, static_cast<int>(vertices_.size()));
    if (!first) {
      Vertex& joined = vertices_[static_cast<std::size_t>(known->second)];
      joined.bandwidth += bandwidth;
      joined.wire += port.wire;
      ++joined.rails;
      connect(edges_[static_cast<std::size_t>(joined.edges.front())].to, known->second, EdgeKind::net,
              bandwidth);
      return;
    }
  }
  nets_.push_back(add(std::move(port)));
  connect(vertex, nets_.back(), EdgeKind::net, bandwidth);
}

void System::order_edges() {
  // The distance to the nearest socket shows which PCIe link of a device leads up.
  constexpr int kFar = 1 << 20;
  std::vector<int> height(vertices_.size(), kFar), front = cpus_;
  for (const int c : cpus_) height[static_cast<std::size_t>(c)] = 0;
  while (!front.empty()) {
    std::vector<int> next;
    for (const int v : front)
      for (const int e : vertices_[static_cast<std::size_t>(v)].edges) {
        const Edge& edge = edges_[static_cast<std::size_t>(e)];
        if (edge.kind != EdgeKind::pci || height[static_cast<std::size_t>(edge.to)] != kFar) continue;
        height[static_cast<std::size_t>(edge.to)] = height[static_cast<std::size_t>(v)] + 1;
        next.push_back(edge.to);
      }
    front = std::move(next);
  }
  for (std::size_t v = 0; v < vertices_.size(); ++v)
    std::stable_sort(vertices_[v].edges.begin(), vertices_[v].edges.end(), [&](int a, int b) {
      const Edge &x = edges_[static_cast<std::size_t>(a)], &y = edges_[static_cast<std::size_t>(b)];
      const bool x_up = x.kind == EdgeKind::pci && height[static_cast<std::size_t>(x.to)] < height[v];
      const bool y_up = y.kind == EdgeKind::pci && height[static_cast<std::size_t>(y.to)] < height[v];
      return x_up != y_up ? y_up : x.bandwidth > y.bandwidth;
    });
}

void System::measure() {
  if (!inter_ && gpus() == 1) {
    max_bandwidth_ = total_bandwidth_ = topology::nccl::kLocal;
    return;
  }
  for (int g = 0; g < gpus(); ++g) {
    for (int other = 0; searchable() && other < (inter_ ? nets() : gpus()); ++other) {
      const Path& path = inter_ ? gpu_to_net(g, other) : gpu_to_gpu(g, other);
      if (path.hops() > 0) max_bandwidth_ = std::max(max_bandwidth_, path.bandwidth);
    }
    float scale_up = 0, pci = 0;
    for (const int e : gpu(g).edges) {
      const Edge& edge = edges_[static_cast<std::size_t>(e)];
      if (edge.kind == EdgeKind::nvl) scale_up += edge.bandwidth;
      if (edge.kind == EdgeKind::pci) pci = edge.bandwidth;
    }
    total_bandwidth_ = std::max({total_bandwidth_, scale_up, pci});
  }
}

bool System::split_nvlink() const {
  std::vector<int> island(static_cast<std::size_t>(gpus())), size(static_cast<std::size_t>(gpus()));
  std::iota(island.begin(), island.end(), 0);
  for (int a = 0; a < gpus(); ++a)
    for (int b = a + 1; b < gpus(); ++b)
      if (gpu_to_gpu(a, b).type == PathType::nvl)
        island[static_cast<std::size_t>(b)] = island[static_cast<std::size_t>(a)];
  for (const int i : island) ++size[static_cast<std::size_t>(i)];
  return std::count_if(size.begin(), size.end(), [](int n) { return n > 1; }) == 2;
}

bool System::scale_up() const {
  for (int g = 0; g < gpus(); ++g)
    if (std::none_of(gpu(g).edges.begin(), gpu(g).edges.end(),
                     [&](int e) { return edges_[static_cast<std::size_t>(e)].kind == EdgeKind::nvl; }))
      return false;
  return true;
}

float System::pci_bandwidth(int g) const {
  for (const int e : gpu(g).edges)
    if (edges_[static_cast<std::size_t>(e)].kind == EdgeKind::pci)
      return edges_[static_cast<std::size_t>(e)].bandwidth;
  return -1;
}
}  // namespace topsim::collective::nccl
