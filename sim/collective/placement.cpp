#include "sim/collective/placement.hpp"

#include <algorithm>
#include <atomic>
#include <bit>
#include <map>
#include <mutex>
#include <numeric>
#include <set>
#include <tuple>
#include <unordered_map>

#include "sim/base/error.hpp"
#include "sim/base/mix.hpp"
#include "sim/collective/searches.hpp"

namespace topsim::collective {
namespace {

using topology::Device;
using topology::DeviceKind;
using topology::Topology;

constexpr std::uint32_t kNone = DeviceId::kNone;

}  // namespace

struct Searches {
  struct Allowed {
    bool pxn, nvlink_sharp, sharp;
    std::optional<PeerLevel> peers;
    friend auto operator<=>(const Allowed&, const Allowed&) = default;
  };
  using BoxKey = std::tuple<std::vector<std::uint64_t>, std::vector<std::uint32_t>, bool, Allowed,
                            std::uint64_t>;  // nodes, GPUs, inter, wiring between the nodes
  using CommunicatorKey = std::tuple<std::vector<const nccl::Box*>, std::uint32_t, std::uint32_t,
                                     std::uint32_t, std::uint32_t, nccl::BufferSizes>;
  struct Search {
    std::once_flag once;  // others that need the same wait; those that need another do not
    std::unique_ptr<nccl::Box> box;
  };
  struct Found {
    std::mutex mutex;
    std::map<BoxKey, Search> boxes;
    std::map<CommunicatorKey, std::unique_ptr<nccl::Tuner>> tuners;
  };
  std::shared_ptr<Found> found = std::make_shared<Found>();
  std::set<LinkId> dead{};
  [[nodiscard]] bool see(LinkId link) const { return !dead.contains(link); }
};

std::shared_ptr<Searches> no_searches_yet() {
  return std::make_shared<Searches>();
}

std::shared_ptr<Searches> searches_without(const std::shared_ptr<Searches>& known,
                                           std::span<const LinkId> dead) {
  return std::make_shared<Searches>(Searches{known->found, {dead.begin(), dead.end()}});
}

struct Placer::Impl {
  Impl(const topology::Router& r, const Overrides& overrides, std::shared_ptr<Searches> s);

  // Equal for nodes that are wired alike as far as searches can see.
  std::uint64_t signature(std::uint32_t node) const;
  std::uint64_t wiring(std::uint32_t node) const;
  bool reaches_switches(DeviceId gpu) const;
  [[nodiscard]] bool of_a_nic(LinkId link) const {
    const auto is_nic = [&](DeviceId id) { return topology.device(id).kind == DeviceKind::nic; };
    return is_nic(topology.link(link).from) || is_nic(topology.link(link).to);
  }
  std::uint64_t box_of(DeviceId gpu) const;
  std::vector<std::size_t> group_by_box(std::span<const DeviceId> gpus,
                                        std::vector<std::uint32_t>& positions) const;
  std::uint64_t wiring_between(std::span<const std::uint32_t> nodes, std::span<const DeviceId> gpus) const;
  const nccl::Box* graphs_of(const PlacedBox& box, bool inter) const;
  void find_nics(const PlacedBox& box, std::vector<DeviceId>& nics) const;
  // kNone if the box spans several nodes.
  [[nodiscard]] std::uint32_t node_of(const PlacedBox& box) const {
    const std::uint32_t node = topology.device(box.gpus.front()).node;
    return topology.device(box.gpus.back()).node == node ? node : kNone;
  }
  // Gives a box the graphs and NICs of a similar one (whose NICs come last in `nics`), in its own node.
  // False: the boxes are not similar.
  bool follow(const PlacedBox& like, std::size_t like_nics, PlacedBox& box,
              std::vector<DeviceId>& nics) const;

  const topology::Router& router;
  const Topology& topology;
  Searches::Allowed allowed;
  nccl::BufferSizes asked;
  std::shared_ptr<Searches> searches;
  std::vector<bool> domain_spans_nodes;
  std::set<std::uint32_t> maimed;  // nodes with links that searches do not see
  mutable std::vector<std::atomic<std::uint64_t>> signatures;
  mutable std::mutex kinds_mutex;
  mutable std::unordered_map<std::uint64_t, std::uint64_t>
      signature_of_kind;  // nodes of a kind are wired alike
};

Placer::Impl::Impl(const topology::Router& r, const Overrides& overrides, std::shared_ptr<Searches> s)
    : router(r),
      topology(r.topology()),
      allowed{overrides.pxn.value_or(true), topology.nvlink_sharp && overrides.nvls.value_or(true),
              topology.sharp && overrides.sharp.value_or(true), overrides.p2p_level},
      asked{overrides.buffsize.value_or(Bytes{}).value(), overrides.nvls_chunksize.value_or(Bytes{}).value(),
            overrides.nvlstree_max_chunksize.value_or(Bytes{}).value()},
      searches(std::move(s)),
      signatures(topology.nodes()) {
  for (const LinkId link : this->searches->dead)
    for (const DeviceId end : {topology.link(link).from, topology.link(link).to})
      maimed.insert(topology.device(end).node);
  std::vector<std::uint32_t> node_of_domain;
  for (const DeviceId gpu : topology.accelerators()) {
    const std::uint32_t domain = router.scale_up_domain(gpu), node = topology.device(gpu).node;
    if (domain == kNone) continue;
    if (domain >= node_of_domain.size()) {
      node_of_domain.resize(domain + 1, kNone);
      domain_spans_nodes.resize(domain + 1, false);
    }
    if (node_of_domain[domain] == kNone) node_of_domain[domain] = node;
    if (node_of_domain[domain] != node) domain_spans_nodes[domain] = true;
  }
}

std::uint64_t Placer::Impl::signature(std::uint32_t node) const {
  std::uint64_t hash = signatures[node].load(std::memory_order_relaxed);
  if (hash != 0) return hash;
  // Routes may avoid more links than searches do, and the router's kinds of nodes follow the routes.
  const bool of_its_kind = !maimed.contains(node);
  const std::uint64_t kind = router.kind_of_cell(node);
  if (of_its_kind) {
    const std::lock_guard lock(kinds_mutex);
    if (const auto known = signature_of_kind.find(kind); known != signature_of_kind.end())
      hash = known->second;
  }
  if (hash == 0) {
    hash = wiring(node);
    const std::lock_guard lock(kinds_mutex);
    if (of_its_kind) signature_of_kind.emplace(kind, hash);
  }
  signatures[node].store(hash, std::memory_order_relaxed);
  return hash;
}

// A hash of everything that a search reads of a node, so that topologies can share search results.
std::uint64_t Placer::Impl::wiring(std::uint32_t node) const {
  std::uint64_t hash = mix(topology.peer_to_peer ? 1 : 2, topology.sharp ? 1 : 2);
  for (const DeviceId id : topology.devices_of_node(node)) {
    const Device& d = topology.device(id);
    const topology::ModelFacts facts = topology.facts_of(id);
    hash = mix(mix(hash, static_cast<std::uint64_t>(d.kind)), d.local);
    hash = mix(hash, std::hash<std::string>()(topology.model_of(id)));
    hash = mix(hash, static_cast<std::uint64_t>(facts.compute_capability) << 1 | (facts.gpu_direct ? 1 : 0));
    hash = mix(hash, std::hash<std::string>()(facts.cpu_family));
    for (const LinkId l : topology.links_from(id)) {
      const topology::Link& link = topology.link(l);
      const Device& to = topology.device(link.to);
      hash = mix(mix(hash, static_cast<std::uint64_t>(link.kind)),
                 std::bit_cast<std::uint64_t>(link.line_rate.value()));
      hash = mix(mix(hash, std::bit_cast<std::uint64_t>(link.capacity.value())),
                 static_cast<std::uint64_t>(to.kind));
      hash = mix(hash, to.node == node ? to.local + 1 : 0);
      if (topology.type_of(l).transport == "tcp") hash = mix(hash, 3);
      if (!router.works(l)) hash = mix(hash, 4);
      if (!searches->see(l)) hash = mix(hash, 5);
    }
  }
  return hash | 1;
}

// Reduction in the NVSwitch needs every link of every GPU to it.
bool Placer::Impl::reaches_switches(DeviceId gpu) const {
  const auto links = topology.links_from(gpu);
  return std::all_of(links.begin(), links.end(), [&](LinkId l) {
    return router.works(l) || topology.device(topology.link(l).to).kind != DeviceKind::nvswitch;
  });
}

// NCCL treats ranks that reach each other over NVLink alone as one node, even across chassis.
std::uint64_t Placer::Impl::box_of(DeviceId gpu) const {
  const std::uint32_t domain = router.scale_up_domain(gpu);
  if (domain != kNone && domain_spans_nodes[domain]) return (1ULL << 32) + domain;
  return topology.device(gpu).node;
}

// Which accelerators of other nodes a box's accelerators are cabled to; `nodes` ascend. The nodes' own hashes
// do not say it, so that the nodes of a torus are alike.
std::uint64_t Placer::Impl::wiring_between(std::span<const std::uint32_t> nodes,
                                           std::span<const DeviceId> gpus) const {
  std::uint64_t hash = 1;
  for (const DeviceId gpu : gpus)
    for (const LinkId l : topology.links_from(gpu)) {
      const Device& to = topology.device(topology.link(l).to);
      if (to.kind != DeviceKind::accelerator || to.node == topology.device(gpu).node) continue;
      const auto at = std::lower_bound(nodes.begin(), nodes.end(), to.node);
      const bool inside = at != nodes.end() && *at == to.node;
      hash = mix(mix(hash, static_cast<std::uint64_t>(inside ? at - nodes.begin() : -1)), to.local);
    }
  return hash;
}

const nccl::Box* Placer::Impl::graphs_of(const PlacedBox& box, bool inter) const {
  std::vector<std::uint32_t> nodes;
  Searches::BoxKey key;
  std::get<2>(key) = inter;
  Searches::Allowed here = allowed;
  for (const DeviceId gpu : box.gpus) here.nvlink_sharp = here.nvlink_sharp && reaches_switches(gpu);
  std::get<3>(key) = here;
  for (const DeviceId gpu : box.gpus) {
    const Device& d = topology.device(gpu);
    if (nodes.empty() || nodes.back() != d.node) {
      nodes.push_back(d.node);
      std::get<0>(key).push_back(signature(d.node));
    }
    std::get<1>(key).push_back(static_cast<std::uint32_t>(nodes.size() << 16) + d.local);
  }
  if (nodes.size() > 1) std::get<4>(key) = wiring_between(nodes, box.gpus);
  const auto search_for = [&]() -> Searches::Search& {
    const std::lock_guard lock(searches->found->mutex);
    return searches->found->boxes[std::move(key)];
  };
  Searches::Search& search = search_for();
  std::call_once(search.once, [&] {
    search.box = std::make_unique<nccl::Box>(
        nccl::make_box(nccl::System(topology, nodes, box.gpus, inter, {here.pxn, here.peers},
                                    [this](LinkId link) { return searches->see(link) || !of_a_nic(link); }),
                       here.nvlink_sharp, here.sharp));
  });
  return search.box.get();
}

// The graphs were made for some box of this shape; its NICs are at the same places in this box.
void Placer::Impl::find_nics(const PlacedBox& box, std::vector<DeviceId>& out) const {
  std::vector<std::uint32_t> nodes;
  for (const DeviceId gpu : box.gpus)
    if (const std::uint32_t node = topology.device(gpu).node; nodes.empty() || nodes.back() != node)
      nodes.push_back(node);
  const nccl::System& system = box.graphs->system;
  for (int n = 0; n < system.nets(); ++n) {
    const nccl::Vertex& net = system.net(n);
    if (net.rails > 1) {
      out.emplace_back();
      continue;
    }
    const auto nics = topology.nics_of_node(nodes[net.node]);
    const auto nic = std::find_if(nics.begin(), nics.end(), [&](DeviceId id) {
      return topology.device(id).local == static_cast<std::uint32_t>(net.number);
    });
    if (nic == nics.end()) throw InternalError("a box lacks a NIC that its shape has");
    out.push_back(*nic);
  }
}

bool Placer::Impl::follow(const PlacedBox& like, std::size_t like_nics, PlacedBox& box,
                          std::vector<DeviceId>& nics) const {
  const std::uint32_t there = node_of(like), here = node_of(box);
  if (there == kNone || here == kNone || signature(there) != signature(here)) return false;
  const auto same_place = [&](DeviceId a, DeviceId b) {
    return topology.device(a).local == topology.device(b).local;
  };
  if (!std::equal(like.gpus.begin(), like.gpus.end(), box.gpus.begin(), box.gpus.end(), same_place))
    return false;
  box.graphs = like.graphs;
  const auto theirs = topology.nics_of_node(there), ours = topology.nics_of_node(here);
  const std::size_t end = nics.size();
  for (std::size_t i = like_nics; i < end; ++i) {
    const DeviceId nic = nics[i];
    const auto place = std::find(theirs.begin(), theirs.end(), nic) - theirs.begin();
    nics.push_back(nic.valid() ? ours[static_cast<std::size_t>(place)] : nic);
  }
  return true;
}

Placer::Placer(const topology::Router& router, const Overrides& overrides, std::shared_ptr<Searches> searches)
    : impl_(std::make_unique<Impl>(router, overrides, std::move(searches))) {}
Placer::~Placer() = default;

std::uint64_t Placer::signature(std::uint32_t node) const {
  return impl_->signature(node);
}

// Groups the ranks by box; returns the beginning of each box's ranks, and the end of the last one's. Boxes
// are numbered in the order in which ranks name them.
std::vector<std::size_t> Placer::Impl::group_by_box(std::span<const DeviceId> gpus,
                                                    std::vector<std::uint32_t>& positions) const {
  std::unordered_map<std::uint64_t, std::size_t> seen;  // boxes by number, once a smaller number comes
  std::uint64_t last = ~0ULL, largest = 0;
  std::size_t at = 0;
  std::vector<std::uint64_t> numbers;
  std::vector<std::size_t> box_of_rank(gpus.size()), begin{0};
  for (std::uint32_t r = 0; r < gpus.size(); ++r) {
    const std::uint64_t box = box_of(gpus[r]);
    if (box != last) {
      last = box;
      at = numbers.size();
      if (!numbers.empty() && box <= largest) {
        for (std::size_t b = seen.size(); b < numbers.size(); ++b) seen.emplace(numbers[b], b);
        if (const auto known = seen.find(box); known != seen.end()) at = known->second;
      }
      if (at == numbers.size()) {
        numbers.push_back(box);
        begin.push_back(0);
      }
      largest = std::max(largest, box);
    }
    box_of_rank[r] = at;
    ++begin[at + 1];
  }
  std::partial_sum(begin.begin(), begin.end(), begin.begin());
  positions.resize(gpus.size());
  std::vector<std::size_t> next(begin.begin(), begin.end() - 1);
  for (std::uint32_t r = 0; r < gpus.size(); ++r) positions[next[box_of_rank[r]]++] = r;
  return begin;
}

Placement Placer::place(std::span<const DeviceId> gpus) const {
  Placement result;
  result.ranks = static_cast<std::uint32_t>(gpus.size());
  const std::vector<std::size_t> begin = impl_->group_by_box(gpus, result.positions);
  // NCCL numbers the GPUs of a box by their place in it, whatever their ranks.
  const auto before = [&](std::uint32_t a, std::uint32_t b) {
    const Device &x = impl_->topology.device(gpus[a]), &y = impl_->topology.device(gpus[b]);
    return std::tie(x.node, x.local) < std::tie(y.node, y.local);
  };
  result.boxes.resize(begin.size() - 1);
  for (std::size_t b = 0; b < result.boxes.size(); ++b) {
    const auto ranks = std::span(result.positions).subspan(begin[b], begin[b + 1] - begin[b]);
    if (!std::is_sorted(ranks.begin(), ranks.end(), before)) std::sort(ranks.begin(), ranks.end(), before);
    result.boxes[b].ranks = ranks;
  }
  for (const std::uint32_t r : result.positions) result.gpus.push_back(gpus[r]);

  std::vector<const nccl::Box*> shapes;  // in the order of the boxes: addresses have none that lasts
  std::vector<std::size_t> nics_begin;   // by box
  std::uint32_t min_local = kNone, max_local = 0;
  for (std::size_t b = 0; b < result.boxes.size(); ++b) {
    PlacedBox& box = result.boxes[b];
    box.gpus = std::span(result.gpus).subspan(begin[b], box.ranks.size());
    nics_begin.push_back(result.nics.size());
    const bool follows = b > 0 && impl_->follow(result.boxes[b - 1], nics_begin[b - 1], box, result.nics);
    if (!follows) {
      box.graphs = impl_->graphs_of(box, result.boxes.size() > 1);
      impl_->find_nics(box, result.nics);
    }
    if (b == 0) result.nics.reserve(result.nics.size() * result.boxes.size());
    if (std::find(shapes.begin(), shapes.end(), box.graphs) == shapes.end()) shapes.push_back(box.graphs);
    min_local = std::min(min_local, static_cast<std::uint32_t>(box.gpus.size()));
    max_local = std::max(max_local, static_cast<std::uint32_t>(box.gpus.size()));
  }
  nics_begin.push_back(result.nics.size());
  for (std::size_t b = 0; b < result.boxes.size(); ++b)
    result.boxes[b].nics = std::span(result.nics).subspan(nics_begin[b], nics_begin[b + 1] - nics_begin[b]);
  const std::lock_guard lock(impl_->searches->found->mutex);
  const auto boxes = static_cast<std::uint32_t>(result.boxes.size());
  std::unique_ptr<nccl::Tuner>& tuner =
      impl_->searches->found->tuners[{shapes, boxes, result.ranks, min_local, max_local, impl_->asked}];
  if (!tuner)
    tuner = std::make_unique<nccl::Tuner>(nccl::agree(
        shapes, static_cast<int>(boxes), static_cast<int>(result.ranks), static_cast<int>(min_local),
        static_cast<int>(max_local), impl_->allowed.sharp, impl_->asked));
  result.tuner = tuner.get();
  return result;
}
}  // namespace topsim::collective
