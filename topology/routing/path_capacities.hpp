// What the shortest paths between two switches can carry, for adaptive routing where links alike differ in
// capacity: a slower spare, a port whose lanes have failed, some of several cables down. Packets go where
// queues are short, and credits or pauses carry word of queues upstream, so what a hop gets is in proportion
// to what it and all paths behind it carry.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <utility>
#include <vector>

#include "topology/routes.hpp"

namespace topsim::topology {

class PathCapacities {
 public:
  struct Hop {
    LinkId link;
    std::uint32_t to;  // vertex
  };
  using Hops = std::vector<std::vector<Hop>>;    // by vertex
  using Distances = std::vector<std::uint16_t>;  // by vertex, to the destination

  // REQUIRES: the topology and `hops` outlive it.
  PathCapacities(const Topology& topology, const Hops& hops, std::span<const SlowLink> slow);
  // Whether any two cables between switches of the same tiers differ.
  [[nodiscard]] bool differ() const;
  // The same of those that lead from here to the destination over at most one neighbour of both.
  [[nodiscard]] bool differ_around(std::uint32_t from, const Distances& far) const;
  // By vertex on the way: what it can pass on to the destination. Empty where cables do not differ.
  [[nodiscard]] std::map<std::uint32_t, double> onwards(std::uint32_t from, const Distances& far) const;
  [[nodiscard]] double of(LinkId link) const;

 private:
  // The first cable between switches of the same tiers, against which the others are held.
  using Alike = std::map<std::pair<int, int>, double>;
  [[nodiscard]] bool is_another(LinkId link, Alike& alike) const;

  const Topology* topology_;
  const Hops* hops_;
  std::map<LinkId, double> factors_;
};
}  // namespace topsim::topology
