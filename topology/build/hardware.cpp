#include "topology/build/hardware.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>

#include "sim/base/error.hpp"
#include "topology/credits.hpp"

namespace topsim::topology {
namespace {

// Reports an error of the catalogue at the place where the scenario gives the name.
template <class LookUp>
const auto& at(const std::string& path, LookUp look_up) {
  try {
    return look_up();
  } catch (const ConfigError& error) {
    std::vector<Problem> problems = error.problems();
    for (Problem& problem : problems)
      if (problem.path.empty() && problem.place.file.empty()) problem.path = path;
    throw ConfigError(std::move(problems));
  }
}

// For a link that no switch names: those of its kind with the slowest ports that are as fast, else with the
// fastest, and the rate of these.
std::pair<double, std::vector<std::string>> next_switches(const Catalogue& catalogue, const LinkEntry& link) {
  std::map<double, std::vector<std::string>> by_rate;
  for (const CatalogueEntry& entry : catalogue.entries()) {
    if (entry.category != "switch") continue;
    double rate = 0;
    for (const std::string& id : catalogue.network_switch(entry.id).links)
      if (const LinkEntry& spoken = catalogue.link(id); spoken.kind == link.kind)
        rate = std::max(rate, spoken.line_rate.value());
    if (rate > 0) by_rate[rate].push_back(entry.id);
  }
  if (by_rate.empty()) return {};
  auto nearest = by_rate.lower_bound(link.line_rate.value());
  if (nearest == by_rate.end()) --nearest;
  return *nearest;
}

// What to write for such a link.
std::string stand_ins(const Catalogue& catalogue, const LinkEntry& link) {
  const auto& [rate, ids] = next_switches(catalogue, link);
  if (ids.empty()) return "name one: topsim list hardware names the switches of each fabric";
  const bool as_fast = rate >= link.line_rate.value();
  return fmt::format("the {} ports, {:g} Gbit/s, are those of {}: name one, as \"switch\": \"{}\"{}",
                     as_fast ? "next faster" : "fastest", rate * 8e-9, fmt::join(ids, ", "), ids.front(),
                     as_fast ? "" : "; it is simulated as if it were as fast");
}

// Null: no switch speaks the link.
const SwitchEntry* find_usual_switch(const Catalogue& catalogue, const LinkEntry& link) {
  // Prefers switches made for the link to others that support it, these to Ethernet of the same speed (clouds
  // do not publish theirs: EFA), and excludes chassis of line cards; then the one with the most ports, then
  // the first by name.
  constexpr int kMostPortsOfABox = 256;
  const SwitchEntry* best = nullptr;
  std::pair<int, int> best_rank;
  for (const CatalogueEntry& entry : catalogue.entries()) {
    if (entry.category != "switch") continue;
    const SwitchEntry& candidate = catalogue.network_switch(entry.id);
    const auto& links = candidate.links;
    const bool speaks = std::find(links.begin(), links.end(), link.id) != links.end();
    const std::string first = links.empty() ? std::string() : catalogue.link(links.front()).transport;
    const bool ethernet = first == "roce" || first == "tcp";
    if (!speaks && !(ethernet && candidate.port_rate == link.line_rate)) continue;
    if (candidate.ports > kMostPortsOfABox) continue;
    const std::pair rank(!speaks ? 0 : links.front() == link.id ? 2 : 1, candidate.ports);
    if (best != nullptr && rank <= best_rank) continue;
    best = &candidate;
    best_rank = rank;
  }
  return best;
}

}  // namespace

const NodeRecipe& Hardware::node(std::string_view id, const std::string& path) const {
  return at(path, [&]() -> const NodeRecipe& { return catalogue_.node(id); });
}
const NicEntry& Hardware::nic(std::string_view id, const std::string& path) const {
  return at(path, [&]() -> const NicEntry& { return catalogue_.nic(id); });
}
const SwitchEntry& Hardware::switch_entry(std::string_view id, const std::string& path) const {
  return at(path, [&]() -> const SwitchEntry& { return catalogue_.network_switch(id); });
}
bool Hardware::lists(std::string_view category, std::string_view id) const {
  const auto& all = catalogue_.entries();
  return std::any_of(all.begin(), all.end(), [&](const CatalogueEntry& entry) {
    return entry.category == category && entry.id == id;
  });
}
const Accelerator* Hardware::find_accelerator(std::string_view id) const {
  return lists("accelerator", id) ? &catalogue_.accelerator(id) : nullptr;
}
const SwitchEntry* Hardware::find_switch(std::string_view id) const {
  return lists("switch", id) ? &catalogue_.network_switch(id) : nullptr;
}
const Accelerator& Hardware::accelerator(std::string_view id, const std::string& path) const {
  return at(path, [&]() -> const Accelerator& { return catalogue_.accelerator(id); });
}
const FabricRecipe& Hardware::fabric(std::string_view id, const std::string& path) const {
  return at(path, [&]() -> const FabricRecipe& { return catalogue_.fabric(id); });
}

LinkFigures Hardware::link(const LinkChoice& choice, const std::string& path) const {
  LinkEntry link = at(path, [&]() -> const LinkEntry& { return catalogue_.link(choice.use); });
  std::string id = link.id;
  if (choice.bandwidth) {  // part of the id, which distinguishes types of links
    link.line_rate = *choice.bandwidth;
    const std::string rate = fmt::format("{:g} Gbit/s", link.line_rate.value() * 8e-9);
    id += " at " + rate;
    // Names of other links are shown with their speed.
    if (link.is_fabric() && link.kind != LinkKind::torus) link.label += ", here " + rate;
  }
  if (choice.capacity || choice.latency) id += " (changed)";
  const auto& packets = link.kind == LinkKind::ethernet ? ethernet_ : infiniband_;
  if (packets && (link.kind == LinkKind::ethernet || link.kind == LinkKind::infiniband))
    link.mtu = packets->payload, link.header = packets->around;
  LinkFigures f;
  f.kind = link.kind;
  f.type = {id, link.label, link.source, link.transport};
  if (link.kind == LinkKind::infiniband) f.type.on_the_way = payload_on_the_way(link.mtu, link.header);
  f.line_rate = link.line_rate;
  f.capacity = choice.capacity.value_or(payload_capacity(link));
  f.capacity_at_nic = choice.capacity.value_or(payload_capacity_at_nic(link));
  f.latency = link.latency;
  f.host_latency = link.host_latency.count() > 0 ? link.host_latency : link.latency;
  f.nic_base = link.nic_base;
  f.hop = link.hop;
  f.fec = link.fec;
  f.ring_axis = link.ring_axis;
  f.ring_cube = link.ring_cube;
  f.routing = link.routing.value_or(usual_routing(link.kind));
  if (choice.latency) {
    f.latency = f.host_latency = *choice.latency;
    if (link.is_fabric()) f.hop = choice.latency;
  }
  return f;
}

const SwitchEntry& Hardware::usual_switch(const std::string& link, const std::string& path) const {
  const LinkEntry& entry = at(path, [&]() -> const LinkEntry& { return catalogue_.link(link); });
  if (const SwitchEntry* best = find_usual_switch(catalogue_, entry)) return *best;
  throw ConfigError({Problem{{},
                             path,
                             fmt::format("no switch of the catalogue speaks {}", link),
                             {},
                             stand_ins(catalogue_, entry),
                             {}}});
}

Duration Hardware::usual_switch_latency(const std::string& link) const {
  const LinkEntry& entry = catalogue_.link(link);
  if (const SwitchEntry* usual = find_usual_switch(catalogue_, entry)) return usual->port_to_port;
  const auto& [rate, ids] = next_switches(catalogue_, entry);
  return ids.empty() ? Duration{} : catalogue_.network_switch(ids.front()).port_to_port;
}

Crossing Hardware::crossing(const LinkFigures& link, Duration box, std::optional<Metres> length) {
  if (link.hop && !length && box <= *link.hop) return {*link.hop, link.latency};
  const Duration cable = fibre(length.value_or(FabricSpec{}.cable_length(0)));
  return {box + link.fec + cable, link.latency + cable};
}

Duration fibre(Metres length) {
  return Duration(
      static_cast<std::int64_t>(length.value() * static_cast<double>(kPropagationPerMetre.count())));
}

std::vector<std::string> Hardware::nodes_with_nics(std::string_view accelerator, int count) const {
  std::vector<std::string> out;
  for (const CatalogueEntry& entry : catalogue_.entries()) {
    if (entry.category != "node") continue;
    const NodeRecipe& recipe = catalogue_.node(entry.id);
    int ports = 0;
    for (const NicGroup& group : recipe.nics) ports += group.compute ? group.count * group.ports : 0;
    if (recipe.accelerator == accelerator && (recipe.compute_nics() == count || ports == count))
      out.push_back(entry.id);
  }
  return out;
}

LinkFigures Hardware::limited(LinkFigures f, BytesPerSecond rate) {
  if (f.line_rate <= rate) return f;
  const double share = rate / f.line_rate;
  f.line_rate = rate;
  f.capacity = f.capacity * share;
  f.capacity_at_nic = f.capacity_at_nic * share;
  return f;
}

Link bundle(const LinkFigures& figures, std::uint16_t type, int count, bool at_nic) {
  Link link{};
  link.kind = figures.kind;
  link.count = static_cast<std::uint16_t>(count);
  link.type = type;
  const double cables = count;
  link.line_rate = figures.line_rate * cables;
  link.capacity = (at_nic ? figures.capacity_at_nic : figures.capacity) * cables;
  link.latency = figures.latency;
  return link;
}

}  // namespace topsim::topology
