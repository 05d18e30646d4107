// What NCCL's ranks agree on when they form a communicator: the graphs of the boxes reduced to what all of
// them can do, and how many channels collectives may use. Facts: NCCL 2.30 src/init.cc, graph/connect.cc,
// transport/nvls.cc.
#pragma once

#include <algorithm>
#include <bit>
#include <compare>
#include <cstdint>
#include <limits>
#include <memory>
#include <vector>

#include "sim/collective/nccl/graph.hpp"

namespace topsim::collective::nccl {

// The least of two figures that is known; 0: not known.
[[nodiscard]] inline double least_known(double a, double b) {
  return a == 0 ? b : b == 0 ? a : std::min(a, b);
}
// -1 where x is not positive.
[[nodiscard]] constexpr int log2_floor(std::int64_t x) {
  return x <= 0 ? -1 : static_cast<int>(std::bit_width(static_cast<std::uint64_t>(x))) - 1;
}
[[nodiscard]] constexpr int log2_ceil(std::int64_t x) {
  return log2_floor(x - 1) + 1;
}

// All graphs of one box for a set of its GPUs.
struct Box {
  System system;
  ChannelGraph ring, tree, nvls, collnet_chain, collnet_direct;
  bool mesh = false;  // its rings are mesh_rings()
};
// `sharp`: the fabric reduces and the job may use it.
[[nodiscard]] Box make_box(System system, bool nvlink_sharp, bool sharp);

// One pattern as the tuner sees it: the least that any box offers.
struct GraphSummary {
  Pattern pattern = Pattern::ring;
  int channels = 0;
  double bandwidth_intra = 0, bandwidth_inter = 0;
  PathType type_intra = PathType::loc, type_inter = PathType::loc;
  bool same_channels = true;
};

// The pieces in which channels move bytes (chunks.hpp).
struct BufferSizes {
  std::int64_t buffer = 0;      // of a channel, Simple
  std::int64_t nvls_chunk = 0;  // most of one under NVLS and NVLSTree
  std::int64_t nvls_tree_most = 0;
  friend auto operator<=>(const BufferSizes&, const BufferSizes&) = default;
  // 0: what `other` has.
  [[nodiscard]] BufferSizes otherwise(const BufferSizes& other) const {
    return {buffer > 0 ? buffer : other.buffer, nvls_chunk > 0 ? nvls_chunk : other.nvls_chunk,
            nvls_tree_most > 0 ? nvls_tree_most : other.nvls_tree_most};
  }
};
// NCCL's own: DEFAULT_BUFFSIZE, NCCL_NVLS_CHUNKSIZE and, from four boxes on, 64 KiB of NVLSTree.
[[nodiscard]] constexpr BufferSizes default_buffers(int nodes) {
  return {4 << 20, 128 << 10, nodes >= 4 ? 64 << 10 : std::numeric_limits<std::int64_t>::max()};
}

struct CommunicatorFacts {
  int nodes = 1, ranks = 1;
  int min_local_ranks = 1, max_local_ranks = 1;
  int min_capability = 0, max_capability = 0;
  bool amd_host = false, x86_host = true;
  bool nvswitch = false, nvls = false, collnet = false;
  bool mesh = false;  // one box without switch, all linked with all: mesh.hpp
  bool rccl = false;  // all boxes are such meshes of Infinity Fabric: AMD's library chooses (rccl.hpp)
  double infinity_fabric = 0;  // then GB/s of the slowest link, as the wire has them
  GraphSummary ring, tree, nvls_graph, collnet_chain, collnet_direct;
  int channels = 1;       // of collectives
  int own_channels = 1;   // of rings and trees alone, without more for reduction in the fabric
  int nvls_channels = 0;  // of NVLS collectives
  float min_net_bandwidth = 0;
  // The real rates of the wires, GB/s; 0: not known. NCCL does not use them.
  double nvlink_bandwidth = 0;       // all NVLinks of a GPU (without any its PCIe link, as NCCL counts it)
  double nvlink_share = 1;           // of NVLinks, relative to NCCL's figure
  double pcie_wire = 0;              // the least PCIe link of a GPU
  bool through_host_memory = false;  // somewhere a hop inside a box goes that way (PCIe)
  double tree_wire = 0;              // in a box: all trees, per direction, over the PCIe links of its GPUs
  double ring_wire = 0;  // all rings found out of a box, through the NICs that their channels name
  double nic_wire = 0;   // all NICs of a box that its members send over: the least box
  // The same by box, for what each sends on its own account (all-to-all): each distinct box once.
  struct Exit {
    int ranks = 0;
    double nics = 0;
  };
  std::vector<Exit> exits;
  int rings = 0;                                      // how many were found; as many run as trees were found
  double told_latency = 0, hop_latency = 0;           // of a network plugin, microseconds: net_plugins.hpp
  bool simple_only = false, rings_and_trees = false;  // the same
  BufferSizes buffers;
};
// `boxes`: each distinct box once. `sharp`: reduction in the fabric is available. `asked`: buffers that the
// job sets, 0 where it does not.
[[nodiscard]] CommunicatorFacts agree(const std::vector<const Box*>& boxes, int nodes, int ranks,
                                      int min_local, int max_local, bool sharp,
                                      const BufferSizes& asked = {});
}  // namespace topsim::collective::nccl
