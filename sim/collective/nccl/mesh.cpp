#include "sim/collective/nccl/mesh.hpp"

#include <algorithm>
#include <utility>

namespace topsim::collective::nccl {
namespace {

// The bandwidth of the link between any two GPUs; 0: not a full mesh of equal links.
float link_of(const System& system) {
  float link = 0;
  for (int a = 0; a < system.gpus(); ++a) {
    int peers = 0;
    for (const int e : system.gpu(a).edges) {
      const Edge& edge = system.edges()[static_cast<std::size_t>(e)];
      if (edge.kind != EdgeKind::nvl) continue;
      if (system.vertex(edge.to).kind != VertexKind::gpu) return 0;
      if (link != 0 && edge.bandwidth != link) return 0;
      link = edge.bandwidth;
      ++peers;
    }
    if (peers != system.gpus() - 1) return 0;
  }
  return link;
}

// Hamiltonian cycles over n GPUs that use every directed edge `times` times: (n - 1) x times cycles. For
// times = 1 and n of 4 and 6 there are none (Tillson 1980). Every cycle's first step goes to the lowest GPU
// left, which keeps the search short: 125 visits for 8.
class Cycles {
 public:
  Cycles(int n, int times) : n_(n), left_(static_cast<std::size_t>(n * n), times) {}
  std::vector<std::vector<int>> find() {
    if (!next_cycle()) cycles_.clear();
    return cycles_;
  }

 private:
  int& left(int a, int b) { return left_[static_cast<std::size_t>(a * n_ + b)]; }

  bool next_cycle() {
    for (int first = 1; first < n_; ++first) {
      if (left(0, first) == 0) continue;
      --left(0, first);
      std::vector<int> path = {0, first};
      if (extend(path)) return true;
      ++left(0, first);
      return false;
    }
    return true;  // every edge is used up
  }

  bool extend(std::vector<int>& path) {
    constexpr int kBudget = 1 << 18;
    if (++visits_ > kBudget) return false;
    const int end = path.back();
    if (static_cast<int>(path.size()) == n_) {
      if (left(end, 0) == 0) return false;
      --left(end, 0);
      cycles_.push_back(path);
      if (next_cycle()) return true;
      cycles_.pop_back();
      ++left(end, 0);
      return false;
    }
    for (int to = 1; to < n_; ++to) {
      if (left(end, to) == 0 || std::find(path.begin(), path.end(), to) != path.end()) continue;
      --left(end, to);
      path.push_back(to);
      if (extend(path)) return true;
      path.pop_back();
      ++left(end, to);
    }
    return false;
  }

  int n_, visits_ = 0;
  std::vector<int> left_;
  std::vector<std::vector<int>> cycles_;
};

// A zigzag path from `first` over all n: first, +1, -1, +2, ... For even n the n such paths share no edge.
std::vector<int> zigzag(int first, int n) {
  std::vector<int> path;
  for (int i = 0; i < n; ++i) {
    const int step = (i + 1) / 2;
    path.push_back(((i % 2 == 1 ? first + step : first - step) + n) % n);
  }
  return path;
}

}  // namespace

std::optional<ChannelGraph> mesh_rings(const System& system) {
  constexpr int kMost = 16;
  const int n = system.gpus();
  if (n < 3 || n > kMost || system.min_compute_capability() != 0 || system.has_nvswitch())
    return std::nullopt;
  const float link = link_of(system);
  if (link == 0) return std::nullopt;
  ChannelGraph graph;
  graph.pattern = Pattern::ring;
  graph.type_intra = PathType::nvl;
  graph.same_channels = false;
  if (!system.inter()) {
    for (int times = 1; times <= 2 && graph.channels.empty(); ++times) {
      for (std::vector<int>& cycle : Cycles(n, times).find()) graph.channels.push_back({std::move(cycle)});
      graph.bandwidth_intra = graph.bandwidth_inter = link / static_cast<float>(times);
    }
  } else {
    float slowest = 0;
    std::size_t most = kMost;
    std::vector<std::vector<int>> paths;
    std::vector<std::pair<std::vector<int>, std::vector<int>>> nets;  // to enter, to leave by
    // The path that starts n/2 further on is the reverse path: the two together stay on two rails, swapped on
    // every other box.
    if (n % 2 == 0) graph.cross_nic = 2;
    for (int i = 0; i < n; ++i) {
      const int g = n % 2 == 0 ? i / 2 + i % 2 * (n / 2) : i;
      const std::vector<int> path = zigzag(g, n);
      nets.push_back({system.nets_of_gpu(g), system.nets_of_gpu(path.back())});
      paths.push_back(path);
      most = std::min({most, nets.back().first.size(), nets.back().second.size()});
    }
    // Grouped by the NICs of an accelerator, so that a pair of paths has consecutive numbers.
    for (std::size_t port = 0; port < most; ++port)
      for (std::size_t i = 0; i < paths.size(); ++i) {
        const int enter = nets[i].first[port], leave = nets[i].second[port];
        graph.channels.push_back({paths[i], enter, leave});
        const float nic = std::min(system.net(enter).bandwidth, system.net(leave).bandwidth);
        if (slowest == 0 || nic < slowest) slowest = nic;
        graph.type_inter = std::max(graph.type_inter, system.net_to_gpu(enter, paths[i].front()).type);
      }
    graph.bandwidth_inter = slowest;
    graph.bandwidth_intra = std::min(slowest, link);
  }
  if (graph.channels.empty()) return std::nullopt;
  return graph;
}
}  // namespace topsim::collective::nccl
