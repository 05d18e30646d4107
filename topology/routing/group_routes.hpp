// Routes between two groups of a dragonfly as UGAL takes them under load (Kim et al. 2008; Slingshot: De
// Sensi et al. 2020, "An In-Depth Analysis of the Slingshot Interconnect"): over all cables that join the two
// groups and, beyond what these carry, over third groups (Valiant).
//
// UGAL compares queues. Here parts are fixed, at what queues come to if all NICs of a group send to another
// group, which is what neighbours in a pipeline do:
//
//   direct = min(1, C / min(N_from, N_to))     C: what the cables that join the two groups carry
//   detours = 1 - direct                       N: what the NICs of a group send
//
// Alps as built: 23 cables of 200 Gbit/s join two groups, whose 512 NICs send as much each, so 4 % goes
// directly. If every group sends to its next one, 2 (1 - 0.045) x 512 / 506 = 1.93 NICs share a cable; evenly
// it would be 1.86. Random pairs would share them evenly on the shortest paths, with 0.97 NICs a cable: these
// parts make them 1.9.
//
// A group's cables are dealt to the switches that have NICs, to each by what its NICs send and its own first;
// a switch sends its detours over those that it was dealt. The third group passes on what came over its i-th
// cable from the sender's group over its i-th cable to the receiver's. So all cables carry the same when all
// switches of a group send, with some 20 cables a route.
//
// Links inside a group are left out where they cannot be the first to be full: those of a switch if they
// carry what its NICs do, as messages use them evenly (adaptive routing takes detours there, too), and all
// those of third groups, as what passes needs at most one hop for each two global cables. A balanced
// dragonfly (Kim et al.: 2p = a = 2h) has twice as many links inside a group as NICs or global cables.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "topology/routes.hpp"
#include "topology/routing/fabric_routes.hpp"
#include "topology/routing/path_capacities.hpp"

namespace topsim::topology {

class GroupRoutes {
 public:
  using Hops = PathCapacities::Hops;
  // REQUIRES: topology and `hops` outlive it; vertices number the switches group by group. `vertex_of`: by
  // device.
  GroupRoutes(const Topology& topology, const FabricPorts& ports, const Hops& hops,
              std::span<const std::uint32_t> vertex_of, std::span<const SlowLink> slow);
  // False, nothing appended: both are in one group, or no third group joins theirs.
  bool append(std::uint32_t from, std::uint32_t to, std::vector<LinkShare>& out) const;

 private:
  struct Cable {
    LinkId link;
    std::uint32_t from, to;  // vertices
    double carries;
    std::uint32_t user;  // the switch that it was dealt to
  };
  struct Path {
    const Cable *first, *second;  // second: null on the direct way
    double weight;
  };
  [[nodiscard]] std::uint32_t group(std::uint32_t vertex) const { return vertex / switches_; }
  [[nodiscard]] const std::vector<Cable>& cables(std::uint32_t from, std::uint32_t to) const {
    return cables_[from * groups_ + to];
  }
  void deal(std::uint32_t group, std::span<const double> sent);
  [[nodiscard]] std::vector<Path> direct(std::uint32_t from, std::uint32_t to) const;
  [[nodiscard]] std::vector<Path> detours(std::uint32_t from, std::uint32_t to) const;
  static void keep_own(std::uint32_t from, std::vector<Path>& paths);
  [[nodiscard]] bool add_local(std::uint32_t from, std::uint32_t to, double share,
                               std::vector<LinkShare>& out) const;

  const Hops* hops_;
  PathCapacities capacities_;
  std::uint32_t switches_, groups_;
  std::vector<std::vector<Cable>> cables_;  // by the two groups
  std::vector<double> sent_;                // by group
  std::vector<double> sent_by_switch_;      // by vertex
};
}  // namespace topsim::topology
