// What groups do, cell by cell (topology/routes.hpp), before any link is looked at.
//
// Groups that look alike are sketched once: same calls, same places in nodes of the same kinds, which hang on
// sites and regions in the same pattern (Router::standing). The others get the same parts in the cells that
// correspond: of their own nodes, sites and regions.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "sim/fold/groups.hpp"
#include "sim/fold/refine.hpp"

namespace topsim::fold {

// What a group puts on a cell, place by place.
struct CellPattern {
  struct Use {
    std::uint32_t way, at;
    std::uint32_t times;
    double share, wire;
  };
  std::vector<std::pair<std::uint32_t, std::uint32_t>> members;  // place, role
  std::vector<Use> uses;
};

// What a group has to do with a cell: equal labels, equal patterns.
struct CellPart {
  std::uint32_t cell, label;
};

class Sketches {
 public:
  // REQUIRES: the arguments outlive it.
  Sketches(const program::Program& program, const topology::Router& router, const GroupLowering& lowering);
  ~Sketches();

  // What becomes of groups, which come in order.
  class Taker {
   public:
    // What tells a group apart but for its members and links, and its parts. Returns the number of the run of
    // groups that it belongs to: those that follow each other on the same cells.
    virtual std::uint32_t take(Colour colour, std::span<const CellPart> parts) = 0;
    // A run of `groups` whose groups do one by one what those of `run` do, on the cells of `parts`.
    virtual void take_again(std::uint32_t run, std::uint32_t groups, std::span<const CellPart> parts) = 0;

   protected:
    ~Taker() = default;
  };
  // Parallel inside; the same for any number of threads.
  void for_each(std::span<const Group> groups, Taker& taker);

  // By label.
  [[nodiscard]] std::vector<CellPattern> take_patterns();
  // What the calls of groups are, but for their links, by what tells groups apart.
  using Calls = std::vector<collective::LoweredCalls::Call>;
  [[nodiscard]] std::unordered_map<Colour, Calls> take_calls();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};
}  // namespace topsim::fold
