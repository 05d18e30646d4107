// Ranks, groups and links as one labelled graph, which is refined, and from which classes are summed.
//
// Items are what is known to be alike (alike.hpp): slots of ranks first, then classes of groups, then slots
// of links that carry anything, in the order of first use.
#pragma once

#include <span>
#include <unordered_map>
#include <vector>

#include "sim/base/mix.hpp"
#include "sim/fold/alike.hpp"
#include "sim/fold/detours.hpp"
#include "sim/fold/fold.hpp"
#include "sim/fold/groups.hpp"
#include "sim/fold/refine.hpp"

namespace topsim::fold {

// What distinguishes ranks other than their memberships.
class RankColours {
 public:
  RankColours(const program::Program& program, const topology::Topology& topology,
              const FoldOptions& options);
  [[nodiscard]] Colour operator[](RankId rank) const { return colours_[rank.index()]; }
  [[nodiscard]] const std::vector<Colour>& all() const { return colours_; }
  [[nodiscard]] double slowdown(RankId rank) const { return slowdown_[rank.index()]; }

 private:
  std::vector<double> slowdown_;
  std::vector<Colour> colours_;
};

class Incidence {
 public:
  // REQUIRES: the arguments outlive it.
  Incidence(const program::Program& program, const topology::Topology& topology, const FoldOptions& options,
            const std::vector<Group>& groups, const RankColours& ranks, const Alike& alike);

  // Both: REQUIRES classes in order, each once. The first is for a class of one group.
  void add(std::uint32_t group_class, const collective::LoweredCalls& lowered);
  void add(std::uint32_t group_class, const std::vector<Side>& sides);
  void add_all_links();
  // The calls of a group under detours. REQUIRES: it has been added, and is a class of one.
  void add(std::uint32_t group_class, const std::vector<Detours::Other>& detours);
  // The way of a share is that of a call; under a detour it is one of these.
  static std::uint32_t way_on(std::uint32_t detour, std::uint32_t way) {
    return (detour + 1) * kWaysOfADetour + way;
  }

  // The meaning of the label of an edge from a group to a link.
  struct Share {
    std::uint32_t way;
    double coefficient;
  };
  [[nodiscard]] const LabelledGraph& graph() const { return graph_; }
  [[nodiscard]] const Alike& alike() const { return alike_; }
  [[nodiscard]] std::uint32_t item_of_rank(RankId rank) const { return alike_.slot(rank); }
  [[nodiscard]] std::uint32_t item_of_group(std::size_t group_class) const {
    return static_cast<std::uint32_t>(alike_.ranks().size() + group_class);
  }
  // None where the link carries nothing.
  [[nodiscard]] std::uint32_t item_of_link(LinkId link) const {
    const std::uint32_t slot = alike_.slot(link);
    return slot == topology::Router::kNowhere ? System::kNone : item_of_slot_[slot];
  }
  [[nodiscard]] bool is_rank(std::uint32_t item) const { return item < alike_.ranks().size(); }
  [[nodiscard]] std::uint32_t first_link_item() const { return item_of_group(alike_.groups().size()); }
  // One link of a slot, by item - first_link_item().
  [[nodiscard]] const std::vector<LinkId>& links() const { return links_; }
  [[nodiscard]] const Share& share(std::uint32_t label) const { return shares_[label]; }

  static bool moves_data(const CallShape& call) { return Bytes(call.bytes) > kLatencyAlone; }

  // What distinguishes groups other than their members and links.
  static Colour colour(const Group& group, std::span<const collective::LoweredCalls::Call> calls);

 private:
  static constexpr std::uint32_t kWaysOfADetour = 1U << 16;
  void connect(std::uint32_t item, const std::vector<CallShape>& calls,
               const collective::LoweredCalls& lowered, std::uint32_t first_way);
  std::uint32_t label(std::uint32_t way, double coefficient);
  std::uint32_t link_item(LinkId link);

  const program::Program& program_;
  const topology::Topology& topology_;
  const FoldOptions& options_;
  const std::vector<Group>& groups_;
  const Alike& alike_;
  LabelledGraph graph_;
  std::vector<LinkId> links_;
  std::vector<std::uint32_t> item_of_slot_;  // of links
  struct End {
    std::uint32_t item, label, count;
  };
  std::vector<End> ends_;  // of the current group, before equal ones are counted
  struct KeyHash {
    std::size_t operator()(const std::pair<std::uint32_t, std::uint64_t>& k) const {
      return mix(k.first, k.second);
    }
  };
  std::unordered_map<std::pair<std::uint32_t, std::uint64_t>, std::uint32_t, KeyHash> labels_;
  std::vector<Share> shares_;
  std::pair<std::uint32_t, std::uint64_t> last_key_;
  std::uint32_t last_label_ = 0;
};
}  // namespace topsim::fold
