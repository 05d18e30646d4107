#include "topology/build/hardware.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "sim/base/error.hpp"
#include "sim/base/suggest.hpp"
#include "topology/catalogue/impl.hpp"

namespace topsim::topology {
namespace {

template <class T>
const T& entry(const ById<T>& entries, std::string_view what, std::string_view id, const std::string& path) {
  const auto found = entries.find(id);
  if (found != entries.end()) return found->second;
  const std::vector<std::string> names = names_of(entries);
  const auto close = closest(id, names);
  throw ConfigError({Problem{{},
                             path,
                             fmt::format("unknown {} \"{}\"", what, id),
                             close ? fmt::format("did you mean \"{}\"?", *close) : std::string(),
                             "known: " + join(names),
                             {}}});
}

}  // namespace

const NodeRecipe& Hardware::node(std::string_view id, const std::string& path) const {
  return entry(catalogue_.impl().nodes, "node", id, path);
}
const NicEntry& Hardware::nic(std::string_view id, const std::string& path) const {
  return entry(catalogue_.impl().nics, "NIC", id, path);
}
const SwitchEntry& Hardware::switch_entry(std::string_view id, const std::string& path) const {
  return entry(catalogue_.impl().switches, "switch", id, path);
}
const Accelerator& Hardware::accelerator(std::string_view id, const std::string& path) const {
  return entry(catalogue_.impl().accelerators, "accelerator", id, path);
}
const FabricRecipe& Hardware::fabric(std::string_view id, const std::string& path) const {
  return entry(catalogue_.impl().fabrics, "fabric", id, path);
}

LinkFigures Hardware::link(const LinkChoice& choice, const std::string& path) const {
  LinkEntry link = entry(catalogue_.impl().links, "link", choice.use, path);
  const bool changed = choice.bandwidth || choice.capacity || choice.latency;
  if (choice.bandwidth) link.line_rate = *choice.bandwidth;
  LinkFigures f;
  f.kind = link.kind;
  f.type = {changed ? link.id + " (changed)" : link.id, link.label, link.source};
  f.line_rate = link.line_rate;
  f.capacity = choice.capacity.value_or(payload_capacity(link));
  f.capacity_at_nic = choice.capacity.value_or(payload_capacity_at_nic(link));
  f.latency = link.latency;
  f.host_latency = link.host_latency.count() > 0 ? link.host_latency : link.latency;
  f.nic_base = link.nic_base;
  f.hop = link.hop;
  f.fec = link.fec;
  if (choice.latency) {
    f.latency = f.host_latency = *choice.latency;
    if (link.is_fabric()) f.hop = choice.latency;
  }
  return f;
}

const SwitchEntry& Hardware::usual_switch(const std::string& link, const std::string& path) const {
  // Of the boxes made for the link (no chassis of line cards) the one with the most ports; ties go to the
  // first by name.
  constexpr int kTallestBox = 4;  // rack units
  const SwitchEntry* best = nullptr;
  for (const auto& [id, candidate] : catalogue_.impl().switches) {
    if (candidate.links.empty() || candidate.links.front() != link || candidate.rack_units > kTallestBox)
      continue;
    if (best == nullptr || candidate.ports > best->ports) best = &candidate;
  }
  if (best != nullptr) return *best;
  throw ConfigError({Problem{{},
                             path,
                             fmt::format("no switch of the catalogue is made for {}", link),
                             {},
                             "name one: \"switch\": {\"use\": \"...\", \"ports\": 64}",
                             {}}});
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
