// Colour refinement (1-dimensional Weisfeiler-Leman) of a labelled graph.
//
// Items carry a colour; edges carry a label and an end marker. A round gives every item x the colour
//     c'(x) = H(c(x), sum over edges {x, y} of M(label, which end x is, c(y)))
// and two items stay together only while these agree. Rounds repeat until the number of colours stops
// growing: then the partition is equitable, that is, any two items of a class see equally many neighbours of
// every class through every label. Sums of 64-bit mixes stand for multisets: a false merge needs a collision
// among fewer than 2^24 values (1e-5 at most).
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
