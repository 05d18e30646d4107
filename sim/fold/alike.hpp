// What is alike at the level of cells (topology/routes.hpp), found before any link is examined.
//
// Cells and groups form one graph: an edge says what usage a group has of the places of a cell and which of
// its members are there. Its equitable partition makes classes of cells and of groups; the same place in all
// cells of a class is a *slot*. Slots of ranks and of links and classes of groups are again an equitable
// partition, of ranks, groups and links, if hardly the coarsest (the eight accelerators of a node may be
// alike, their places are not). So the rest of folding examines one group per class and one link per slot,
// with weights, and finds the same classes as from all of them.
#pragma once

#include <algorithm>
#include <unordered_map>
#include <utility>
#include <vector>

#include "sim/fold/fold.hpp"
#include "sim/fold/groups.hpp"
#include "sim/fold/refine.hpp"
#include "sim/fold/sketches.hpp"

namespace topsim::fold {

// What a group does to one slot of ranks or of links.
struct Side {
  std::uint32_t slot;
  LinkId link;          // one of the slot; invalid: a slot of ranks
  std::uint32_t way;    // ranks: their role
  double coefficient;   // bytes on each link per byte of the call; ranks: 0
  std::uint32_t count;  // how many of the slot
};

class Alike {
 public:
  // Treats nothing as alike: every rank and every link is its own slot, every group its own class.
  Alike(const program::Program& program, const topology::Router& router, std::size_t groups);
  // `ranks`: by rank, a colour that differs where ranks differ. Every marked link is a slot of its own.
  Alike(const program::Program& program, const topology::Router& router, const GroupLowering& lowering,
        const std::vector<Group>& groups, const std::vector<Colour>& ranks,
        const std::vector<std::pair<LinkId, std::uint32_t>>& marked_links);

  // Classes of groups and slots of ranks are numbered in the order of their first members.
  struct Class {
    std::uint32_t first, count;
    Colour colour;  // of groups: equal where they differ only in members and links
  };
  [[nodiscard]] bool trivial() const { return cell_class_.empty(); }
  [[nodiscard]] const std::vector<Class>& groups() const { return groups_; }
  [[nodiscard]] const std::vector<Class>& ranks() const { return ranks_; }
  [[nodiscard]] std::uint32_t slot(RankId rank) const { return rank_slot_[rank.index()]; }
  [[nodiscard]] std::uint32_t slots_of_links() const { return link_slots_; }
  // kNowhere for a link that does not work.
  [[nodiscard]] std::uint32_t slot(LinkId link) const {
    return trivial() ? link.value : slot(router_.place(link));
  }
  [[nodiscard]] std::uint32_t weight(LinkId link) const {
    return trivial() ? 1 : cells_[cell_class_[router_.place(link).cell]].count;
  }
  // take(link, slot) of all links that work, ascending.
  template <class Take>
  void for_each_link(const Take& take) const {
    const topology::Topology& t = router_.topology();
    const std::uint32_t nodes = trivial() ? 0 : t.copies().nodes, each = t.copies().links;
    std::size_t l = 0;
    // Inside nodes that are copies places follow each other, where all links work.
    for (std::uint32_t node = 0; node < nodes && each > 0; ++node) {
      const bool all = router_.place(LinkId(l)).at == 0 && router_.place(LinkId(l + each - 1)).at == each - 1;
      if (!all) break;
      const std::uint32_t slots = cells_[cell_class_[node]].first_slot;
      for (std::uint32_t at = 0; at < each; ++at) take(LinkId(l++), slots + at);
    }
    for (; l < t.links().size(); ++l) {
      const std::uint32_t its = slot(LinkId(l));
      if (its != topology::Router::kNowhere) take(LinkId(l), its);
    }
  }
  // The calls that each group of the class makes, without their links. REQUIRES: not trivial.
  [[nodiscard]] const Sketches::Calls& calls(std::uint32_t group_class) const {
    return calls_.at(groups_[group_class].colour);
  }
  // The sides of each group of the class; a slot may occur more than once. REQUIRES: not trivial. Not
  // thread-safe.
  void sides(std::uint32_t group_class, std::vector<Side>& out) const;
  // take(way, link) of all links that the first group of the class crosses, in no order. REQUIRES: not
  // trivial.
  template <class Take>
  void for_each_crossing(std::uint32_t group_class, const Take& take) const {
    std::vector<topology::LinkShare> links;
    for (const Part& part : parts_[group_class]) {
      for (const CellPattern::Use& use : patterns_[part.label].uses) {
        router_.expand({part.cell, use.at}, links);
        for (const topology::LinkShare& each : links) take(use.way, each.link);
      }
    }
  }

 private:
  struct CellClass {
    std::uint32_t first_slot, count;
  };
  using Part = CellPart;
  class Runs;
  void expand(const CellPattern& pattern, std::uint32_t cell, std::uint32_t count,
              std::vector<Side>& out) const;
  [[nodiscard]] std::uint32_t slot(topology::Router::Place place) const {
    return place.at == topology::Router::kNowhere ? place.at
                                                  : cells_[cell_class_[place.cell]].first_slot + place.at;
  }
  [[nodiscard]] static std::uint64_t key(std::uint32_t a, std::uint32_t b) {
    return std::uint64_t{a} << 32 | b;
  }

  // Memory that sides() reuses: it is called for thousands of groups in turn.
  struct Scratch {
    struct Seen {
      Part part;
      std::uint32_t count;
    };
    struct Shared {
      std::uint32_t way;
      LinkId link;
      double share;
      std::uint32_t times;
      double wire;
    };
    std::vector<Seen> seen;  // one cell for each class of cells and label
    std::unordered_map<std::uint64_t, std::size_t> known;
    std::vector<topology::LinkShare> links;
    std::vector<Shared> crossings;
  };

  const topology::Router& router_;
  mutable Scratch scratch_;
  std::vector<Class> groups_, ranks_;
  std::vector<std::uint32_t> rank_slot_;
  std::vector<std::uint32_t> cell_class_;  // by cell
  std::vector<CellClass> cells_;           // by class
  std::uint32_t link_slots_ = 0;
  std::unordered_map<std::uint64_t, std::uint32_t> rank_slots_;  // by class of cells and place
  std::vector<std::vector<Part>> parts_;                         // by class of groups
  std::vector<CellPattern> patterns_;                            // by label
  std::unordered_map<Colour, Sketches::Calls> calls_;            // by colour of groups
};
}  // namespace topsim::fold
