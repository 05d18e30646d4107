// How nodes are connected to the fabric, for code that needs many routes between nodes connected alike
// (topology/routes.hpp, Router::standing).
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "topology/routes.hpp"
#include "topology/routing/cells.hpp"
#include "topology/routing/fabric_routes.hpp"
#include "topology/routing/node_paths.hpp"

namespace topsim::topology {

class Sites {
 public:
  // `regular` false: routes between nodes do not follow from their sites, whatever the fabric reports.
  Sites(const NodePaths& nodes, const FabricPorts& ports, const FabricRoutes& fabric, const Cells& cells,
        bool regular);

  [[nodiscard]] const Router::Standing& standing(std::uint32_t node) const { return standings_[node]; }
  [[nodiscard]] Router::Owner owner(std::uint32_t cell) const;
  [[nodiscard]] std::uint32_t cell(Router::Owner owner) const;
  [[nodiscard]] std::uint32_t sites() const { return sites_.size(); }
  [[nodiscard]] std::uint32_t regions() const { return regions_.size(); }

 private:
  using Key = std::vector<std::uint64_t>;
  // Numbers that always come together, in order: the leaves of a site, the pods of a region.
  class Sets {
   public:
    // The number of such a set. None where one of them is already part of another.
    std::uint32_t number_of(const std::vector<std::uint32_t>& members);
    // Which set holds it, and where in it.
    [[nodiscard]] std::pair<std::uint32_t, std::uint32_t> place_of(std::uint32_t member) const;
    [[nodiscard]] std::uint32_t member(std::uint32_t set, std::uint32_t at) const { return sets_[set][at]; }
    [[nodiscard]] std::uint32_t size() const { return static_cast<std::uint32_t>(sets_.size()); }

   private:
    std::vector<std::vector<std::uint32_t>> sets_;
    std::vector<std::pair<std::uint32_t, std::uint32_t>> place_of_;  // by member
  };
  bool add_ports(std::uint32_t node, const NodePaths& nodes, const FabricPorts& ports,
                 const FabricRoutes& fabric, Key& key);
  [[nodiscard]] std::uint32_t bundle_cell(std::uint32_t number, std::uint32_t which) const {
    return nodes_ + 2 * number + which;
  }

  std::uint32_t nodes_;
  Sets sites_, regions_;
  std::vector<Router::Standing> standings_;   // by node
  std::vector<std::uint32_t> leaves_, pods_;  // of the current node
};
}  // namespace topsim::topology
