// The sketches of groups, cell by cell (topology/routes.hpp), made before any link is examined.
//
// Groups that look alike are sketched once: same calls, same places in nodes of the same kinds, connected to
// sites and regions in the same pattern (Router::standing). The others get the same parts in the
// corresponding cells, those of their own nodes, sites and regions.
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

// The usage of a cell by a group, place by place.
struct CellPattern {
  struct Use {
    std::uint32_t way, at;
    std::uint32_t times;
    double share, wire;
  };
  std::vector<std::pair<std::uint32_t, std::uint32_t>> members;  // place, role
  std::vector<Use> uses;
};

// The usage of one cell by a group. Parts of equal label have equal patterns.
struct CellPart {
  std::uint32_t cell, label;
};

class Sketches {
 public:
  // REQUIRES: the arguments outlive it.
  Sketches(const program::Program& program, const topology::Router& router, const GroupLowering& lowering);
  ~Sketches();

  // Receives the sketches of all groups, in the order of the groups.
  class Sink {
   public:
    // The sketch of the next group. Two groups have equal colours if they differ only in members and links.
    // Consecutive groups on the same cells form a run; returns the number of this group's run.
    virtual std::uint32_t add(Colour colour, std::span<const CellPart> parts) = 0;
    // The next `groups` groups form a run of their own, on the cells of `parts`. The first of them does what
    // the first group of `run` does, the second what the second does, and so on.
    virtual void repeat(std::uint32_t run, std::uint32_t groups, std::span<const CellPart> parts) = 0;

   protected:
    ~Sink() = default;
  };
  // Parallel inside; the same for any number of threads.
  void for_each(std::span<const Group> groups, Sink& sink);

  // By label.
  [[nodiscard]] std::vector<CellPattern> take_patterns();
  // The calls of groups, without their links, by the groups' colour.
  using Calls = std::vector<collective::LoweredCalls::Call>;
  [[nodiscard]] std::unordered_map<Colour, Calls> take_calls();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};
}  // namespace topsim::fold
