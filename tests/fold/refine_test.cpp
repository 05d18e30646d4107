#include "sim/fold/refine.hpp"

#include <gtest/gtest.h>

#include <set>
#include <tuple>

namespace topsim::fold::refine_test {

std::size_t count(const std::vector<std::uint32_t>& classes) {
  return std::set(classes.begin(), classes.end()).size();
}

LabelledGraph cycle(std::uint32_t n) {
  LabelledGraph graph;
  for (std::uint32_t i = 0; i < n; ++i) graph.add(1);
  for (std::uint32_t i = 0; i < n; ++i) graph.connect(i, (i + 1) % n, 0);
  return graph;
}

TEST(Refine, PutsAllItemsOfACycleIntoOneClass) {
  EXPECT_EQ(count(cycle(64).classes(true)), 1U);
}

TEST(Refine, KeepsEveryItemApartWithoutFolding) {
  EXPECT_EQ(count(cycle(64).classes(false)), 64U);
}

TEST(Refine, SplitsByDistanceFromTheOddOneOut) {
  // A directed cycle of 8 with one item of another colour: each distance from it is a class of its own.
  LabelledGraph graph;
  for (int i = 0; i < 8; ++i) graph.add(i == 0 ? 2 : 1);
  for (std::uint32_t i = 0; i < 8; ++i) graph.connect(i, (i + 1) % 8, 0);
  EXPECT_EQ(count(graph.classes(true)), 8U);
}

TEST(Refine, TellsTheTwoEndsOfAnEdgeApart) {
  // Four copies of one directed edge: senders are one class, receivers another.
  LabelledGraph graph;
  for (int i = 0; i < 8; ++i) graph.add(1);
  for (std::uint32_t i = 0; i < 8; i += 2) graph.connect(i, i + 1, 0);
  EXPECT_EQ(count(graph.classes(true)), 2U);
}

TEST(Refine, TellsLabelsApart) {
  LabelledGraph graph;
  for (int i = 0; i < 4; ++i) graph.add(1);
  graph.connect(0, 1, 7);
  graph.connect(2, 3, 8);
  EXPECT_EQ(count(graph.classes(true)), 4U);
}

TEST(Refine, CountsNeighboursAsAMultiset) {
  // A star with two leaves and a star with three: the centres differ, and so do their leaves.
  LabelledGraph graph;
  for (int i = 0; i < 7; ++i) graph.add(1);
  graph.connect(0, 2, 0);
  graph.connect(0, 3, 0);
  graph.connect(1, 4, 0);
  graph.connect(1, 5, 0);
  graph.connect(1, 6, 0);
  EXPECT_EQ(count(graph.classes(true)), 4U);
}

TEST(Refine, CountsAnEdgeAsOftenAsItStandsForOne) {
  // Three centres: one with four leaves, one with a single item that stands for four leaves, with one edge
  // for all of them, and one with an item that stands for three. The first two are alike, the third is not.
  LabelledGraph graph;
  for (int i = 0; i < 3; ++i) graph.add(1);
  for (int i = 0; i < 4; ++i) graph.connect(0, graph.add(2), 0);
  graph.connect(1, graph.add(2, 4), 0, 4);
  graph.connect(2, graph.add(2, 3), 0, 3);
  const auto classes = graph.classes(true);
  EXPECT_EQ(classes[0], classes[1]);
  EXPECT_NE(classes[0], classes[2]);
  EXPECT_EQ(count(classes), 4U);
  EXPECT_EQ(graph.count_back(graph.edges().back()), 1U);
}

// The partition is equitable: items of one class have equally many neighbours of every class through every
// label, at either end. Checked pair by pair.
TEST(Refine, MakesEquitablePartitionsOfRandomGraphs) {
  std::uint64_t state = 1;
  const auto below = [&](std::uint32_t n) {
    state = mix(state, 7);
    return static_cast<std::uint32_t>(state % n);
  };
  for (int trial = 0; trial < 50; ++trial) {
    LabelledGraph graph;
    const std::uint32_t items = 2 + below(60);
    for (std::uint32_t i = 0; i < items; ++i) graph.add(below(3));
    for (std::uint32_t e = below(3 * items); e > 0; --e) graph.connect(below(items), below(items), below(2));
    const auto cls = graph.classes(true);
    using Seen = std::multiset<std::tuple<bool, std::uint32_t, std::uint32_t>>;
    std::vector<Seen> seen(items);
    for (const Edge& e : graph.edges()) {
      seen[e.from].insert({true, e.label, cls[e.to]});
      seen[e.to].insert({false, e.label, cls[e.from]});
    }
    for (std::uint32_t a = 0; a < items; ++a)
      for (std::uint32_t b = 0; b < a; ++b)
        if (cls[a] == cls[b]) {
          EXPECT_EQ(seen[a], seen[b]) << "trial " << trial;
        }
  }
}
}  // namespace topsim::fold::refine_test
