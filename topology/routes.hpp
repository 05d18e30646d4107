// Which links a message crosses. Computed where needed, never for all pairs.
//
// Policy: a pair inside one NVLink domain uses NVLink; inside a node without it, PCIe (through the root
// complex; through host memory where the path crosses sockets or peer-to-peer does not work). Between nodes
// the NIC is chosen as NCCL does: the one on the rail of the destination, with PXN (an NVLink hop to the
// accelerator beside it) when it is another one's; without NVLink the accelerator's own. Inside the fabric:
//   static_   one shortest path, chosen by destination modulo (InfiniBand LFT, ftree)
//   ecmp      one shortest path a queue pair, chosen by a seeded hash of (source, destination, connection and
//             queue pair): a connection's bytes divide evenly over those of its queue pairs
//   adaptive  split over all shortest paths (per packet, least loaded): evenly where they are equal, else in
//             proportion to what each has left of capacity. In a dragonfly also over detours, in fixed parts:
//             to a neighbour over every third switch, to another group over third groups
//             (routing/group_routes.hpp; not what is RouteQuery::even, nor single packets)
//   spray     even split over all shortest paths, whatever they carry
#pragma once

#include <compare>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "topology/topology.hpp"

namespace topsim::topology {

struct LinkShare {
  LinkId link;
  double share = 1;  // bytes on this link per byte of the message
  bool operator==(const LinkShare&) const = default;
};

// A link that has this factor of its capacity, between 0 and 1.
struct SlowLink {
  LinkId link;
  double factor = 1;
  auto operator<=>(const SlowLink&) const = default;
};

struct Route {
  std::vector<LinkShare> links;  // in order of travel; parallel alternatives adjacent
  Duration latency{};            // sum over one path, plus NIC base where a NIC is crossed
  std::uint16_t switches = 0;    // fabric switches on one path
  bool crosses_fabric = false;
  bool proxied = false;  // went through a peer GPU's NIC (PXN)
  [[nodiscard]] bool reachable() const { return !links.empty(); }
};

struct RouteQuery {
  DeviceId from, to;              // accelerators, NICs or CPUs
  std::uint64_t connection = 0;   // the channel: what ECMP hashes, with the queue pair, beside the two ends
  DeviceId from_nic{}, to_nic{};  // forced NICs (a channel graph says which); invalid: the router chooses
  bool allow_pxn = true;
  // Part of traffic that goes to all alike (all-to-all): it takes no detours over third groups of a
  // dragonfly, since no path is less loaded than the shortest, and detours would double what cables carry.
  bool even = false;
  // A connection divides its bytes over its queue pairs, each of which keeps to one path and one port of a
  // NIC on several leaves; true: only the path of `queue_pair` (models that send single packets need a single
  // path).
  bool one_port = false;
  std::uint32_t queue_pair = 0;  // below Router::queue_pairs()
};

class Router {
 public:
  // REQUIRES: topology outlives the router. `seed` feeds the ECMP hash; no route uses a link of `dead`; a
  // connection has `queue_pairs` (at least 1); adaptive routing knows that those of `slow` between switches
  // carry less. Thread-safe for concurrent route().
  Router(const Topology& topology, std::uint64_t seed, std::span<const LinkId> dead = {},
         std::uint32_t queue_pairs = 1, std::span<const SlowLink> slow = {});
  ~Router();
  Router(Router&&) noexcept;

  // Unreachable pairs give an empty route; `why_unreachable` gives the reason in one sentence for the user,
  // with the NICs that the route would take.
  void route(const RouteQuery& query, Route& out) const;
  [[nodiscard]] std::string why_unreachable(const RouteQuery& query) const;
  // NIC that NCCL would use from GPU to reach `to`'s node (the rail rule above); invalid when there is none.
  [[nodiscard]] DeviceId nic_for(DeviceId gpu, DeviceId to) const;
  // The NICs over which the connections of a device rotate, by RouteQuery::connection.
  [[nodiscard]] std::uint32_t nics_of(DeviceId device) const;
  // What the NIC of a device sends on all its cables, as their lines carry it; 0: it has none.
  [[nodiscard]] BytesPerSecond nic_rate(DeviceId device) const;
  // All ranks reached over NVLink alone from this accelerator form one scale-up domain; same number = same
  // domain.
  [[nodiscard]] std::uint32_t scale_up_domain(DeviceId gpu) const;
  [[nodiscard]] const Topology& topology() const;
  [[nodiscard]] bool works(LinkId link) const;      // not one of `dead`, nor of a NIC that they cut off
  [[nodiscard]] std::uint32_t queue_pairs() const;  // of each connection

  // The same in coarser form, for callers that need every route but not every link. A *cell* is a set of
  // links: those of a node with its cables, those up from a switch (or down to it) where routes divide evenly
  // over them, else one link. A *stretch* is the part of a route in one cell that follows from the cell and
  // two ends: the way between two devices of a node, all links up. sketch() is like route(), but `links`
  // names stretches; a link that is part of none names itself. In cells of one kind the same place is a link
  // or stretch with the same capacity, type and kind of ends.
  void sketch(const RouteQuery& query, Route& out) const;
  struct Place {
    std::uint32_t cell, at;
  };
  [[nodiscard]] Place place(LinkId stretch) const;
  void expand(Place place, std::vector<LinkShare>& out) const;  // into links
  [[nodiscard]] std::uint32_t cells() const;                    // the nodes first
  [[nodiscard]] std::uint64_t kind_of_cell(std::uint32_t cell) const;
  // Places of its links are 0 ... n - 1; a link that does not work has none, `at` is then kNowhere.
  [[nodiscard]] std::uint32_t links_of_cell(std::uint32_t cell) const;
  static constexpr std::uint32_t kNowhere = ~0U;

  // The position of a node. The switches that its ports are connected to are its site; sites below the same
  // next tier of switches are its region. Two lists of nodes of equal kinds that share sites and regions in
  // the same way have equal sketches between them: the same places in corresponding cells.
  struct Standing {
    std::uint32_t kind = 0;
    std::uint32_t site = kNowhere, region = kNowhere;  // site: kNowhere where sketches depend on more
  };
  [[nodiscard]] Standing standing(std::uint32_t node) const;
  struct Owner {
    enum class Kind : std::uint8_t { node, site, region, nobody } kind;
    std::uint32_t number, at;  // number of the node, site or region; position among its cells
  };
  [[nodiscard]] Owner owner(std::uint32_t cell) const;
  [[nodiscard]] std::uint32_t cell(Owner owner) const;  // REQUIRES: it has an owner
  // Connections whose numbers differ by a multiple of this take the same NICs.
  [[nodiscard]] std::uint32_t turns() const;
  [[nodiscard]] std::uint32_t sites() const;
  [[nodiscard]] std::uint32_t regions() const;

  // What routes between nodes of equal standings have in common, for callers that sketch very many.
  struct Trip {
    struct Stop {
      Owner::Kind kind;
      bool there;            // it belongs to the destination node, its site or region; else to the source's
      std::uint32_t of, at;  // position among its cells, and the place in that cell
      double share;
    };
    std::vector<Stop> stops;
    Duration latency{};
    bool crosses_fabric = false;
  };
  struct TripBetween {
    const Trip* what = nullptr;      // lives as long as the router
    std::uint32_t from = 0, to = 0;  // nodes
  };
  // `what` is null where the route depends on more than standings: ask sketch() then.
  [[nodiscard]] TripBetween trip(const RouteQuery& query) const;

  // Nodes of one shape have the same routes inside: through the same places in each node's lists of devices
  // and of working links.
  [[nodiscard]] std::uint32_t node_shape(std::uint32_t node) const;
  [[nodiscard]] std::uint32_t place_of(DeviceId device) const;  // REQUIRES: it stands in a node
  // None where the link does not join two devices of the node.
  [[nodiscard]] std::optional<std::uint32_t> place_of(LinkId link, std::uint32_t node) const;
  [[nodiscard]] LinkId link_at(std::uint32_t node, std::uint32_t place) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};
}  // namespace topsim::topology
