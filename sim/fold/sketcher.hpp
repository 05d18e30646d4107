// The sketch of one group: the usage of its calls on the places of every cell (topology/routes.hpp).
#pragma once

#include <oneapi/tbb/enumerable_thread_specific.h>

#include <algorithm>
#include <array>
#include <bit>
#include <mutex>
#include <span>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "sim/base/mix.hpp"
#include "sim/fold/groups.hpp"
#include "sim/fold/sketches.hpp"

namespace topsim::fold {

// What one group does, cell by cell.
struct GroupSketch {
  Colour colour = 0;
  Sketches::Calls calls;
  struct Part {
    std::uint32_t cell;
    Colour label;
  };
  std::vector<Part> parts;
  // All of it follows from the places of the group's members (Router::standing).
  bool regular = true;
};

// What trips of one kind and coefficient add to the labels of cells; stops in one cell are summed.
class TripLabels {
 public:
  using Trip = collective::SketchedCalls::Trip;
  struct Sum {
    topology::Router::Owner::Kind kind;
    bool there;
    std::uint32_t of;
    Colour label;
  };
  void begin(Colour mark) {
    mark_ = mark;
    known_.clear();
    slots_.fill(0);
  }
  // Valid until the next one is asked for.
  std::span<const Sum> operator()(const Trip& trip) {
    std::size_t& slot = slots_[slot_of(trip)];
    if (slot >= known_.size() || !known_[slot].is(trip)) {
      slot = static_cast<std::size_t>(
          std::find_if(known_.begin(), known_.end(), [&](const Known& k) { return k.is(trip); }) -
          known_.begin());
      if (slot == known_.size()) add(trip);
    }
    return known_[slot].sums;
  }

 private:
  struct Known {
    const topology::Router::Trip* what;
    double coefficient;
    std::vector<Sum> sums;
    [[nodiscard]] bool is(const Trip& trip) const {
      return what == trip.what && coefficient == trip.coefficient;
    }
  };
  static constexpr std::size_t kSlots = 64;
  [[nodiscard]] static std::size_t slot_of(const Trip& trip) {
    const Colour hash = std::bit_cast<std::uintptr_t>(trip.what) ^ std::bit_cast<Colour>(trip.coefficient);
    return (hash * kGoldenGamma) >> 58;
  }
  void add(const Trip& trip);

  Colour mark_ = 0;
  std::vector<Known> known_;
  std::array<std::size_t, kSlots> slots_{};  // of known_, to find most at once
};

// Sketches one group at a time.
class Sketcher {
 public:
  Sketcher(const program::Program& program, const topology::Router& router, const GroupLowering& lowering)
      : program_(program),
        router_(router),
        lowering_(lowering),
        scratch_([&router] { return Scratch{std::vector<Colour>(router.cells(), 0), {}, {}, {}, {}, {}}; }) {}

  // Thread-safe.
  GroupSketch operator()(const Group& group);

  // The pattern of a label that occurs in some sketch.
  CellPattern take_pattern(Colour label) { return std::move(patterns_.at(label)); }

 private:
  struct Scratch {
    std::vector<Colour> label;  // by cell
    std::vector<std::uint32_t> touched;
    std::vector<bool> used;                                   // by way
    std::unordered_set<Colour> known;                         // labels whose patterns are kept
    std::unordered_map<std::uint32_t, CellPattern> patterns;  // new ones, by cell
    TripLabels trips;
    void add(std::uint32_t cell, Colour what) {
      if (label[cell] == 0) touched.push_back(cell);
      label[cell] += what;
    }
  };
  [[nodiscard]] std::uint32_t cell_of(RankId rank) const {
    return router_.topology().device(lowering_.device(rank)).node;
  }

  [[nodiscard]] std::uint32_t cell_of(const TripLabels::Sum& sum, const TripLabels::Trip& trip) const {
    using Kind = topology::Router::Owner::Kind;
    const std::uint32_t node = sum.there ? trip.to : trip.from;
    if (sum.kind == Kind::node) return node;
    const topology::Router::Standing standing = router_.standing(node);
    return router_.cell({sum.kind, sum.kind == Kind::site ? standing.site : standing.region, sum.of});
  }
  void learn(const Group& group, const collective::SketchedCalls& sketched, const GroupSketch& sketch,
             Scratch& scratch);

  const program::Program& program_;
  const topology::Router& router_;
  const GroupLowering& lowering_;
  oneapi::tbb::enumerable_thread_specific<Scratch> scratch_;
  std::mutex mutex_;
  std::unordered_map<Colour, CellPattern> patterns_;
};
}  // namespace topsim::fold
