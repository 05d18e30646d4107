// Colour refinement (1-dimensional Weisfeiler-Leman) of a labelled graph.
//
// Items carry a colour; edges carry a label and an end marker. The result is the coarsest equitable partition
// that respects the colours: any two items of a class see equally many neighbours of every class through
// every label. It is found by splitting: a class S is taken as splitter, every item x gets
//     h(x) = sum over edges {x, y}, y in S of M(label, which end x is)
// and classes whose members differ in h come apart. Of the parts only the smaller ones need to be splitters
// in turn (Hopcroft; for counting refinement Cardon and Crochemore 1982), so every edge is looked at no more
// than log2(items) times: O(edges log items) in all, and close to twice each where little splits.
// Sums of 64-bit mixes stand for multisets: a false merge needs a collision among the few values h takes
// inside one class.
#pragma once

#include <cstdint>
#include <vector>

namespace topsim::fold {

using Colour = std::uint64_t;

[[nodiscard]] Colour mix(Colour a, Colour b);

struct Edge {
  std::uint32_t from, to, label;
};

class LabelledGraph {
 public:
  std::uint32_t add(Colour initial);  // an item; indices ascend from 0
  void recolour(std::uint32_t item, Colour initial) { colours_[item] = initial; }
  void connect(std::uint32_t from, std::uint32_t to, std::uint32_t label) {
    edges_.push_back({from, to, label});
  }
  [[nodiscard]] std::size_t size() const { return colours_.size(); }
  [[nodiscard]] const std::vector<Edge>& edges() const { return edges_; }

  // Class of every item, numbered by first appearance. With `fold` false every item is its own class.
  [[nodiscard]] std::vector<std::uint32_t> classes(bool fold) const;

 private:
  std::vector<Colour> colours_;
  std::vector<Edge> edges_;
};
}  // namespace topsim::fold
