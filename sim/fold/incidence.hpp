// Ranks, groups and links as one labelled graph: what refinement splits and what classes are summed from.
//
// Items are numbered ranks first, then groups, then the links that carry anything in the order of first use.
#pragma once

#include <unordered_map>
#include <vector>

#include "sim/fold/fold.hpp"
#include "sim/fold/groups.hpp"
#include "sim/fold/refine.hpp"

namespace topsim::fold {

class Incidence {
 public:
  // REQUIRES: the arguments outlive it.
  Incidence(const program::Program& program, const topology::Topology& topology, const FoldOptions& options,
            const std::vector<Group>& groups);

  // REQUIRES: groups in order, each once.
  void add(std::uint32_t group, const collective::LoweredCalls& lowered);
  void add_all_links();

  // What the label of an edge from a group to a link stands for.
  struct Share {
    std::uint32_t way;
    double coefficient;
  };
  [[nodiscard]] const LabelledGraph& graph() const { return graph_; }
  [[nodiscard]] std::size_t ranks() const { return ranks_; }
  [[nodiscard]] std::uint32_t item_of_group(std::size_t group) const {
    return static_cast<std::uint32_t>(ranks_ + group);
  }
  [[nodiscard]] bool is_group(std::uint32_t item) const {
    return item >= ranks_ && item < ranks_ + groups_.size();
  }
  [[nodiscard]] std::uint32_t first_link_item() const {
    return static_cast<std::uint32_t>(ranks_ + groups_.size());
  }
  [[nodiscard]] const std::vector<LinkId>& links() const { return links_; }  // by item - first_link_item()
  [[nodiscard]] const Share& share(std::uint32_t label) const { return shares_[label]; }
  [[nodiscard]] double slowdown(RankId rank) const { return slowdown_[rank.index()]; }

  // Scalars (a gradient norm, a flag) fit the first LL line of a channel, 16 bytes, whose time on the wire is
  // part of every measured latency: they take their latency and load no link, folded or not. Their odd paths
  // (a tree over all ranks) would split classes for nothing.
  static bool moves_data(const CallShape& call) { return call.bytes > 16; }

 private:
  std::uint32_t label(std::uint32_t way, double coefficient);
  std::uint32_t link_item(LinkId link);

  const program::Program& program_;
  const topology::Topology& topology_;
  const FoldOptions& options_;
  const std::vector<Group>& groups_;
  std::size_t ranks_;
  LabelledGraph graph_;
  std::vector<double> slowdown_;
  std::vector<LinkId> links_;
  std::vector<std::uint32_t> item_of_link_;
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
