// Collects what an activity puts on each link: bytes per byte of the collective.
#pragma once

#include <algorithm>
#include <vector>

#include "sim/base/error.hpp"
#include "topology/routes.hpp"

namespace topsim::collective {

class UsageBuilder {
 public:
  explicit UsageBuilder(const topology::Router& router) : router_(router) {}

  // `coefficient` bytes along the route for every byte of the collective. The longest latency
  // through the fabric is kept. Throws
  // ConfigError where there is no way.
  void add(const topology::RouteQuery& query, double coefficient) {
    router_.route(query, route_);
    for (const topology::LinkShare& use : route_.links) usage_.push_back({use.link, use.share * coefficient});
    if (!route_.reachable() && query.from != query.to)
      throw ConfigError(router_.why_unreachable(query.from, query.to));
    if (route_.crosses_fabric) longest_ = std::max(longest_, route_.latency);
  }
  void add(LinkId link, double coefficient) { usage_.push_back({link, coefficient}); }

  [[nodiscard]] const topology::Router& router() const { return router_; }
  [[nodiscard]] const topology::Topology& topology() const { return router_.topology(); }
  [[nodiscard]] const topology::Route& last() const { return route_; }
  [[nodiscard]] Duration fabric_latency() const { return longest_; }

  // Sorted by link, one entry a link; `wire` bytes travel for each byte of payload. Shares of one link are
  // added in order of size, so that alike communicators get the same sums whatever their links' numbers.
  void finish(double wire, std::vector<topology::LinkShare>& out) {
    std::sort(usage_.begin(), usage_.end(), [](const topology::LinkShare& a, const topology::LinkShare& b) {
      return a.link != b.link ? a.link < b.link : a.share < b.share;
    });
    out.clear();
    for (const topology::LinkShare& use : usage_) {
      if (!out.empty() && out.back().link == use.link) {
        out.back().share += use.share;
      } else {
        out.push_back(use);
      }
    }
    for (topology::LinkShare& use : out) use.share *= wire;
  }

 private:
  const topology::Router& router_;
  topology::Route route_;
  std::vector<topology::LinkShare> usage_;
  Duration longest_{};
};
}  // namespace topsim::collective
