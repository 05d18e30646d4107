// Colour refinement (1-dimensional Weisfeiler-Leman) of a labelled graph.
//
// An item may stand for many that are known to be alike (`weight`), and so may an edge: the quotient of a
// graph by an equitable partition has the same coarsest partition as the graph.
//
// Items carry a colour; edges carry a label and an end marker. The result is the coarsest equitable partition
// that respects the colours: any two items of a class have equally many neighbours of every class by every
// label. It is found by splitting: a class S is taken as splitter, every item x gets
//     h(x) = sum over edges {x, y}, y in S of M(label, which end x is)
// and classes whose members differ in h are split. Only the smaller parts need to be splitters in turn
// (Hopcroft; for counting refinement Cardon and Crochemore 1982), so every edge is visited at most
// log2(items) times: O(edges log items) in all, and about twice each where few classes split. Sums of
// 64-bit mixes stand for multisets: a false merge needs a collision among the few values h takes inside one
// class.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/base/mix.hpp"

namespace topsim::fold {

using Colour = std::uint64_t;

struct Edge {
  std::uint32_t from, to, label;
  std::uint32_t count;  // how many of `to` are neighbours of each of `from`
};

class LabelledGraph {
 public:
  // An item; indices ascend from 0.
  std::uint32_t add(Colour initial, std::uint32_t weight = 1);
  void recolour(std::uint32_t item, Colour initial) { colours_[item] = initial; }
  [[nodiscard]] Colour colour(std::uint32_t item) const { return colours_[item]; }
  // Labels are small numbers. REQUIRES: count x weight of `from` is a multiple of the weight of `to`.
  void connect(std::uint32_t from, std::uint32_t to, std::uint32_t label, std::uint32_t count = 1) {
    edges_.push_back({from, to, label, count});
  }
  void reserve(std::size_t items, std::size_t edges) {
    colours_.reserve(items);
    weights_.reserve(items);
    edges_.reserve(edges);
  }
  [[nodiscard]] std::size_t size() const { return colours_.size(); }
  [[nodiscard]] const std::vector<Edge>& edges() const { return edges_; }
  // How many of `from` are neighbours of each of `to`.
  [[nodiscard]] std::uint32_t count_back(const Edge& edge) const {
    return static_cast<std::uint32_t>(std::uint64_t{edge.count} * weights_[edge.from] / weights_[edge.to]);
  }

  // Class of every item, numbered by first appearance. With `fold` false every item is its own class.
  [[nodiscard]] std::vector<std::uint32_t> classes(bool fold) const;

 private:
  std::vector<Colour> colours_;
  std::vector<std::uint32_t> weights_;
  std::vector<Edge> edges_;
};
}  // namespace topsim::fold
