#include "topology/routing/sites.hpp"

#include <algorithm>
#include <map>

namespace topsim::topology {
namespace {

constexpr std::uint32_t kNone = Router::kNowhere;

// The index of `what` in `list`; appends it if it is new.
std::uint32_t index_in(std::vector<std::uint32_t>& list, std::uint32_t what) {
  const auto at = std::find(list.begin(), list.end(), what) - list.begin();
  if (at == static_cast<std::ptrdiff_t>(list.size())) list.push_back(what);
  return static_cast<std::uint32_t>(at);
}

}  // namespace

std::uint32_t Sites::Sets::number_of(const std::vector<std::uint32_t>& members) {
  if (!sets_.empty() && sets_.back() == members) return size() - 1;
  if (members.empty()) return kNone;
  if (const std::uint32_t known = place_of(members.front()).first; known != kNone)
    return sets_[known] == members ? known : kNone;
  for (std::uint32_t at = 0; at < members.size(); ++at) {
    const std::uint32_t member = members[at];
    if (place_of(member).first != kNone) return kNone;
    if (member >= place_of_.size()) place_of_.resize(member + 1, {kNone, kNone});
    place_of_[member] = {size(), at};
  }
  sets_.push_back(members);
  return size() - 1;
}

std::pair<std::uint32_t, std::uint32_t> Sites::Sets::place_of(std::uint32_t member) const {
  return member < place_of_.size() ? place_of_[member] : std::pair(kNone, kNone);
}

Sites::Sites(const NodePaths& nodes, const FabricPorts& ports, const FabricRoutes& fabric, const Cells& cells,
             bool regular)
    : nodes_(nodes.nodes()), standings_(nodes.nodes()) {
  std::map<Key, std::uint32_t> kinds;
  Key previous, key;
  std::uint32_t kind = kNone;
  for (std::uint32_t node = 0; node < nodes_; ++node) {
    key.assign({nodes.shape_number(node), cells.kind(node)});
    Router::Standing& standing = standings_[node];
    if (regular) {
      leaves_.clear(), pods_.clear();
      regular = add_ports(node, nodes, ports, fabric, key);
      // The kinds of the site's cells; the site's number says which cells they are.
      for (const auto* switches : {&leaves_, &pods_})
        for (const std::uint32_t each : *switches)
          for (std::uint32_t which = 0; which < 2 && regular; ++which)
            key.push_back(cells.kind(bundle_cell(each, which)));
      if (!leaves_.empty()) standing.site = sites_.number_of(leaves_);
      if (!pods_.empty()) standing.region = regions_.number_of(pods_);
      regular = regular && (leaves_.empty() || standing.site != kNone) &&
                (pods_.empty() || standing.region != kNone);
    }
    if (kind == kNone || key != previous) {
      kind = kinds.try_emplace(key, static_cast<std::uint32_t>(kinds.size())).first->second;
      previous = key;
    }
    standing.kind = kind;
  }
  if (!regular)
    for (Router::Standing& standing : standings_) standing.site = standing.region = kNone;
}

// Adds to the key how the node's ports are connected. False: the fabric's routes do not follow from that.
bool Sites::add_ports(std::uint32_t node, const NodePaths& nodes, const FabricPorts& ports,
                      const FabricRoutes& fabric, Key& key) {
  const auto& members = nodes.shape(node).members();
  DeviceId leaf;  // of the previous port: mostly the next one's too
  std::optional<FabricRoutes::LeafBundles> leaf_bundles;
  for (std::uint32_t at = 0; at < members.size(); ++at) {
    if (!members[at].fabric) continue;
    const auto cables = ports.cables(nodes.device(node, at));
    if (cables.empty()) return false;
    if (cables.front().at != leaf) leaf_bundles = fabric.leaf_bundles(cables.front().at);
    if (!leaf_bundles) return false;
    leaf = cables.front().at;
    key.push_back(at);
    key.push_back(cables.size());
    for (const FabricPorts::Cable& cable : cables) {
      key.push_back(static_cast<std::uint64_t>(cable.up_latency.count()));
      key.push_back(static_cast<std::uint64_t>(cable.down_latency.count()));
    }
    key.push_back(index_in(leaves_, leaf_bundles->leaf));
    key.push_back(leaf_bundles->pod == kNone ? kNone : index_in(pods_, leaf_bundles->pod));
    for (const Duration latency : leaf_bundles->latencies)
      key.push_back(static_cast<std::uint64_t>(latency.count()));
  }
  return true;
}

Router::Owner Sites::owner(std::uint32_t cell) const {
  using Kind = Router::Owner::Kind;
  if (cell < nodes_) return {Kind::node, cell, 0};
  const std::uint32_t bundle = cell - nodes_;
  for (const auto& [sets, kind] : {std::pair(&sites_, Kind::site), std::pair(&regions_, Kind::region)})
    if (const auto [set, at] = sets->place_of(bundle / 2); set != kNone)
      return {kind, set, 2 * at + bundle % 2};
  return {Kind::nobody, 0, 0};
}

std::uint32_t Sites::cell(Router::Owner owner) const {
  if (owner.kind == Router::Owner::Kind::node) return owner.number;
  const Sets& sets = owner.kind == Router::Owner::Kind::site ? sites_ : regions_;
  return bundle_cell(sets.member(owner.number, owner.at / 2), owner.at % 2);
}
}  // namespace topsim::topology
