// Links grouped by what uses them alike, and numbers for the stretches of routes (routes.hpp,
// Router::sketch).
//
// Numbers of stretches: every link its own; from `links` on the ways between two devices of a node,
// node << 2b | from << b | to with b bits a position; then one a bundle of the fabric.
#pragma once

#include <cstdint>
#include <vector>

#include "topology/routes.hpp"
#include "topology/routing/fabric_routes.hpp"
#include "topology/routing/node_paths.hpp"

namespace topsim::topology {

class Cells {
 public:
  // REQUIRES: the arguments outlive it. `places` as NodePaths left them.
  Cells(const Topology& topology, const NodePaths& nodes, const FabricRoutes& fabric,
        const std::vector<bool>& dead, LinkPlaces places);

  [[nodiscard]] std::uint32_t size() const { return static_cast<std::uint32_t>(kinds_.size()); }
  [[nodiscard]] std::uint64_t kind(std::uint32_t cell) const { return kinds_[cell]; }
  [[nodiscard]] std::uint32_t links_of(std::uint32_t cell) const { return sizes_[cell]; }
  // The links that a place stands for, with their shares.
  void expand(Router::Place place, std::vector<LinkShare>& out) const;
  [[nodiscard]] Router::Place place(LinkId stretch) const {
    const std::uint32_t id = stretch.value;
    if (id < places_.links()) {
      const auto [cell, at] = places_[stretch];
      return {cell, at};
    }
    if (id >= first_bundle_) return {nodes_ + (id - first_bundle_), kStretch};
    const std::uint32_t way = id - places_.links();
    return {way >> (2 * bits_), kStretch + (way & ((1U << (2 * bits_)) - 1))};
  }
  // Invalid where the numbers do not suffice: then links name themselves.
  [[nodiscard]] LinkId way(std::uint32_t node, std::uint32_t from, std::uint32_t to) const {
    if (bits_ == 0) return {};
    return LinkId(places_.links() + ((std::size_t{node} << (2 * bits_)) | (from << bits_) | to));
  }
  [[nodiscard]] LinkId bundle(std::uint32_t number) const { return LinkId(first_bundle_ + number); }

 private:
  // Beside the places of links.
  static constexpr std::uint32_t kStretch = 1U << 31;

  // The steps of the constructor: what tells cells apart, and the place of every link that has none yet.
  class LinkKinds;
  void number_nodes(const Topology& topology);
  void number_bundles(LinkKinds& kinds);
  void number_cables(const Topology& topology, LinkKinds& kinds);
  void mark_dead_links(const Topology& topology, const std::vector<bool>& dead, LinkKinds& kinds);
  void number_stretches();

  const NodePaths& node_paths_;
  LinkPlaces places_;
  std::vector<std::vector<LinkShare>> bundles_;
  std::vector<LinkId> singles_;             // by cell, after nodes and bundles
  std::vector<std::uint32_t> cable_begin_;  // by node
  std::vector<LinkId> cables_;
  std::vector<std::uint64_t> kinds_;
  std::vector<std::uint32_t> sizes_;
  std::uint32_t nodes_, bits_ = 0, first_bundle_ = 0;
};
}  // namespace topsim::topology
