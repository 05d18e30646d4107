// How network plugins present their NICs, unlike NCCL's own InfiniBand transport. These figures belong to a
// software release, which knows its NICs by name, so they are code beside NCCL's and not part of the
// catalogue. Source: AWS OFI NCCL, src/platform-aws.cpp at 45197df, src/nccl_ofi_topo.cpp, and for what a
// protocol needs src/platform-aws.c of 2023 (force_proto_simple) and its issue 76.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "sim/base/microseconds.hpp"

namespace topsim::collective::nccl {

struct NetPlugin {
  std::string_view nics;            // model
  Microseconds told{};              // latency that the tuner is told, on top of its own
  Microseconds hop{};               // what a hop takes beyond one of InfiniBand
  bool joins_nics = false;          // those of one accelerator are rails of one port
  bool simple_only = false;         // NCCL_PROTO=Simple, for every communicator
  bool rings_and_trees = false;     // NCCL_ALGO=Ring,Tree, the same
  std::int64_t buffer = 0;          // NCCL_BUFFSIZE; 0: NCCL's
  std::int64_t nvls_chunk = 0;      // NCCL_NVLS_CHUNKSIZE; the same
  std::int64_t nvls_tree_most = 0;  // NCCL_NVLSTREE_MAX_CHUNKSIZE; the same
};

// AWS: the figure is for the tuner. 75 us "work better" for its choices on P5 (the plugin's comment), and P4d
// has always had the same, P3dn twice as much, and machines that the table does not have take P5's. No hop of
// any is published; all are assumed to be P5en's, 35 us. LL and LL128 do not tolerate bytes that arrive out
// of order. Buffers and chunks are set where the job has not (platform table; pull requests 332 and 372).
// P4d's buffers are, too, but a sweep of P4de says that its trees hand on less at a time: with pieces of 1
// MiB 16 MiB would read 48 % too slow, not 3 too fast. Google: what its environment profile for A3 Mega sets
// (nccl-env-profile.sh, as public job scripts repeat it), and for A3 Ultra and A4 (set_nccl_env.sh, as
// repeated in PerfKitBenchmarker 2391eb0, perfkitbenchmarker/data/nvidia_hpl/a4.dockerfile).

// The plugin's SENDRECV protocol, whose bytes may arrive out of order: P3dn, P4d and G5 by the table, G4dn,
// G6 and G6e because none of their GPUs has several NICs of its own (nccl_ofi_net.cpp).
[[nodiscard]] constexpr NetPlugin efa_by_sends(std::string_view nics, Microseconds told) {
  return {.nics = nics, .told = told, .hop = Microseconds(35), .simple_only = true};
}
[[nodiscard]] constexpr NetPlugin efa_from_p5(std::string_view nics, Microseconds told) {
  return {.nics = nics,
          .told = told,
          .hop = Microseconds(35),
          .joins_nics = true,
          .buffer = 8 << 20,
          .nvls_chunk = 512 << 10,
          .nvls_tree_most = 512 << 10};
}
inline constexpr std::array kNetPlugins = {
    efa_by_sends("efa-v1", Microseconds(75)),
    efa_by_sends("efa-v1-p3dn", Microseconds(150)),
    efa_by_sends("efa-v2-g6", Microseconds(75)),
    efa_from_p5("efa-v2", Microseconds(75)),
    efa_from_p5("efa-v3", Microseconds(35)),
    efa_from_p5("efa-v4-b200", Microseconds(35)),
    efa_from_p5("efa-v4-b300", Microseconds(35)),
    NetPlugin{.nics = "gcp-ipu-200", .simple_only = true, .rings_and_trees = true, .buffer = 8 << 20},
    NetPlugin{.nics = "gcp-cx7", .nvls_chunk = 512 << 10}};

// Null: its NICs need none.
[[nodiscard]] constexpr const NetPlugin* net_plugin_of(std::string_view nic) {
  for (const NetPlugin& plugin : kNetPlugins)
    if (plugin.nics == nic) return &plugin;
  return nullptr;
}
}  // namespace topsim::collective::nccl
