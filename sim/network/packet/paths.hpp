// Paths through the graph, as a packet follows them: a Hop is a port to send on and the hops that may follow.
// One fixed path is a chain (one successor each); spraying and adaptive routing follow a graph of all
// shortest paths and choose among a hop's successors packet by packet.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <tuple>
#include <vector>

#include "sim/network/packet/graph.hpp"

namespace topsim::network::packet {

struct Hop {
  PortIndex port;
  std::uint32_t next;   // first successor in Paths::hops()
  std::uint32_t count;  // successors; 0: the port leads to the destination
};

// First hops of a path: `count` alternatives from hops()[first].
struct Way {
  std::uint32_t first = 0, count = 0;
};

class Paths {
 public:
  explicit Paths(const Graph& graph);

  [[nodiscard]] const Hop& operator[](std::uint32_t hop) const { return hops_[hop]; }
  void prefetch(std::uint32_t hop) const { __builtin_prefetch(&hops_[hop]); }
  // One path along these ports. Paths with the same end share their rows: those to one destination form a
  // tree, which keeps in cache what all pairs use.
  Way chain(std::span<const PortIndex> ports);
  // All paths that these ports allow: a port may follow another when it leaves the device that the other
  // leads to. REQUIRES: they form no cycle; every way from `from` along them ends at `to`.
  Way all_of(std::span<const PortIndex> ports, DeviceIndex from, DeviceIndex to);
  // One shortest path; where several ports are equally short, `hash` chooses at each device. Empty:
  // unreachable.
  [[nodiscard]] std::vector<PortIndex> shortest(DeviceIndex from, DeviceIndex to, std::uint64_t hash);
  // Every port on any shortest path, in order of distance from `from`.
  [[nodiscard]] std::vector<PortIndex> all_shortest(DeviceIndex from, DeviceIndex to);
  [[nodiscard]] std::size_t bytes() const { return hops_.capacity() * sizeof(Hop); }

 private:
  const std::vector<std::uint16_t>& distances_to(DeviceIndex to);

  const Graph& graph_;
  std::vector<Hop> hops_;
  std::map<std::tuple<PortIndex, std::uint32_t, std::uint32_t>, std::uint32_t> chains_;
  // Ports that leave a device: out_[out_begin_[d] .. out_begin_[d + 1]).
  std::vector<std::uint32_t> out_begin_;
  std::vector<PortIndex> out_;
  // Distances to the devices that hosts are connected to, kept for the last destinations: a host with one
  // cable is as far as its switch plus one, so that storage grows with switches, not hosts.
  std::vector<std::vector<std::uint16_t>> distance_;
};
}  // namespace topsim::network::packet
