// One box as NCCL sees it: the graph its topology detection would draw, and the path it would take between
// any two GPUs, NICs, CPUs and the NVSwitch. Bandwidths here are NCCL's assumptions (GB/s per direction);
// they serve its choices only. The real capacity of a wire is in topology::Link.
//
// Sources: NCCL 2.30 graph/topo.h (constants), graph/topo.cc (graph), graph/paths.cc (paths).
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "sim/collective/collective.hpp"
#include "sim/collective/nccl/net_plugins.hpp"
#include "topology/topology.hpp"

namespace topsim::collective::nccl {

inline constexpr int kMaxChannels = 64;  // of a communicator: MAXCHANNELS, NCCL 2.30 src/include/device.h
// GPUs of a box: "up to 576" of NCCL_TOPO_MAX_NODES, 640 devices of a kind, NCCL 2.30 src/include/graph.h
// (256 in earlier releases). With more NCCL does not start (graph/topo.cc, ncclTopoCreateNode).
inline constexpr int kMaxGpus = 576;

// Better to worse; the numbers are NCCL's own (they appear in its logs and graph files).
enum class PathType : std::uint8_t { loc, nvl, nvb, c2c, pix, pxb, p2c, pxn, phb, sys, net, dis };
[[nodiscard]] std::string_view name_of(PathType type);

enum class VertexKind : std::uint8_t { gpu, nvswitch, pci, cpu, nic, net };
enum class CpuVendor : std::uint8_t { unknown, intel, amd, arm, power };

struct Vertex {
  VertexKind kind = VertexKind::gpu;
  std::uint32_t node = 0;                 // GPUs, network ports: which of the box's nodes holds it
  int compute_capability = 0;             // GPUs; 0 unknown
  bool gpu_direct = true;                 // GPUs and network ports
  bool peer_to_peer = true;               // GPUs
  CpuVendor vendor = CpuVendor::unknown;  // CPUs
  int number = 0;                         // GPUs: local number in the box (NVML's); ports: number of the NIC
  float bandwidth = 0;                    // network ports
  bool in_network_reduction = false;      // network ports
  int rails = 1;                          // network ports: NICs that are one port
  int accelerators = 0;                   // network ports: of the box, nearest to it, members or not
  // GPUs and NICs: what their PCIe link really carries; network ports: their cables. No choice depends on it.
  double wire = 0;
  std::vector<int> edges{};  // leaving, best first: NVLink, PCIe down, PCIe up, socket link
};

enum class EdgeKind : std::uint8_t { nvl = 1, c2c = 3, pci = 4, sys = 9, net = 10 };

struct Edge {
  int from = 0, to = 0;
  EdgeKind kind = EdgeKind::pci;
  float bandwidth = 0;
};

struct Path {
  std::vector<int> edges;
  float bandwidth = 0;
  PathType type = PathType::dis;
  [[nodiscard]] int hops() const { return static_cast<int>(edges.size()); }
};

// What detours a job's settings allow: NCCL_PXN_DISABLE, NCCL_P2P_LEVEL (unset: NCCL's own).
struct Detours {
  bool pxn = true;
  std::optional<PeerLevel> peers = {};
};

// The part of one box that a communicator uses.
class System {
 public:
  // `gpus`: local accelerators of the communicator, in rank order. `inter`: the communicator spans several
  // boxes, so that NICs take part. `nodes` are the topology nodes that make up the box (one, unless NVLink
  // spans nodes). Ports that do not work are not seen: NCCL ignores those that are not active
  // (transport/net_ib/init.cc).
  using Works = std::function<bool(LinkId)>;
  System(const topology::Topology& topology, std::span<const std::uint32_t> nodes,
         std::span<const DeviceId> gpus, bool inter, const Detours& allowed, const Works& works = all_work);
  static bool all_work(LinkId) { return true; }

  [[nodiscard]] int gpus() const { return static_cast<int>(gpus_.size()); }
  [[nodiscard]] int nets() const { return static_cast<int>(nets_.size()); }
  [[nodiscard]] bool has_nvswitch() const { return nvswitch_ >= 0; }
  [[nodiscard]] bool inter() const { return inter_; }
  // Beyond, no paths and no search: more than NCCL takes, or tori of hundreds, which it does not know.
  [[nodiscard]] bool searchable() const { return gpus() <= (has_nvswitch() ? kMaxGpus : 256); }
  [[nodiscard]] const Vertex& gpu(int i) const { return vertices_[at(gpus_, i)]; }
  [[nodiscard]] const Vertex& net(int i) const { return vertices_[at(nets_, i)]; }
  [[nodiscard]] const Vertex& vertex(int i) const { return vertices_[static_cast<std::size_t>(i)]; }
  [[nodiscard]] const std::vector<Edge>& edges() const { return edges_; }
  [[nodiscard]] CpuVendor cpu_vendor() const { return cpu_vendor_; }
  // Of the NICs that have one. NCCL loads them at its start, also for a job that needs no network.
  [[nodiscard]] const std::vector<NetPlugin>& plugins() const { return plugins_; }
  // The speed of an Infinity Fabric link between the GPUs (RCCL's boxes), GB/s; 0: none.
  [[nodiscard]] double infinity_fabric() const { return infinity_fabric_; }
  // What the NVLinks carry, relative to NCCL's figure for them; at least 1, because a slower wire is a limit
  // by itself.
  [[nodiscard]] double nvlink_share() const {
    return nvlink_assumed_ > 0 ? std::max(1.0, nvlink_wire_ / nvlink_assumed_) : 1;
  }
  // Some pair of GPUs uses NCCL's shared-memory transport (through host memory), not being able to write
  // directly.
  [[nodiscard]] bool through_host_memory() const { return through_host_memory_; }
  [[nodiscard]] int min_compute_capability() const { return min_capability_; }
  [[nodiscard]] int max_compute_capability() const { return max_capability_; }

  [[nodiscard]] const Path& gpu_to_gpu(int a, int b) const { return gpu_gpu_[index(a, b, gpus())]; }
  [[nodiscard]] const Path& gpu_to_net(int g, int n) const { return gpu_net_[index(g, n, nets())]; }
  [[nodiscard]] const Path& net_to_gpu(int n, int g) const { return net_gpu_[index(n, g, gpus())]; }
  [[nodiscard]] const Path& gpu_to_nvswitch(int g) const { return gpu_switch_[static_cast<std::size_t>(g)]; }
  [[nodiscard]] const Path& nvswitch_to_gpu(int g) const { return switch_gpu_[static_cast<std::size_t>(g)]; }
  [[nodiscard]] const Path& gpu_to_cpu(int g) const { return gpu_cpu_[static_cast<std::size_t>(g)]; }

  // GPU that serves a NIC (its traffic enters and leaves there), -1: none.
  [[nodiscard]] int gpu_of_net(int n) const { return gpu_of_net_[static_cast<std::size_t>(n)]; }
  // GPUs with the best path from a NIC.
  [[nodiscard]] std::vector<int> gpus_near(int n) const;
  // NIC that a GPU prefers for a channel.
  [[nodiscard]] int net_of_gpu(int g, int channel) const;
  // NICs of a GPU in the order in which channels take them.
  [[nodiscard]] std::vector<int> nets_of_gpu(int g) const;
  // GPU through which GPU `g` reaches NIC `n` under PXN; `g` itself where it goes directly.
  [[nodiscard]] int proxy(int g, int n) const { return proxy_[index(g, n, nets())]; }

  // Per channel: the fastest path that a channel could use, and per GPU: all it can send.
  [[nodiscard]] float max_bandwidth() const { return max_bandwidth_; }
  [[nodiscard]] float total_bandwidth() const { return total_bandwidth_; }
  // GPUs form two NVLink islands joined only by something slower.
  [[nodiscard]] bool split_nvlink() const;
  [[nodiscard]] bool scale_up() const;  // every GPU has a scale-up link
  // PCIe bandwidth of a GPU, -1 without PCIe.
  [[nodiscard]] float pci_bandwidth(int g) const;

 private:
  static std::size_t at(const std::vector<int>& list, int i) {
    return static_cast<std::size_t>(list[static_cast<std::size_t>(i)]);
  }
  static std::size_t index(int row, int column, int columns) {
    return static_cast<std::size_t>(row) * static_cast<std::size_t>(columns) +
           static_cast<std::size_t>(column);
  }
  int add(Vertex vertex);
  void connect(int a, int b, EdgeKind kind, float bandwidth);  // both ways; parallel links add up
  void read(const topology::Topology& topology, std::span<const std::uint32_t> nodes,
            std::span<const DeviceId> gpus, const Works& works);
  // Any but a GPU; returns its vertex.
  int read_device(const topology::Topology& topology, DeviceId id, std::uint32_t node,
                  std::map<DeviceId, int>& ports_below, const Works& works);
  void read_link(const topology::Topology& topology, LinkId id, int a, int b);  // of vertices a and b
  // A port of its NIC or, where a plugin joins the NICs below a PCIe switch, a rail more of `below`'s.
  void read_port(const topology::Topology& topology, DeviceId nic, int vertex, std::uint32_t node,
                 bool joins_nics, std::map<DeviceId, int>& below, const Works& works);
  void order_edges();
  [[nodiscard]] std::vector<Path> paths_to(int base) const;  // from every vertex
  [[nodiscard]] Path joined(const Path& first, const Path& second) const;
  struct Reach;
  void find_paths(const Detours& allowed);
  void take_shortest(const Reach& to);
  void find_sockets(const Reach& to);
  void leave_peer_to_peer(const Reach& to, std::optional<PeerLevel> level);
  void join_nets_beyond_c2c(const Reach& to);
  void leave_gpu_direct(const Reach& to);
  [[nodiscard]] const Path& to_socket(const Reach& to, int from, int cpu) const;
  void find_local_nets();
  void use_proxies();
  [[nodiscard]] std::vector<int> local_nets(int g) const;
  void measure();

  std::vector<Vertex> vertices_;
  std::vector<Edge> edges_;
  std::vector<int> gpus_, nets_, cpus_;
  std::vector<NetPlugin> plugins_;
  int nvswitch_ = -1;
  bool inter_ = false, through_host_memory_ = false;
  double infinity_fabric_ = 0;
  double nvlink_wire_ = 0, nvlink_assumed_ = 0;  // of all links
  CpuVendor cpu_vendor_ = CpuVendor::unknown;
  int min_capability_ = 0, max_capability_ = 0;
  std::vector<Path> gpu_gpu_, gpu_net_, net_gpu_, gpu_switch_, switch_gpu_, gpu_cpu_;
  std::vector<int> cpu_of_gpu_, gpu_of_net_, proxy_;
  float max_bandwidth_ = 0, total_bandwidth_ = 0;
};
}  // namespace topsim::collective::nccl
