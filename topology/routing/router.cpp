#include <fmt/format.h>

#include "topology/routing/router_impl.hpp"

namespace topsim::topology {
Router::Router(const Topology& topology, std::uint64_t seed, std::span<const LinkId> dead,
               std::uint32_t queue_pairs, std::span<const SlowLink> slow)
    : impl_(std::make_unique<Impl>(topology, seed, dead, queue_pairs, slow)) {}
Router::~Router() = default;
Router::Router(Router&&) noexcept = default;

void Router::route(const RouteQuery& query, Route& out) const {
  impl_->route(query, Impl::Grain::links, out);
}

void Router::sketch(const RouteQuery& query, Route& out) const {
  impl_->route(query, Impl::Grain::stretches, out);
}

Router::Place Router::place(LinkId stretch) const {
  return impl_->cells->place(stretch);
}

void Router::expand(Place place, std::vector<LinkShare>& out) const {
  impl_->cells->expand(place, out);
}

bool Router::works(LinkId link) const {
  return impl_->works(link);
}

std::uint32_t Router::queue_pairs() const {
  return impl_->queue_pairs;
}

std::uint32_t Router::cells() const {
  return impl_->cells->size();
}

std::uint64_t Router::kind_of_cell(std::uint32_t cell) const {
  return impl_->cells->kind(cell);
}

std::uint32_t Router::nics_of(DeviceId device) const {
  const std::uint32_t node = impl_->node_of(device);
  if (node == DeviceId::kNone) return 1;
  const std::uint32_t turns = impl_->nodes.shape(node).port_turns(impl_->nodes.position(device));
  if (impl_->dead.empty()) return turns;
  // An accelerator that has lost its NIC moves to one other NIC, not to all that are equally near.
  return std::min(turns, impl_->nodes.shape(node).nics_per_accelerator());
}

BytesPerSecond Router::nic_rate(DeviceId device) const {
  const Topology& t = impl_->topology;
  double rate = 0;
  if (const DeviceId nic = impl_->nearest_port(device, 0); nic.valid())
    for (const LinkId link : t.links_from(nic))
      if (t.device(t.link(link).to).node != t.device(nic).node) rate += t.link(link).line_rate.value();
  return BytesPerSecond(rate);
}

Router::Standing Router::standing(std::uint32_t node) const {
  return impl_->sites->standing(node);
}

Router::Owner Router::owner(std::uint32_t cell) const {
  return impl_->sites->owner(cell);
}

std::uint32_t Router::cell(Owner owner) const {
  return impl_->sites->cell(owner);
}

Router::TripBetween Router::trip(const RouteQuery& query) const {
  return impl_->trip(query);
}

std::uint32_t Router::turns() const {
  return impl_->accelerator_turns;
}

std::uint32_t Router::sites() const {
  return impl_->sites->sites();
}

std::uint32_t Router::regions() const {
  return impl_->sites->regions();
}

DeviceId Router::nic_for(DeviceId gpu, DeviceId to) const {
  return impl_->rail_port(gpu, to, 0);
}

std::uint32_t Router::scale_up_domain(DeviceId gpu) const {
  return impl_->domain[gpu.index()];
}

const Topology& Router::topology() const {
  return impl_->topology;
}

std::uint32_t Router::node_shape(std::uint32_t node) const {
  return impl_->nodes.shape_number(node);
}

std::uint32_t Router::place_of(DeviceId device) const {
  return impl_->nodes.position(device);
}

std::optional<std::uint32_t> Router::place_of(LinkId link, std::uint32_t node) const {
  return impl_->nodes.position(link, node);
}

LinkId Router::link_at(std::uint32_t node, std::uint32_t place) const {
  return impl_->nodes.link(node, place);
}

std::uint32_t Router::links_of_cell(std::uint32_t cell) const {
  return impl_->cells->links_of(cell);
}

std::string Router::why_unreachable(const RouteQuery& query) const {
  const DeviceId from = query.from, to = query.to;
  const Topology& t = impl_->topology;
  const std::string sentence = fmt::format("{} cannot reach {}: ", t.name(from), t.name(to));
  const std::uint32_t a = impl_->node_of(from), b = impl_->node_of(to);
  if (a == b && a != DeviceId::kNone) return sentence + fmt::format("no bus joins them inside node{}", a);
  for (const auto& [device, node] : {std::pair(from, a), std::pair(to, b)}) {
    if (node == DeviceId::kNone) continue;
    if (t.nics_of_node(node).empty() && !impl_->nearest_port(device, 0).valid())
      return sentence + fmt::format("node{} has no NIC", node);
    if (!impl_->nearest_port(device, 0).valid())
      return sentence + (t.has_explicit_names() && t.fabric_kind == FabricKind::none
                             ? fmt::format("no cable leaves node{}'s NICs (topology.links; of an imported "
                                           "file, topo import --nic-link)",
                                           node)
                         : t.fabric_kind == FabricKind::none
                             ? "the topology has no fabric between nodes (topology.fabric)"
                             : fmt::format("no working cable leaves node{}'s NICs", node));
  }
  if (a == DeviceId::kNone || b == DeviceId::kNone) return sentence + "one of them is outside every node";
  // Those asked for or, where the ends do not reach these, their own.
  RouteQuery own = query;
  own.from_nic = own.to_nic = {};
  Impl::Stops by = impl_->stops(query);
  if (!impl_->nic_choice(query, by).reachable) by = impl_->stops(own);
  const DeviceId leave = by.leave.valid() ? by.leave : impl_->nearest_port(from, query.connection);
  return sentence +
         fmt::format("no working path joins {} and {} over the fabric", t.name(leave), t.name(by.enter));
}

}  // namespace topsim::topology
