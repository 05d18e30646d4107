// Which links are connected by activities that cross more than one of them: a union-find forest whose trees
// are also rings (so that a tree can be listed). When activities end, a component may be too large until it
// is searched again. That costs only work; the search follows when a share of its activities has ended.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "sim/network/network.hpp"

namespace topsim::network {

class Components {
 public:
  void resize(std::size_t links) {
    for (auto link = static_cast<LinkIndex>(nodes_.size()); link < links; ++link)
      nodes_.push_back({link, link, 0, 0, 1});
  }

  [[nodiscard]] LinkIndex root(LinkIndex link) {
    while (nodes_[link].parent != link) link = nodes_[link].parent = nodes_[nodes_[link].parent].parent;
    return link;
  }

  // One activity connects these two; returns the common root.
  LinkIndex join(LinkIndex a, LinkIndex b) {
    a = root(a), b = root(b);
    if (a == b) return a;
    if (nodes_[a].links < nodes_[b].links) std::swap(a, b);
    nodes_[b].parent = a;
    std::swap(nodes_[a].next, nodes_[b].next);  // two rings become one
    nodes_[a].activities += nodes_[b].activities;
    nodes_[a].ended += nodes_[b].ended;
    nodes_[a].links += nodes_[b].links;
    return a;
  }

  void started(LinkIndex root) { ++nodes_[root].activities; }
  void ended(LinkIndex root) { --nodes_[root].activities, ++nodes_[root].ended; }
  [[nodiscard]] std::uint32_t activities(LinkIndex root) const { return nodes_[root].activities; }
  // Searching a component again costs as much as its activities: do it when an eighth of them have ended.
  [[nodiscard]] bool stale(LinkIndex root) const { return 8 * nodes_[root].ended >= nodes_[root].activities; }

  template <class Visit>
  void each(LinkIndex root, Visit&& visit) const {
    for (LinkIndex link = root;;) {
      const LinkIndex next = nodes_[link].next;
      visit(link);
      if (next == root) return;
      link = next;
    }
  }

  // Every link of the component becomes a component of its own.
  void dissolve(LinkIndex root) {
    for (LinkIndex link = root;;) {
      const LinkIndex next = nodes_[link].next;
      nodes_[link] = {link, link, 0, 0, 1};
      if (next == root) return;
      link = next;
    }
  }

 private:
  struct Node {
    LinkIndex parent, next;
    std::uint32_t activities, ended, links;  // of the component; true at its root only
  };
  std::vector<Node> nodes_;
};
}  // namespace topsim::network
