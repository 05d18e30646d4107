// Which groups have equal sketches (sketches.hpp), found from the places of their members.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <span>
#include <unordered_map>
#include <vector>

#include "sim/base/mix.hpp"
#include "sim/fold/groups.hpp"
#include "sim/fold/sketches.hpp"

namespace topsim::fold {

class Lookalikes {
 public:
  // REQUIRES: the arguments outlive it.
  Lookalikes(const program::Program& program, const topology::Router& router, const GroupLowering& lowering);

  static constexpr std::uint32_t kNone = 0xffffffffU;
  struct Meeting {
    std::uint32_t like;  // of its representative; none if its sketch depends on more than its members' places
    bool fresh;          // it must be sketched: it is the first of its kind, or has no kind
  };
  [[nodiscard]] Meeting meet(const Group& group);
  // Groups are met in blocks; `met` is the index of a group in its block.
  void begin_block();

  // The sketch of a group that has been met.
  void learn(std::uint32_t like, std::size_t met, Colour colour, std::span<const CellPart> parts);
  // False where its cells do not follow from the places of its members.
  [[nodiscard]] bool knows(std::uint32_t like) const { return representatives_[like].known; }
  // Whether two neighbours in the block are edges between the same two nodes.
  [[nodiscard]] bool beside(std::size_t met, std::size_t then) const { return where_[met] == where_[then]; }
  // Both are known to put their parts in corresponding cells.
  [[nodiscard]] bool same_layout(std::uint32_t a, std::uint32_t b) const {
    return knows(a) && knows(b) && representatives_[a].layout == representatives_[b].layout;
  }
  [[nodiscard]] Colour colour(std::uint32_t like) const { return representatives_[like].colour; }
  // Valid until they are asked for again.
  [[nodiscard]] std::span<const CellPart> parts(std::uint32_t like, std::size_t met);

 private:
  using Kind = topology::Router::Owner::Kind;
  static constexpr std::size_t kKinds = 3;  // node, site, region
  struct Part {
    Kind kind;
    std::uint32_t ordinal, at, label;  // the ordinal counts the group's nodes, sites, regions as met
  };
  using Layout = std::vector<std::array<std::uint32_t, 3>>;  // of parts, without labels
  // The sketch of the first group of a kind.
  struct Representative {
    bool known = false;
    std::uint32_t layout = kNone;  // those of equal layout have their parts in corresponding cells
    Colour colour = 0;
    std::vector<Part> parts;
  };
  // Numbers the nodes, sites or regions of one group in the order in which it meets them.
  class Ordinals {
   public:
    explicit Ordinals(std::size_t numbers) : known_(numbers) {}
    void begin(std::vector<std::uint32_t>* met) {
      ++stamp_;
      met_ = met;
      count_ = 0;
    }
    // The ordinal of a number, a new one if it has none.
    std::uint32_t operator()(std::uint32_t number) {
      Known& known = known_[number];
      if (known.stamp != stamp_) {
        known = {stamp_, count_++};
        met_->push_back(number);
      }
      return known.ordinal;
    }
    [[nodiscard]] std::uint32_t count() const { return count_; }

   private:
    struct Known {
      std::uint32_t stamp = 0, ordinal = 0;
    };
    std::vector<Known> known_;
    std::uint32_t stamp_ = 0, count_ = 0;
    std::vector<std::uint32_t>* met_ = nullptr;
  };
  using Key = std::vector<std::uint32_t>;
  struct KeyHash {
    std::size_t operator()(const Key& key) const { return hash_words(key); }
  };
  [[nodiscard]] std::uint32_t number_of(const std::vector<CallShape>* calls);
  Meeting meet_edge(const Group& group);
  Meeting meet_described();
  void meet_others();  // numbers of nodes, sites and regions that follow are this group's
  bool describe(const Group& group);
  bool describe_edge(const Group& group);
  [[nodiscard]] std::span<const std::uint32_t> numbers(std::size_t kind, std::size_t met) const;

  const program::Program& program_;
  const topology::Router& router_;
  struct Seat {
    std::uint32_t node, place;
  };
  std::vector<Seat> seats_;                            // by rank
  std::vector<topology::Router::Standing> standings_;  // by node
  std::vector<const std::vector<CallShape>*> calls_;   // distinct ones
  std::unordered_map<const std::vector<CallShape>*, std::uint32_t> number_of_calls_;
  const std::vector<CallShape>* last_calls_ = nullptr;  // neighbours mostly make the same
  std::uint32_t last_number_ = 0;
  std::unordered_map<Key, std::uint32_t, KeyHash> known_;
  std::vector<Representative> representatives_;
  std::map<Layout, std::uint32_t> layouts_;
  struct Last {  // of the block whose parts were asked for
    std::size_t met = 0;
    std::uint32_t layout = kNone;
    std::vector<CellPart> parts;
  };
  Last last_;
  Key key_;
  struct Edge {  // of the block, met last
    std::uint32_t like = kNone;
    std::uint32_t from = 0, to = 0;  // nodes
    std::uint16_t slot = 0;
    program::Dimension dimension = program::Dimension::world;
    const std::vector<CallShape>* calls = nullptr;
    [[nodiscard]] bool beside(const Edge& other) const {
      return from == other.from && to == other.to && slot == other.slot && dimension == other.dimension &&
             calls == other.calls;
    }
  };
  Edge last_edge_;
  struct Next {                      // between the same nodes, after an edge of a kind
    std::uint32_t from = 0, to = 0;  // places
    std::uint32_t like = kNone;
  };
  std::vector<Next> next_;            // by kind
  std::vector<std::uint32_t> where_;  // by group of the block: where its numbers are
  // By kind: the numbers that groups of the block have met, and where those of each begin.
  std::vector<std::uint32_t> met_[kKinds];
  std::vector<std::size_t> begin_[kKinds];
  std::vector<Ordinals> ordinals_;  // by kind
};
}  // namespace topsim::fold
