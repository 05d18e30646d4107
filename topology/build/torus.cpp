// Accelerators joined to their neighbours without switches (TPU pods): coordinates are row-major over the
// whole cluster, last dimension fastest; a torus wraps around, a mesh does not. Nodes hold consecutive
// blocks.
#include <fmt/format.h>

#include <numeric>

#include "sim/base/error.hpp"
#include "topology/build/fabric.hpp"

namespace topsim::topology {

void build_torus(const FabricInput& in, TopologyBuilder& builder) {
  const std::vector<int>& dims = in.spec.dimensions;
  const auto per_node = static_cast<long long>(in.stamp.accelerators.size());
  const long long total = per_node * in.nodes;
  const long long product = std::accumulate(dims.begin(), dims.end(), 1LL, std::multiplies<>());
  if (dims.empty() || product != total)
    throw ConfigError({Problem{{},
                               "topology.fabric.dimensions",
                               fmt::format("the dimensions make {} accelerators; the topology has {}",
                                           dims.empty() ? 0 : product, total),
                               {},
                               "their product is nodes x accelerators a node",
                               {}}});
  const auto accelerator = [&](long long i) {
    return DeviceId(in.first_device[static_cast<std::size_t>(i / per_node)] +
                    in.stamp.accelerators[static_cast<std::size_t>(i % per_node)]);
  };
  const bool wraps = in.spec.kind == "torus";
  long long inner = total;
  for (const int size : dims) {
    inner /= size;
    for (long long i = 0; i < total && size > 1; ++i) {
      const long long at = i / inner % size;
      const bool last = at == size - 1;
      if (last && (!wraps || size == 2)) continue;
      Link link = bundle(in.link, in.link_type, 1);
      link.from = accelerator(i);
      link.to = accelerator(last ? i - at * inner : i + inner);
      link.latency = in.link.hop.value_or(in.link.latency);
      builder.cable(link);
    }
  }
}

}  // namespace topsim::topology
