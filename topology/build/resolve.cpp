// A fabric as the scenario specifies it: the recipe's figures, except where a key overrides them.
#include <fmt/format.h>

#include <algorithm>

#include "sim/base/error.hpp"
#include "topology/build/fabric.hpp"
#include "topology/catalogue/fabric_recipe.hpp"

namespace topsim::topology {
namespace {

std::optional<FabricKind> kind_of_nodes(std::string_view name) {
  for (const FabricTraits& each : kFabricTraits)
    if (each.of_nodes && each.name == name) return each.kind;
  return std::nullopt;
}

void take_tiers(FabricSpec& spec, const FabricRecipe& recipe) {
  if (recipe.tiers.empty()) return;
  // A switch given by the user applies to all tiers for which none is named.
  if (spec.switch_model.use.empty()) {
    const auto take = [&](SwitchChoice& choice, std::size_t tier) {
      if (choice.use.empty() && tier < recipe.tiers.size()) choice.use = recipe.tiers[tier].switch_id;
    };
    take(spec.spine_switch, 1);
    take(spec.core_switch, 2);
    spec.switch_model.use = recipe.tiers.front().switch_id;
  }
  if (spec.oversubscription.empty())
    for (const FabricTier& tier : recipe.tiers) spec.oversubscription.push_back(tier.oversubscription);
  for (const FabricTier& tier : recipe.tiers) spec.usual_length.push_back(tier.length);
  // A recipe of rails that is built as a fat tree does not define how many leaves a node uses.
  if (spec.kind == FabricKind::fat_tree && recipe.kind == FabricKind::fat_tree)
    spec.node_leaves = recipe.tiers.front().switches_per_unit;
  if (!spec.tiers && recipe.tiers.size() == 1 && recipe.kind == FabricKind::fat_tree) spec.tiers = 1;
}

void take_recipe(FabricSpec& spec, const FabricRecipe& recipe) {
  if (spec.kind == FabricKind::none) spec.kind = recipe.kind;
  if (spec.link.use.empty()) {
    spec.link.use = recipe.link;
    if (spec.uplink.use.empty()) spec.uplink.use = recipe.uplink;
  }
  if (!spec.routing) spec.routing = recipe.routing;
  take_tiers(spec, recipe);
  spec.unit_nodes = recipe.unit_nodes;
  if (!spec.nodes_per_pod && !spec.leaves_per_pod && recipe.pod_nodes > 0)
    spec.nodes_per_pod = recipe.pod_nodes;
  if (!spec.planes && recipe.planes > 1) spec.planes = recipe.planes;
  if (!spec.leaves_per_rail && recipe.leaves_per_rail > 1) spec.leaves_per_rail = recipe.leaves_per_rail;
  if (spec.dimensions.empty()) {
    spec.dimensions = recipe.dims;
    if (recipe.groups > 0)
      spec.dimensions = {recipe.groups, recipe.routers, recipe.terminals, recipe.global_links};
  }
  // A scenario may say another number of groups or cables; the recipe's groups stay wired as they are.
  if (recipe.groups > 0 && spec.dimensions.size() == 4 && spec.dimensions[1] == recipe.routers)
    spec.dimensions.push_back(recipe.local_links);
}

// A key may have an effect in several families.
constexpr unsigned bit(FabricFamily family) {
  return 1U << static_cast<unsigned>(family);
}
constexpr unsigned kClos = bit(FabricFamily::clos), kDragonfly = bit(FabricFamily::dragonfly),
                   kTorus = bit(FabricFamily::torus), kDirect = bit(FabricFamily::direct);

bool says(const LinkChoice& l) {
  return !l.use.empty() || l.bandwidth || l.capacity || l.latency;
}
bool says(const SwitchChoice& c) {
  return !c.use.empty() || c.ports || c.latency;
}

}  // namespace

void refuse_idle_keys(const FabricSpec& asked, FabricKind kind) {
  if (!traits(kind).of_nodes) return;  // build_fabric() refuses it, whatever its keys
  struct Key {
    const char* name;
    bool given;
    unsigned families;
  };
  const Key keys[] = {
      {"link", says(asked.link), kClos | kDragonfly | kTorus | kDirect},
      {"uplink", says(asked.uplink), kClos | kDragonfly},
      {"switch", says(asked.switch_model), kClos | kDragonfly},
      {"spine_switch", says(asked.spine_switch), kClos},
      {"core_switch", says(asked.core_switch), kClos},
      {"oversubscription", asked.oversubscription != std::vector<double>(asked.oversubscription.size(), 1.0),
       kClos},
      {"tiers", asked.tiers.has_value(), kClos},
      {"nodes_per_leaf", asked.nodes_per_leaf.has_value(), kClos},
      {"leaves_per_pod", asked.leaves_per_pod.has_value(), kClos},
      {"nodes_per_pod", asked.nodes_per_pod.has_value(), kClos},
      {"planes", asked.planes.value_or(1) > 1, kClos},
      {"leaves_per_rail", asked.leaves_per_rail.value_or(1) > 1, kClos},
      {"length", !asked.length.empty(), kClos | kDragonfly | kTorus | kDirect},
      {"sharp", asked.sharp, kClos | kDragonfly},
      {"chips", !asked.chips.empty(), 0},
      {"dimensions", !asked.dimensions.empty(), kDragonfly | kTorus},
      {"rings", asked.rings.has_value(), traits(kind).rings ? kTorus : 0U},
  };
  std::vector<Problem> problems;
  for (const Key& key : keys) {
    if (!key.given || (key.families & bit(traits(kind).family)) != 0) continue;
    problems.push_back(
        {{},
         std::string("topology.fabric.") + key.name,
         kind == FabricKind::none
             ? fmt::format("the fabric has \"{}\", and its kind is none", key.name)
             : fmt::format("a fabric of kind {} has no use for \"{}\"", name_of(kind), key.name),
         {},
         kind == FabricKind::none
             ? "say how it is arranged: \"kind\": \"rail\", or fat-tree, rail-only, dragonfly, ...; or leave "
               "it out"
             : "leave it out, or choose another kind",
         {}});
  }
  if (!problems.empty()) throw ConfigError(std::move(problems));
}

void refuse_idle_ratios(const FabricSpec& asked) {
  const std::vector<double>& ratios = asked.oversubscription;
  const auto refuse = [](std::string path, std::string message) {
    throw ConfigError({Problem{{},
                               std::move(path),
                               std::move(message),
                               {},
                               "a ratio for each tier that has uplinks, from the leaves up",
                               {}}});
  };
  constexpr int kMostTiers = 3;
  const auto tiers = static_cast<std::size_t>(asked.tiers.value_or(kMostTiers));
  if (ratios.size() > tiers && ratios.size() > 1)
    refuse("topology.fabric.oversubscription", fmt::format("{} ratios for a fabric of {} tier{} of switches",
                                                           ratios.size(), tiers, tiers == 1 ? "" : "s"));
  // Two leaves without spines have cables between them.
  if (tiers > 1 && ratios.size() == tiers && ratios.back() != 1)
    refuse(fmt::format("topology.fabric.oversubscription[{}]", tiers - 1),
           fmt::format("nothing is above the {} of this fabric", tiers == 2 ? "spines" : "cores"));
}

Metres FabricSpec::cable_length(std::size_t tier) const {
  constexpr double kAcrossARoom = 20;
  const std::vector<Metres>& lengths = length.empty() ? usual_length : length;
  return lengths.empty() ? Metres{kAcrossARoom} : lengths[std::min(tier, lengths.size() - 1)];
}

FabricSpec resolve_fabric(const FabricSpec& asked, const Catalogue& catalogue) {
  FabricSpec spec = asked;
  const std::optional<FabricKind> named = kind_of_nodes(spec.use);
  if (named && spec.kind == FabricKind::none) {  // "fabric": "rail"
    spec.kind = *named;
    spec.use.clear();
  } else if (!spec.use.empty()) {
    take_recipe(spec, Hardware(catalogue).fabric(spec.use, "topology.fabric.use"));
  }
  return spec;
}

}  // namespace topsim::topology
