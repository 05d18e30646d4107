// Paths inside a node. Nodes of one shape share a table; only links differ by an index.
//
// accelerator to accelerator: scale-up links (through NVSwitches, at most one accelerator between: NCCL's
// NVB; over a switch that nodes share the router itself leads), else PCIe; through host memory where PCIe
// peer-to-peer does not work or the path crosses sockets (NCCL's SHM, buffer at the receiver). Everything
// else: PCIe and C2C, never through another accelerator unless nothing else leads there (NICs on an
// accelerator).
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <mutex>
#include <numeric>
#include <optional>
#include <span>
#include <vector>

#include "topology/routes.hpp"
#include "topology/topology.hpp"

namespace topsim::topology {

// Links leaving and entering nothing but one node, with the ends as positions in the node's device list.
struct LocalLink {
  std::uint32_t from, to;
  Duration latency;
  BytesPerSecond capacity, line_rate;
  LinkKind kind;  // torus: the hardware forwards through other accelerators
  std::uint16_t type;
  bool scale_up;  // joins accelerators, or an accelerator and a scale-up switch
  auto operator<=>(const LocalLink&) const = default;
};

struct LocalPath {
  std::span<const std::uint32_t> links;  // positions in the node's link list
  std::span<const double> shares;        // of each, bytes on it per byte of the message
  Duration latency{};
  bool reachable = false;
};

class NodeShape {
 public:
  struct Member {
    DeviceKind kind;
    std::uint32_t local;
    bool fabric;               // has a working cable into the fabric
    bool lost;                 // had cables into the fabric, all of which are dead
    bool joined;               // to a scale-up switch that nodes share (NVL72), both ways
    double peer_overhead = 1;  // CPUs: ModelFacts'
    auto operator<=>(const Member&) const = default;
  };
  // `of_lost`: dead links inside the node of ports that are lost.
  NodeShape(std::vector<Member> members, std::vector<LocalLink> links, bool peer_to_peer,
            const std::vector<LocalLink>& of_lost = {});

  [[nodiscard]] LocalPath path(std::uint32_t from, std::uint32_t to) const;
  // The port that a device uses on this connection. It is the nearest; equally near NICs are dealt to the
  // accelerators that share them, as NCCL does. A device that has lost all its ports uses those that stand in
  // for them. None: the node has no port.
  [[nodiscard]] std::uint32_t own_port(std::uint32_t device, std::uint64_t connection) const;
  // Connections whose numbers differ by a multiple of this get the same port.
  [[nodiscard]] std::uint32_t port_turns(std::uint32_t device) const { return shares_[device].spread; }
  [[nodiscard]] std::uint32_t nics_per_accelerator() const { return nics_per_accelerator_; }  // at least 1
  [[nodiscard]] std::uint32_t turns() const { return turns_; }  // common multiple of all
  [[nodiscard]] std::uint32_t accelerator_turns() const { return accelerator_turns_; }
  // The accelerator beside `port` that `from` hands its data to over scale-up links (PXN); `from` itself when
  // it is beside the port, or nobody is.
  [[nodiscard]] std::uint32_t proxy(std::uint32_t from, std::uint32_t port) const {
    return row(from).proxy[port];
  }
  // Both reach each other over scale-up links alone, those of a shared switch included.
  [[nodiscard]] bool scale_up(std::uint32_t a, std::uint32_t b) const;
  // Position of the accelerator with that number; none.
  [[nodiscard]] std::uint32_t accelerator(std::uint32_t local) const {
    return local < by_local_.size() ? by_local_[local] : DeviceId::kNone;
  }
  [[nodiscard]] const std::vector<Member>& members() const { return members_; }
  // Accelerators and their switches, joined by scale-up links: which of parts() a device belongs to, none
  // where it is neither.
  [[nodiscard]] std::uint32_t part(std::uint32_t device) const { return part_[device]; }
  [[nodiscard]] std::uint32_t parts() const { return parts_; }

 private:
  struct Row {  // from one device to all
    std::once_flag once;
    std::vector<std::uint32_t> begin, links;
    std::vector<double> shares;  // by link
    std::vector<Duration> latency;
    std::vector<std::uint8_t> reachable, by_scale_up;
    std::vector<std::uint32_t> proxy;
  };
  struct Tree {  // of one search: the link by which each device was reached
    std::vector<std::uint32_t> via, hops;
  };
  enum class Search { host, scale_up, anything };

  const Row& row(std::uint32_t from) const;
  [[nodiscard]] Tree search(std::uint32_t from, Search kind) const;
  bool append(const Tree& tree, std::uint32_t from, std::uint32_t to, std::vector<std::uint32_t>& out) const;
  void cut_packets(std::size_t begin, Row& row) const;
  bool append_staged(const Tree& host, std::uint32_t from, std::uint32_t to,
                     std::vector<std::uint32_t>& out) const;
  void find_nearest_ports();
  void share_ports();
  [[nodiscard]] NodeShape with_lost(const std::vector<LocalLink>& of_lost) const;
  void drop_lost_ports();
  void find_stand_ins(const NodeShape& whole);
  void find_parts();
  void find_proxies(std::uint32_t from, Row& row) const;

  std::vector<Member> members_;
  std::vector<LocalLink> links_;
  std::vector<std::uint32_t> out_begin_, out_;
  bool peer_to_peer_;
  std::vector<std::vector<std::uint32_t>> ports_;  // by device
  std::vector<bool> orphaned_;                     // by device: others stand in for all its ports
  struct Share {
    std::uint32_t start = 0, spread = 1;
  };
  std::vector<Share> shares_;               // by device: where in its ports it starts, how many it goes round
  std::uint32_t turns_ = 1;                 // least common multiple of those rounds
  std::uint32_t accelerator_turns_ = 1;     // of those of accelerators
  std::uint32_t nics_per_accelerator_ = 1;  // those that have lost their cables counted
  std::vector<std::uint32_t> by_local_;     // accelerators
  std::vector<std::uint32_t> part_;
  std::uint32_t parts_ = 0;
  mutable std::unique_ptr<Row[]> rows_;
};

// Division by a number that stays, asked for hundreds of thousands of times: a multiplication in its place
// takes a fifth (D. Lemire, O. Kaser, N. Kurz, Faster remainder by direct computation, 2019). Exact.
class Divisor {
 public:
  explicit Divisor(std::uint32_t by = 1) : by_(by), inverse_(by > 1 ? ~std::uint64_t{0} / by + 1 : 0) {}
  struct Parts {
    std::uint32_t quotient, rest;
  };
  [[nodiscard]] Parts operator()(std::uint32_t number) const {
    if (by_ <= 1) return {number, 0};
    __extension__ using Wide = unsigned __int128;
    const auto quotient = static_cast<std::uint32_t>(Wide{inverse_} * number >> 64);
    return {quotient, number - quotient * by_};
  }

 private:
  std::uint32_t by_;
  std::uint64_t inverse_;
};

// Where every link stands (routes.hpp, Router::Place).
struct LinkPlaces {
  std::uint32_t nodes = 0, each = 0;  // the first links: those of nodes in which the same stand in one order
  Divisor by_each;
  std::vector<std::uint32_t> cell, at;  // of those after them
  [[nodiscard]] std::uint32_t first() const { return nodes * each; }
  [[nodiscard]] std::uint32_t links() const { return first() + static_cast<std::uint32_t>(cell.size()); }
  [[nodiscard]] std::uint32_t& cell_of(LinkId link) { return cell[link.value - first()]; }
  [[nodiscard]] std::uint32_t& at_of(LinkId link) { return at[link.value - first()]; }
  struct Place {
    std::uint32_t cell, at;
  };
  [[nodiscard]] Place operator[](LinkId link) const {
    const std::uint32_t id = link.value;
    if (id >= first()) return {cell[id - first()], at[id - first()]};
    const auto [node, place] = by_each(id);
    return {node, place};
  }
};

// All nodes of a topology with their shapes.
class NodePaths {
 public:
  // Working links inside a node are numbered from 0, cables that leave it from here on.
  static constexpr std::uint32_t kCables = 1U << 20;

  // Writes the place of every link that touches a node to `places`.
  NodePaths(const Topology& topology, const std::vector<bool>& dead, LinkPlaces& places);

  [[nodiscard]] const NodeShape& shape(std::uint32_t node) const { return *shapes_[shape_of_[node]]; }
  [[nodiscard]] std::uint32_t shape_number(std::uint32_t node) const { return shape_of_[node]; }
  [[nodiscard]] std::uint32_t nodes() const { return static_cast<std::uint32_t>(shape_of_.size()); }
  [[nodiscard]] std::uint32_t inner_links(std::uint32_t node) const {
    if (node < linked_.nodes) return linked_.links;
    return links_begin_[node - linked_.nodes + 1] - links_begin_[node - linked_.nodes];
  }
  // Common multiple of all shapes'.
  [[nodiscard]] std::uint32_t turns(std::uint32_t (NodeShape::*which)() const = &NodeShape::turns) const {
    std::uint32_t all = 1;
    for (const auto& shape : shapes_) all = std::lcm(all, (*shape.*which)());
    return all;
  }
  [[nodiscard]] std::uint32_t most_members() const {  // of a node
    std::size_t most = 0;
    for (const auto& shape : shapes_) most = std::max(most, shape->members().size());
    return static_cast<std::uint32_t>(most);
  }
  // The node of a device (none for a switch) and its position there; callers want both.
  struct Seat {
    std::uint32_t node, position;
  };
  [[nodiscard]] Seat seat(DeviceId device) const {
    const std::uint32_t copied = seated_.nodes * seated_.devices;
    if (device.value >= copied) return seats_[device.value - copied];
    const auto [node, place] = by_seats_(device.value);
    return {node, place};
  }
  [[nodiscard]] std::uint32_t position(DeviceId device) const { return seat(device).position; }
  [[nodiscard]] std::uint32_t node_of(DeviceId device) const { return seat(device).node; }
  [[nodiscard]] std::uint32_t members(std::uint32_t node) const {
    if (node < seated_.nodes) return seated_.devices;
    return members_begin_[node - seated_.nodes + 1] - members_begin_[node - seated_.nodes];
  }
  [[nodiscard]] DeviceId device(std::uint32_t node, std::uint32_t position) const {
    if (node < seated_.nodes) return DeviceId(std::size_t{node} * seated_.devices + position);
    return members_[members_begin_[node - seated_.nodes] + position];
  }
  [[nodiscard]] LinkId link(std::uint32_t node, std::uint32_t position) const {
    if (node < linked_.nodes) return LinkId(std::size_t{node} * linked_.links + position);
    return links_[links_begin_[node - linked_.nodes] + position];
  }
  // The links of a path inside the node. REQUIRES: reachable.
  void append(std::uint32_t node, std::uint32_t from, std::uint32_t to, std::vector<LinkShare>& out) const {
    const LocalPath path = shape(node).path(from, to);
    for (std::size_t l = 0; l < path.links.size(); ++l)
      out.push_back({link(node, path.links[l]), path.shares[l]});
  }
  // None for links that do not join two devices of the node.
  [[nodiscard]] std::optional<std::uint32_t> position(LinkId link, std::uint32_t node) const {
    if (node < linked_.nodes) {
      const std::uint32_t first = node * linked_.links;
      if (link.value < first || link.value >= first + linked_.links) return std::nullopt;
      return link.value - first;
    }
    const auto begin = links_.begin() + links_begin_[node - linked_.nodes],
               end = links_.begin() + links_begin_[node - linked_.nodes + 1];
    const auto at = std::lower_bound(begin, end, link);
    if (at == end || *at != link) return std::nullopt;
    return static_cast<std::uint32_t>(at - begin);
  }

 private:
  // By device. `ports`: bit 0: a working cable joins it to a switch or to another node's NIC; bit 1: a dead
  // cable does. `joined`: bit 0: a working link leads to a scale-up switch outside the node; bit 1: one comes
  // from such a switch.
  struct Ways {
    std::vector<std::uint8_t> ports, joined;
  };
  void seat_devices(const Topology& topology);
  void place_inner_links(const Topology& topology, const std::vector<bool>& dead, LinkPlaces& places);
  Ways place_cables(const Topology& topology, const std::vector<bool>& dead, LinkPlaces& places);
  void find_shapes(const Topology& topology, const Ways& ways);

  std::vector<std::unique_ptr<NodeShape>> shapes_;
  std::vector<std::uint32_t> shape_of_;  // by node
  // Nodes that are copies of the first: the places of devices (`seated_`) and of links (`linked_`) in them
  // follow from their numbers. `linked_` has no nodes where links have failed, or where links inside a node
  // were added later.
  Topology::Copies seated_, linked_;
  Divisor by_seats_;
  std::vector<Seat> seats_;          // by device, after those of such nodes
  std::vector<DeviceId> members_;    // of all other nodes, one by one
  std::vector<LinkId> links_;        // of all other nodes, one by one, only working ones, ascending
  std::vector<LinkId> dead_inside_;  // links inside a node that do not work
  std::vector<std::uint32_t> members_begin_, links_begin_;
};
}  // namespace topsim::topology
