// All-to-all between nodes without a route for every pair. Routes between nodes follow from how the two stand
// on the fabric (topology/routes.hpp, Router::trip): the links on a node's side, its own and its switches',
// are the same for all partners of one standing, so one route tells them and the partners are counted.
#include <array>
#include <utility>
#include <vector>

#include "sim/collective/lowering.hpp"

namespace topsim::collective {
namespace {

using topology::Router;

class AlikeNodes {
 public:
  AlikeNodes(const Placement& placement, bool pxn, UsageBuilder& usage)
      : boxes_(placement.boxes), share_(1.0 / placement.ranks), pxn_(pxn), usage_(usage) {
    for (const PlacedBox& box : boxes_) standings_.push_back(router().standing(node_of(box)));
  }
  [[nodiscard]] bool alike() const;
  void add();

 private:
  // Boxes to which a box has equal routes; the first of them stands for all.
  struct Partners {
    std::array<std::uint32_t, 3> how;
    std::size_t first;
    std::uint32_t count;
  };
  [[nodiscard]] const Router& router() const { return usage_.router(); }
  [[nodiscard]] std::uint32_t node_of(const PlacedBox& box) const {
    return usage_.topology().device(box.gpus.front()).node;
  }
  [[nodiscard]] std::vector<Partners> partners_of(std::size_t box) const;
  [[nodiscard]] topology::RouteQuery query(std::size_t from, std::size_t i, std::size_t to,
                                           std::size_t k) const {
    return {.from = boxes_[from].gpus[i], .to = boxes_[to].gpus[k], .allow_pxn = pxn_, .even = true};
  }
  [[nodiscard]] bool on_senders_side(LinkId link, std::size_t from) const;
  void add(std::size_t from, std::size_t to, bool senders_side, std::uint32_t times);

  const std::vector<PlacedBox>& boxes_;
  const double share_;
  const bool pxn_;
  UsageBuilder& usage_;
  topology::Route route_;
  std::vector<Router::Standing> standings_;  // by box
};

std::vector<AlikeNodes::Partners> AlikeNodes::partners_of(std::size_t box) const {
  const Router::Standing& here = standings_[box];
  std::vector<Partners> result;
  for (std::size_t b = 0; b < boxes_.size(); ++b) {
    if (b == box) continue;
    const Router::Standing& there = standings_[b];
    const std::array<std::uint32_t, 3> how = {there.kind, there.site == here.site ? 1U : 0U,
                                              there.region == here.region ? 1U : 0U};
    std::size_t at = 0;
    while (at < result.size() && result[at].how != how) ++at;
    if (at == result.size()) result.push_back({how, b, 0});
    ++result[at].count;
  }
  return result;
}

// The same accelerators of every node, and routes that follow from standings.
bool AlikeNodes::alike() const {
  const auto places = [&](const PlacedBox& box) {
    std::vector<std::uint32_t> result;
    for (const DeviceId gpu : box.gpus)
      if (usage_.topology().device(gpu).node == node_of(box)) result.push_back(router().place_of(gpu));
    return result;
  };
  const std::vector<std::uint32_t> first = places(boxes_.front());
  for (const PlacedBox& box : boxes_)
    if (box.gpus.size() != first.size() || places(box) != first) return false;
  for (const Router::Standing& standing : standings_)
    if (standing.site == Router::kNowhere) return false;
  for (std::size_t box = 0; box < boxes_.size(); ++box)
    for (const Partners& partners : partners_of(box))
      for (std::size_t i = 0; i < first.size(); ++i)
        for (std::size_t k = 0; k < first.size(); ++k)
          if (router().trip(query(box, i, partners.first, k)).what == nullptr) return false;
  return true;
}

// Where both ends share a site or region it counts as the sender's, as in a trip.
bool AlikeNodes::on_senders_side(LinkId link, std::size_t from) const {
  using Kind = Router::Owner::Kind;
  const Router::Owner owner = router().owner(router().place(link).cell);
  return owner.number == (owner.kind == Kind::node   ? node_of(boxes_[from])
                          : owner.kind == Kind::site ? standings_[from].site
                                                     : standings_[from].region);
}

void AlikeNodes::add(std::size_t from, std::size_t to, bool senders_side, std::uint32_t times) {
  for (std::size_t i = 0; i < boxes_[from].gpus.size(); ++i)
    for (std::size_t k = 0; k < boxes_[to].gpus.size(); ++k) {
      router().route(query(from, i, to, k), route_);
      for (const topology::LinkShare& use : route_.links)
        if (on_senders_side(use.link, from) == senders_side) usage_.add(use.link, use.share * share_, times);
      usage_.note_latency(route_);
    }
}

void AlikeNodes::add() {
  for (std::size_t box = 0; box < boxes_.size(); ++box)
    for (const Partners& partners : partners_of(box)) {
      add(box, partners.first, /*senders_side=*/true, partners.count);
      add(partners.first, box, /*senders_side=*/false, partners.count);
    }
}

}  // namespace

bool lower_alike(const Placement& placement, bool pxn, UsageBuilder& usage) {
  if (placement.boxes.size() < 3 || !usage.counts_alike()) return false;
  AlikeNodes nodes(placement, pxn, usage);
  if (!nodes.alike()) return false;
  nodes.add();
  return true;
}
}  // namespace topsim::collective
