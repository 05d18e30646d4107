#include "sim/report/cable_choice.hpp"

#include <algorithm>
#include <utility>

#include "topology/build.hpp"
#include "topology/catalogue/device_entries.hpp"
#include "topology/catalogue/price_entry.hpp"

namespace topsim::report {

Listed::Listed(const topology::Catalogue& catalogue) {
  for (const topology::CatalogueEntry& entry : catalogue.entries()) ids_.insert({entry.category, entry.id});
}

bool Listed::operator()(const std::string& id, std::string_view category) const {
  const auto [begin, end] = ids_.equal_range(std::string(category));
  return std::any_of(begin, end, [&](const auto& each) { return each.second == id; });
}

CableChooser::CableChooser(const topology::Topology& topology, topology::FabricSpec fabric,
                           const topology::Catalogue& catalogue, const OpticalCircuits& optics,
                           const Listed& listed)
    : topology_(topology),
      fabric_(std::move(fabric)),
      catalogue_(catalogue),
      optics_(optics),
      listed_(listed) {}

ChosenCable CableChooser::of(const topology::Link& link) {
  const double rate = link.line_rate.value() / link.count;
  const Metres length = length_of(link);
  const std::string fabric(name_of(link.kind));
  const auto [at, fresh] = chosen_.try_emplace({rate, length.value(), fabric}, nullptr);
  if (!fresh) return {at->second, length};
  for (const topology::CatalogueEntry& entry : catalogue_.entries()) {
    if (entry.category != "cable") continue;
    const topology::CableEntry& cable = catalogue_.cable(entry.id);
    const bool fits = cable.rate.value() >= rate * 0.99 && cable.rate.value() < rate * 2 &&
                      cable.reach.value() >= length.value() && cable.price(length) > 0 &&
                      (cable.fabric.empty() || cable.fabric == fabric);
    if (fits && (at->second == nullptr || cable.price(length) < at->second->price(length)))
      at->second = &cable;
  }
  return {at->second, length};
}

Interval CableChooser::price(const ChosenCable& chosen, const topology::Link& link) const {
  const topology::CableEntry& cable = *chosen.entry;
  const double usual = cable.price(chosen.length);
  const double low = usual * cable.cheapest, high = usual * std::max(1.0, cable.dearest);
  if (cable.kind != topology::CableKind::transceiver) return {low, usual, high};
  return at_nvidia(link) ? Interval{usual, usual, high} : Interval{low, (low + usual) / 2, usual};
}

bool CableChooser::at_nvidia(const topology::Link& link) const {
  for (const DeviceId end : {link.from, link.to}) {
    if (topology_.device(end).kind != topology::DeviceKind::fabric_switch) continue;
    const std::string& model = topology_.model_of(end);
    if (listed_(model, "switch") && catalogue_.network_switch(model).vendor == "NVIDIA") return true;
  }
  return false;
}

// Where the link says none, by the higher of the two tiers that it joins.
Metres CableChooser::length_of(const topology::Link& link) const {
  constexpr Metres kInARack{3};
  if (optics_ && optics_.inside_a_cube(link)) return kInARack;
  if (link.length.known()) return link.length.metres();
  const int tier = std::max<int>(topology_.device(link.from).tier, topology_.device(link.to).tier);
  return fabric_.cable_length(static_cast<std::size_t>(std::max(tier, 1) - 1));
}
}  // namespace topsim::report
