// NCCL's socket transport: bytes over TCP are copied by threads of the hosts, into the kernel where they
// leave and out of it where they arrive.
//   cap = 1 / max over threads of (sent / kSocketSend + received / kSocketReceive)      bytes of S a second
// with what a thread sends and receives per byte of the collective. Without helpers the proxy of a GPU, one
// thread, does it for all its connections; with NCCL_SOCKET_NTHREADS = t every connection has t of its own
// at either end. NCCL_NSOCKS_PERTHREAD divides a thread's work without adding to it.
// Source: NCCL 2.30 src/transport/net_socket.cc (autoNt = 0, ncclNetSocketTest).
#pragma once

#include <cstdint>
#include <vector>

#include "topology/topology.hpp"

namespace topsim::collective {

// What one core copies of a long flow, bytes a second: 42 Gbit/s where it receives, with jumbo frames,
// segments joined and interrupts beside the application, the most that Linux reaches, and 89 where it sends
// (Cai et al., "Understanding Host Network Stack Overheads", SIGCOMM 2021; the second recalled). Memory of
// another socket costs a fifth, which is left out.
inline constexpr double kSocketReceive = 42e9 / 8, kSocketSend = 89e9 / 8;

// The nodes' NICs support only TCP: NCCL prefers InfiniBand's verbs.
[[nodiscard]] bool over_tcp(const topology::Topology& topology);

// What leaves one GPU's node for another's, per byte of the collective.
struct SocketHop {
  DeviceId from, to;
  double bytes;
  int connections;  // that share them evenly
};
// `threads`: NCCL_SOCKET_NTHREADS. 0: nothing is copied, no limit.
[[nodiscard]] double socket_cap(const std::vector<SocketHop>& hops, int threads);
}  // namespace topsim::collective
