#include "sim/report/port_remarks.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <tuple>

#include "topology/catalogue/device_entries.hpp"

namespace topsim::report {
namespace {
using topology::DeviceKind;

struct Switches {
  const topology::SwitchEntry* entry = nullptr;
  int tier = 1;
  std::int64_t count = 0;
  double used = 0;  // ports in use, over all switches
  int radix = 0;
};

// By tier and model, for models that the catalogue knows.
std::vector<Switches> tiers_of(const topology::Topology& topology, const topology::Catalogue& catalogue) {
  std::set<std::string> known;
  for (const topology::CatalogueEntry& entry : catalogue.entries())
    if (entry.category == "switch") known.insert(entry.id);
  std::map<std::pair<int, std::string>, Switches> all;
  for (std::size_t i = 0; i < topology.devices().size(); ++i) {
    const topology::Device& device = topology.devices()[i];
    const std::string& model = topology.models()[device.model];
    if (device.kind != DeviceKind::fabric_switch || !known.contains(model)) continue;
    Switches& same = all[{device.tier, model}];
    same.entry = &catalogue.network_switch(model);
    same.tier = device.tier;
    same.count += device.count;
    for (const LinkId l : topology.links_from(DeviceId(i))) {
      const topology::Link& link = topology.link(l);
      const int radix = same.entry->radix(BytesPerSecond(link.line_rate.value() / link.count));
      if (radix == 0) continue;
      same.radix = std::max(same.radix, radix);
      same.used += static_cast<double>(link.count) * same.entry->ports / radix;
    }
  }
  std::vector<Switches> tiers;
  for (const auto& [key, same] : all) tiers.push_back(same);
  return tiers;
}

// Ports that are paid for and not used; on small clusters they decide which fabric is cheaper.
void empty_leaves(const std::vector<Switches>& tiers, std::vector<std::string>& remarks) {
  constexpr double kMostlyEmpty = 0.35;
  for (const Switches& tier : tiers) {
    const double share = tier.used / (static_cast<double>(tier.count) * tier.entry->ports);
    if (tier.tier != 1 || tier.count < 2 || share > kMostlyEmpty) continue;
    remarks.push_back(fmt::format(
        "the {} leaves of {} use {:.0f} % of their ports: kind fat-tree, or more nodes, would share them",
        tier.count, tier.entry->id, share * 100));
  }
}

// Each lower switch has equally many cables to each upper one, so numbers that divide badly leave ports free.
void unfilled_tiers(const std::vector<Switches>& tiers, std::vector<std::string>& remarks) {
  constexpr double kWorthSaving = 0.1;
  for (const Switches& tier : tiers) {
    const auto enough = static_cast<std::int64_t>(std::ceil(tier.used / tier.entry->ports - 1e-9));
    if (tier.tier < 2 ||
        static_cast<double>(tier.count - enough) < kWorthSaving * static_cast<double>(tier.count))
      continue;
    const char* const name = tier.tier == 2 ? "spines" : "cores";
    remarks.push_back(fmt::format(
        "the {} {} of {} use {:.0f} % of their ports, with as many cables from every switch below to each; "
        "{} would hold all cables, dealt unevenly",
        tier.count, name, tier.entry->id,
        100 * tier.used / (static_cast<double>(tier.count) * tier.entry->ports), enough));
  }
}

// Every cable is counted as one, as traffic uses it; there are cables on sale that split into several.
void split_ports(const topology::Topology& topology, const std::vector<Switches>& tiers,
                 std::vector<std::string>& remarks) {
  std::map<std::tuple<std::string, int, std::int64_t>, std::int64_t> cables;
  for (const topology::Link& link : topology.links()) {
    for (const Switches& tier : tiers) {
      const topology::Device &from = topology.device(link.from), &to = topology.device(link.to);
      if (from.kind != DeviceKind::fabric_switch || from.tier != tier.tier ||
          topology.models()[from.model] != tier.entry->id ||
          (to.kind == DeviceKind::fabric_switch && to.tier >= from.tier))
        continue;
      const double rate = link.line_rate.value() / link.count;
      const int ways = tier.entry->radix(BytesPerSecond(rate)) / std::max(tier.entry->ports, 1);
      if (ways > 1) cables[{tier.entry->id, ways, std::llround(rate * 8e-9)}] += link.count;
    }
  }
  for (const auto& [what, count] : cables) {
    const auto& [id, ways, gigabits] = what;
    remarks.push_back(
        fmt::format("{} cables of {} Gbit/s end in ports of {} that are split in {}: breakout cables and "
                    "twin-port modules "
                    "serve {} of them, and are priced as so many single ones",
                    count, gigabits, id, ways, ways));
  }
}
}  // namespace

std::vector<std::string> port_remarks(const topology::Topology& topology,
                                      const topology::Catalogue& catalogue) {
  std::vector<std::string> remarks;
  const std::vector<Switches> tiers = tiers_of(topology, catalogue);
  empty_leaves(tiers, remarks);
  unfilled_tiers(tiers, remarks);
  split_ports(topology, tiers, remarks);
  return remarks;
}
}  // namespace topsim::report
