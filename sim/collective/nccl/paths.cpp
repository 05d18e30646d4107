// Shortest paths of a System: breadth first towards each end, faster links first, then NCCL's detours:
// through the socket where peers may not write to each other, through a neighbour GPU to a better NIC (PXN),
// through host memory where a NIC cannot reach GPU memory. Facts: NCCL 2.30 graph/paths.cc.
#include <algorithm>
#include <bit>
#include <limits>

#include "sim/base/mirror_bits.hpp"
#include "sim/collective/nccl/system.hpp"

namespace topsim::collective::nccl {
namespace {

// A NIC behind the socket that a GPU reaches by C2C is nearer than one across two PCIe root complexes.
PathType merge(PathType a, PathType b) {
  const auto [low, high] = std::minmax(a, b);
  return high == PathType::phb && low == PathType::c2c ? PathType::p2c : high;
}

PathType furthest_of(PeerLevel level) {
  switch (level) {
    case PeerLevel::nvl:
      return PathType::nvl;
    case PeerLevel::pix:
      return PathType::pix;
    case PeerLevel::pxb:
      return PathType::pxb;
    case PeerLevel::phb:
      return PathType::phb;
    case PeerLevel::sys:
      return PathType::sys;
  }
  return PathType::pxb;
}

// The paths with the highest bandwidth; of those, the nearest.
template <class PathOf>
std::vector<int> best(int count, const PathOf& path_of) {
  std::vector<int> result;
  float bandwidth = 0;
  PathType type = PathType::dis;
  for (int i = 0; i < count; ++i) {
    const Path& path = path_of(i);
    if (path.bandwidth > bandwidth || (path.bandwidth == bandwidth && path.type < type)) {
      bandwidth = path.bandwidth;
      type = path.type;
      result.clear();
    }
    if (path.bandwidth == bandwidth && path.type == type && path.type != PathType::dis) result.push_back(i);
  }
  return result;
}

}  // namespace

std::vector<Path> System::paths_to(int base) const {
  std::vector<Path> result(vertices_.size());
  Path& here = result[static_cast<std::size_t>(base)];
  here.bandwidth = std::numeric_limits<float>::max();
  here.type = PathType::loc;

  std::vector<int> front = {base};
  while (!front.empty()) {
    std::vector<int> next;
    for (const int v : front) {
      const VertexKind kind = vertex(v).kind;
      for (const int e : vertex(v).edges) {
        const Edge& outwards = edges_[static_cast<std::size_t>(e)];
        const VertexKind end = vertex(outwards.to).kind;
        const Path& path = result[static_cast<std::size_t>(v)];
        // A path may pass through a GPU only over NVLink, and only once.
        if (v != base && kind == VertexKind::gpu &&
            (outwards.kind != EdgeKind::nvl || end != VertexKind::gpu || path.hops() > 1))
          continue;
        Path& far = result[static_cast<std::size_t>(outwards.to)];
        const float bandwidth = std::min(path.bandwidth, outwards.bandwidth);
        const bool reached = far.bandwidth > 0;
        if ((reached && far.hops() <= path.hops()) || far.bandwidth >= bandwidth) continue;

        const auto back =
            std::find_if(vertex(outwards.to).edges.begin(), vertex(outwards.to).edges.end(), [&](int b) {
              const Edge& edge = edges_[static_cast<std::size_t>(b)];
              return edge.to == v && edge.kind == outwards.kind;
            });
        PathType type = outwards.kind == EdgeKind::net ? PathType::loc : static_cast<PathType>(outwards.kind);
        if (kind == VertexKind::pci && end == VertexKind::pci) type = PathType::pxb;
        if (outwards.kind == EdgeKind::pci && (kind == VertexKind::cpu || end == VertexKind::cpu))
          type = PathType::phb;
        if (kind == VertexKind::gpu && path.type == PathType::nvl && type == PathType::nvl &&
            path.hops() + 1 > 1)
          type = PathType::nvb;

        std::vector<int> edges = {*back};
        edges.insert(edges.end(), path.edges.begin(), path.edges.end());
        far = {std::move(edges), bandwidth, std::max(path.type, type)};
        if (std::find(next.begin(), next.end(), outwards.to) == next.end()) next.push_back(outwards.to);
      }
    }
    front = std::move(next);
  }
  return result;
}

Path System::joined(const Path& first, const Path& second) const {
  Path result = first;
  result.edges.insert(result.edges.end(), second.edges.begin(), second.edges.end());
  result.bandwidth = std::min(first.bandwidth, second.bandwidth);
  result.type = merge(first.type, second.type);
  return result;
}

// Paths from every device to each GPU, NIC and socket.
struct System::Reach {
  std::vector<std::vector<Path>> gpus, nets, cpus;
};

void System::find_paths(const Detours& allowed) {
  Reach to;
  for (const int g : gpus_) to.gpus.push_back(paths_to(g));
  for (const int n : nets_) to.nets.push_back(paths_to(n));
  for (const int c : cpus_) to.cpus.push_back(paths_to(c));
  take_shortest(to);
  find_sockets(to);
  leave_peer_to_peer(to, allowed.peers);
  join_nets_beyond_c2c(to);
  find_local_nets();
  proxy_.resize(gpu_net_.size());
  for (int g = 0; g < gpus(); ++g)
    for (int n = 0; n < nets(); ++n) proxy_[index(g, n, nets())] = g;
  if (allowed.pxn) use_proxies();
  leave_gpu_direct(to);
  find_local_nets();
}

void System::take_shortest(const Reach& to) {
  for (const int a : gpus_)
    for (std::size_t b = 0; b < gpus_.size(); ++b)
      gpu_gpu_.push_back(to.gpus[b][static_cast<std::size_t>(a)]);
  for (const int n : nets_)
    for (std::size_t g = 0; g < gpus_.size(); ++g)
      net_gpu_.push_back(to.gpus[g][static_cast<std::size_t>(n)]);
  for (const int g : gpus_)
    for (std::size_t n = 0; n < nets_.size(); ++n)
      gpu_net_.push_back(to.nets[n][static_cast<std::size_t>(g)]);
  if (nvswitch_ >= 0) {
    const std::vector<Path> to_switch = paths_to(nvswitch_);
    for (std::size_t g = 0; g < gpus_.size(); ++g) {
      gpu_switch_.push_back(to_switch[static_cast<std::size_t>(gpus_[g])]);
      switch_gpu_.push_back(to.gpus[g][static_cast<std::size_t>(nvswitch_)]);
    }
  }
}

// Finds the nearest socket of each GPU.
void System::find_sockets(const Reach& to) {
  for (const int g : gpus_) {
    int nearest = -1;
    for (std::size_t c = 0; c < cpus_.size(); ++c) {
      const int hops = to.cpus[c][static_cast<std::size_t>(g)].hops();
      if (hops > 0 && (nearest < 0 ||
                       hops < to.cpus[static_cast<std::size_t>(nearest)][static_cast<std::size_t>(g)].hops()))
        nearest = static_cast<int>(c);
    }
    cpu_of_gpu_.push_back(nearest < 0 ? -1 : cpus_[static_cast<std::size_t>(nearest)]);
    gpu_cpu_.push_back(nearest < 0 ? Path{}
                                   : to.cpus[static_cast<std::size_t>(nearest)][static_cast<std::size_t>(g)]);
  }
}

const Path& System::to_socket(const Reach& to, int from, int cpu) const {
  const auto c = static_cast<std::size_t>(std::find(cpus_.begin(), cpus_.end(), cpu) - cpus_.begin());
  return to.cpus[c][static_cast<std::size_t>(from)];
}

// GPUs that do not reach each other directly communicate through the socket near the destination.
void System::leave_peer_to_peer(const Reach& to, std::optional<PeerLevel> level) {
  const bool two_amd = cpu_vendor_ == CpuVendor::amd && gpus() <= 2;
  const PathType furthest = furthest_of(level.value_or(two_amd ? PeerLevel::sys : PeerLevel::pxb));
  for (int b = 0; b < gpus(); ++b) {
    const int cpu = cpu_of_gpu_[static_cast<std::size_t>(b)];
    if (cpu < 0) continue;
    for (int a = 0; a < gpus(); ++a) {
      Path& path = gpu_gpu_[index(a, b, gpus())];
      const bool allowed = path.type <= furthest &&
                           (path.type <= PathType::nvb || (gpu(a).peer_to_peer && gpu(b).peer_to_peer));
      through_host_memory_ |= a != b && !allowed;
      if (a != b && !allowed)
        path = joined(to_socket(to, gpus_[static_cast<std::size_t>(a)], cpu),
                      to.gpus[static_cast<std::size_t>(b)][static_cast<std::size_t>(cpu)]);
    }
  }
}

// A GPU's own NIC that is attached to the socket beyond the GPU's C2C link.
void System::join_nets_beyond_c2c(const Reach& to) {
  for (int g = 0; g < gpus(); ++g) {
    const int cpu = cpu_of_gpu_[static_cast<std::size_t>(g)];
    if (cpu < 0) continue;
    for (const int n : local_nets(g)) {
      const Path& net_cpu = to_socket(to, nets_[static_cast<std::size_t>(n)], cpu);
      if (merge(gpu_to_cpu(g).type, net_cpu.type) != PathType::p2c) continue;
      for (Path* path : {&gpu_net_[index(g, n, nets())], &net_gpu_[index(n, g, gpus())]})
        path->type = std::min(path->type, PathType::p2c);
    }
  }
}

// A NIC that cannot reach a GPU's memory goes through the socket near the GPU.
void System::leave_gpu_direct(const Reach& to) {
  const auto gpu_direct = [&](int g, int n) {
    return net(n).gpu_direct && gpu(g).gpu_direct && gpu_to_net(g, n).type <= PathType::p2c;
  };
  for (int n = 0; n < nets(); ++n)
    for (int g = 0; g < gpus(); ++g) {
      const int cpu = cpu_of_gpu_[static_cast<std::size_t>(g)];
      if (gpu_to_net(g, n).type >= PathType::phb || gpu_to_net(g, n).type == PathType::pxn || cpu < 0 ||
          gpu_direct(g, n))
        continue;
      gpu_net_[index(g, n, nets())] =
          joined(gpu_to_cpu(g), to.nets[static_cast<std::size_t>(n)][static_cast<std::size_t>(cpu)]);
      net_gpu_[index(n, g, gpus())] =
          joined(to_socket(to, nets_[static_cast<std::size_t>(n)], cpu),
                 to.gpus[static_cast<std::size_t>(g)][static_cast<std::size_t>(cpu)]);
    }
}

void System::use_proxies() {
  for (int n = 0; n < nets(); ++n) {
    const int peer = gpu_of_net(n);
    if (peer < 0) continue;
    const Path& last = gpu_to_net(peer, n);
    if (last.type > PathType::p2c || !net(n).gpu_direct || !gpu(peer).gpu_direct) continue;
    for (int g = 0; g < gpus(); ++g) {
      if (g == peer || gpu_to_gpu(g, peer).type > PathType::nvl || gpu_to_gpu(peer, g).type > PathType::nvl)
        continue;
      Path& own = gpu_net_[index(g, n, nets())];
      if (last.bandwidth <= own.bandwidth && own.type <= PathType::pxn) continue;
      own = joined(gpu_to_gpu(g, peer), last);
      own.type = PathType::pxn;
      proxy_[index(g, n, nets())] = peer;
    }
  }
}

std::vector<int> System::local_nets(int g) const {
  return best(nets(), [&](int n) -> const Path& { return gpu_to_net(g, n); });
}

std::vector<int> System::gpus_near(int n) const {
  return best(gpus(), [&](int g) -> const Path& { return net_to_gpu(n, g); });
}

// GPUs that share NICs start at different ones, so that they do not all pick the first.
int System::net_of_gpu(int g, int channel) const {
  const std::vector<int> near = local_nets(g);
  if (near.empty()) return -1;
  const int count = static_cast<int>(near.size());
  const int sharers = std::max(1, static_cast<int>(gpus_near(near.front()).size()));
  const int nets_per_gpu = (count + sharers - 1) / sharers;
  // NCCL 2.30 takes the number modulo `sharers`: if each group has one GPU per box, all groups would begin at
  // the first NIC. Earlier releases, on which published results ran, spread them; in a whole box both agree.
  int position = gpu(g).number % std::max(sharers, net(near.front()).accelerators);
  if (std::has_single_bit(static_cast<unsigned>(count))) position = mirror_bits(position, count);
  position += channel % nets_per_gpu;
  return near[static_cast<std::size_t>(position % count)];
}

std::vector<int> System::nets_of_gpu(int g) const {
  std::vector<int> result;
  for (int c = 0; c < kMaxChannels; ++c) {
    const int n = net_of_gpu(g, c);
    if (n < 0 || (!result.empty() && n == result.front())) break;
    result.push_back(n);
  }
  return result;
}

void System::find_local_nets() {
  gpu_of_net_.assign(static_cast<std::size_t>(nets()), -1);
  for (int n = 0; n < nets(); ++n) {
    const std::vector<int> near = gpus_near(n);
    for (int c = 0; c < kMaxChannels && gpu_of_net_[static_cast<std::size_t>(n)] < 0; ++c)
      for (const int g : near)
        if (net_of_gpu(g, c) == n) {
          gpu_of_net_[static_cast<std::size_t>(n)] = g;
          break;
        }
  }
}
}  // namespace topsim::collective::nccl
