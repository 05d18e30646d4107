#include "sim/report/bill_of_materials.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "sim/base/error.hpp"
#include "sim/base/suggest.hpp"
#include "sim/report/findings.hpp"
#include "sim/report/optical_circuits.hpp"
#include "sim/report/port_remarks.hpp"
#include "topology/build.hpp"
#include "topology/catalogue/device_entries.hpp"
#include "topology/catalogue/node_recipe.hpp"
#include "topology/catalogue/price_entry.hpp"

namespace topsim::report {
namespace {
using topology::Catalogue;
using topology::DeviceKind;
using topology::Topology;

struct Known {
  std::optional<Interval> price;
  std::string source;
  bool unsourced = false, estimated = false;
};

// As configs/hardware marks what no text was found for.
bool remembered(std::string_view source) {
  return source.starts_with("recalled:");
}

bool is_estimate(const topology::Price& offer) {
  return offer.kind.find("estimate") != std::string::npos;
}

std::string describe(const topology::PriceEntry& entry) {
  std::string first;
  std::string last;
  for (const topology::Price& each : entry.offers) {
    if (each.date.empty()) continue;
    if (first.empty() || each.date < first) first = each.date;
    if (each.date > last) last = each.date;
  }
  std::string text = fmt::format("{} offer{}", entry.offers.size(), entry.offers.size() == 1 ? "" : "s");
  if (!first.empty()) text += first == last ? ", " + first : fmt::format(", {} to {}", first, last);
  std::vector<std::string> sources;
  for (const topology::Price& each : entry.offers)
    if (std::find(sources.begin(), sources.end(), each.source) == sources.end())
      sources.push_back(each.source);
  for (std::size_t i = 0; i < sources.size(); ++i) text += (i == 0 ? ": " : "; ") + sources[i];
  return text;
}

class Counter {
 public:
  Counter(const Topology& topology, const topology::TopologySpec& spec, const Catalogue& catalogue,
          const CostSpec& cost, const PlaceOf& place_of)
      : topology_(topology),
        spec_(spec),
        fabric_(topology::resolve_fabric(spec.fabric, catalogue)),
        catalogue_(catalogue),
        cost_(cost),
        place_of_(place_of),
        optics_(topology) {}

  BillOfMaterials count() {
    if (spec_.node.use.empty()) {
      accelerators();
      nics();
    } else {
      servers();
    }
    switches();
    optical_circuits();
    cables();
    for (std::string& remark : port_remarks(topology_, catalogue_)) remarks_.push_back(std::move(remark));
    BillOfMaterials bill;
    for (auto& [key, item] : items_) bill.items.push_back(std::move(item));
    idle_quotes(bill.items);
    for (const BomItem& item : bill.items) {
      if (!item.price && !item.included)
        remarks_.push_back(
            fmt::format("no price known of {} ({} of them): not counted", item.id, item.count));
      if (item.price && item.unsourced && !item.included)
        remarks_.push_back(
            fmt::format("no source was found for the price of {0}: a remembered figure; a quote "
                        "(cost.prices.{0}) replaces it",
                        item.id));
      else if (item.price && item.estimated && !item.included)
        remarks_.push_back(
            fmt::format("the price of {0} is planners' estimates, nobody's offer; a quote "
                        "(cost.prices.{0}) replaces them",
                        item.id));
    }
    bill.remarks = std::move(remarks_);
    return bill;
  }

 private:
  void idle_quotes(const std::vector<BomItem>& items) {
    for (const auto& [id, quote] : cost_.prices) {
      const bool included = in_servers_.contains(id) ||
                            std::any_of(items.begin(), items.end(), [&, name = id](const BomItem& item) {
                              return item.included && item.id == name;
                            });
      if (!included && quoted_.contains(id)) continue;
      remarks_.push_back(fmt::format(
          "the quote for {}{} changes nothing: {}", id, place_of_ ? place_of_("cost.prices." + id) : "",
          included ? "it is part of the server's price" : "nothing in the bill is priced by it"));
    }
  }

  void add(BomCategory category, const std::string& id, const std::string& name, std::int64_t count,
           double watts, const Known& known, bool included = false) {
    if (count <= 0) return;
    BomItem& item = items_[{category, id, name}];
    item.category = category;
    item.id = id;
    item.name = name;
    item.count += count;
    item.watts = watts;
    item.included = included;
    item.price = known.price;
    item.price_source = known.source;
    item.unsourced = known.unsourced;
    item.estimated = known.estimated;
  }

  [[nodiscard]] Known known(const std::string& id) const {
    if (const auto quote = cost_.prices.find(id); quote != cost_.prices.end()) {
      quoted_.insert(id);
      const double low = quote->second.front();
      const double high = quote->second.back();
      return {Interval{low, (low + high) / 2, high}, "quote"};
    }
    const topology::PriceEntry* entry = catalogue_.price(id);
    if (entry == nullptr) return {};
    const bool unsourced = std::all_of(entry->offers.begin(), entry->offers.end(),
                                       [](const topology::Price& offer) { return remembered(offer.source); });
    return {Interval{entry->low, entry->use, entry->high}, describe(*entry), unsourced,
            std::all_of(entry->offers.begin(), entry->offers.end(), is_estimate)};
  }

  // A recipe made from another one (HGX from DGX) is priced as that one where it has no offers of its own.
  [[nodiscard]] Known server_price(const topology::NodeRecipe& recipe) const {
    Known price = known(recipe.id);
    for (const topology::NodeRecipe* each = &recipe; !price.price && !each->like.empty();) {
      each = &catalogue_.node(each->like);
      price = known(each->id);
      price.source += ", of a " + each->id;
    }
    return price;
  }

  void servers() {
    const topology::NodeRecipe& recipe = catalogue_.node(spec_.node.use);
    const auto nodes = static_cast<std::int64_t>(topology_.nodes());
    const topology::Accelerator& chip =
        catalogue_.accelerator(spec_.node.accelerator.value_or(recipe.accelerator));
    double watts = recipe.power.value();
    const int accelerators = spec_.node.accelerators.value_or(recipe.accelerators);
    const bool fewer = spec_.node.nics || accelerators < recipe.accelerators;
    if (fewer && watts > 0)
      remarks_.push_back("power of the server is that with all its accelerators and NICs");
    if (watts <= 0) {
      watts = chip.tdp.value() * accelerators;
      remarks_.push_back(
          watts > 0 ? fmt::format("power of a {} is not published: its accelerators' {:.0f} W alone",
                                  recipe.id, watts)
                    : fmt::format("power of a {} and of its accelerators is not published: not counted",
                                  recipe.id));
    }
    const Known price = server_price(recipe);
    if (price.price) {
      add(BomCategory::server, recipe.id, recipe.name, nodes, watts, price);
      in_servers_.insert(chip.id);
      nics(/*in_servers=*/true);
      if (spec_.node.nic || spec_.node.accelerator) {
        remarks_.push_back("the price of the server is that of its usual accelerators and NICs");
      }
      if (fewer) remarks_.push_back("the price of the server is that with all its accelerators and NICs");
      return;
    }
    remarks_.push_back(fmt::format(
        "no price of a {} server is known: its accelerators and NICs are counted, the rest is not",
        recipe.id));
    add(BomCategory::accelerator, chip.id, chip.name, nodes * accelerators, watts / accelerators,
        known(chip.id));
    nics(/*in_servers=*/false, /*with_power=*/false);
  }

  void accelerators() {
    bool power = false;
    for (DeviceId id : topology_.accelerators()) {
      const std::string& model = topology_.model_of(id);
      const bool listed = find(model, "accelerator");
      const topology::Accelerator* entry = listed ? &catalogue_.accelerator(model) : nullptr;
      add(BomCategory::accelerator, model, listed ? entry->name : model, 1, listed ? entry->tdp.value() : 0,
          known(model));
      power |= listed;
    }
    if (power)
      remarks_.emplace_back(
          "power of accelerators is their thermal design power; the rest of their servers is not counted");
  }

  void nics(bool in_servers = false, bool with_power = true) {
    for (const topology::Device& device : topology_.devices()) {
      if (device.kind != DeviceKind::nic) continue;
      const std::string& model = topology_.models()[device.model];
      const topology::NicEntry* entry = find(model, "nic") ? &catalogue_.nic(model) : nullptr;
      add(BomCategory::nic, model, entry != nullptr ? entry->name : model, device.count,
          with_power && entry != nullptr ? entry->power.value() : 0, known(model), in_servers);
    }
  }

  void switches() {
    for (const topology::Device& device : topology_.devices()) {
      if (device.kind != DeviceKind::fabric_switch) continue;
      const std::string& model = topology_.models()[device.model];
      const topology::SwitchEntry* entry =
          find(model, "switch") ? &catalogue_.network_switch(model) : nullptr;
      add(BomCategory::network_switch, model, entry != nullptr ? entry->name : model, device.count,
          entry != nullptr ? entry->power.value() : 0, known(model));
    }
  }

  void optical_circuits() {
    if (!optics_) return;
    const topology::SwitchEntry& entry = catalogue_.network_switch(OpticalCircuits::kSwitch);
    add(BomCategory::network_switch, entry.id, entry.name, optics_.switches(entry.ports), entry.power.value(),
        known(entry.id));
    remarks_.push_back(
        fmt::format("optical circuit switches join cubes of 4 x 4 x 4 chips: {} of them, each with two ports "
                    "a cube; other "
                    "slices of the pod share them",
                    optics_.switches(entry.ports)));
  }

  void cables() {
    for (const topology::Link& link : topology_.links()) {
      // One direction of each cable.
      if (link.to < link.from || !is_fabric(topology_, link)) continue;
      const double rate = link.line_rate.value() / link.count;
      const Metres length = length_of(link);
      const topology::CableEntry* cable = cheapest_cable(rate, length, name_of(link.kind));
      if (cable == nullptr) {
        const topology::LinkType& type = topology_.link_types()[link.type];
        add(BomCategory::cable, "cable for " + type.id, type.label, link.count, 0, {});
        continue;
      }
      Known price = known(cable->id);
      if (!price.price) {
        const double usual = cable->price(length);
        price = {cable_price(*cable, usual, at_nvidia(link)), cable->source, remembered(cable->source)};
      }
      add(BomCategory::cable, cable->id,
          fmt::format("{}, {:.0f} m{}", cable->name, length.value(),
                      cable->kind == "transceiver" ? ", 2 modules" : ""),
          link.count, 2 * cable->power.value(), price);
    }
  }

  [[nodiscard]] static Interval cable_price(const topology::CableEntry& cable, double usual, bool nvidia) {
    const double low = usual * cable.cheapest, high = usual * std::max(1.0, cable.dearest);
    if (cable.kind != "transceiver") return {low, usual, high};
    return nvidia ? Interval{usual, usual, high} : Interval{low, (low + usual) / 2, usual};
  }

  [[nodiscard]] bool at_nvidia(const topology::Link& link) {
    for (const DeviceId end : {link.from, link.to}) {
      if (topology_.device(end).kind != DeviceKind::fabric_switch) continue;
      const std::string& model = topology_.model_of(end);
      if (find(model, "switch") && catalogue_.network_switch(model).vendor == "NVIDIA") return true;
    }
    return false;
  }

  // By the higher of the two tiers that it joins.
  [[nodiscard]] Metres length_of(const topology::Link& link) const {
    constexpr Metres kInARack{3};
    if (optics_ && optics_.inside_a_cube(link)) return kInARack;
    const int tier = std::max<int>(topology_.device(link.from).tier, topology_.device(link.to).tier);
    return fabric_.cable_length(static_cast<std::size_t>(std::max(tier, 1) - 1));
  }

  // The cheapest that carries the rate over the length; no more than twice the rate, for a plug must fit its
  // port. InfiniBand's own are sold for nothing else.
  const topology::CableEntry* cheapest_cable(double rate, Metres length, std::string_view fabric) {
    const auto [at, fresh] = cable_for_.try_emplace({rate, length.value(), std::string(fabric)}, nullptr);
    if (!fresh) return at->second;
    for (const topology::CatalogueEntry& entry : catalogue_.entries()) {
      if (entry.category != "cable") continue;
      const topology::CableEntry& cable = catalogue_.cable(entry.id);
      const bool fits = cable.rate.value() >= rate * 0.99 && cable.rate.value() < rate * 2 &&
                        cable.reach.value() >= length.value() && cable.price(length) > 0 &&
                        (cable.fabric.empty() || cable.fabric == fabric);
      if (fits && (at->second == nullptr || cable.price(length) < at->second->price(length)))
        at->second = &cable;
    }
    return at->second;
  }

  [[nodiscard]] bool find(const std::string& id, std::string_view category) {
    if (known_ids_.empty()) {
      for (const topology::CatalogueEntry& entry : catalogue_.entries())
        known_ids_.insert({entry.category, entry.id});
    }
    const auto [begin, end] = known_ids_.equal_range(std::string(category));
    return std::any_of(begin, end, [&](const auto& each) { return each.second == id; });
  }

  const Topology& topology_;
  const topology::TopologySpec& spec_;
  const topology::FabricSpec fabric_;
  const Catalogue& catalogue_;
  const CostSpec& cost_;
  const PlaceOf& place_of_;
  const OpticalCircuits optics_;
  std::map<std::tuple<BomCategory, std::string, std::string>, BomItem> items_;  // by id and name
  std::map<std::tuple<double, double, std::string>, const topology::CableEntry*>
      cable_for_;  // by rate, length and fabric
  std::multimap<std::string, std::string> known_ids_;
  std::vector<std::string> remarks_;
  mutable std::set<std::string> quoted_;  // what was asked for
  std::set<std::string> in_servers_;      // accelerators
};
}  // namespace

std::string_view name_of(BomCategory category) {
  constexpr std::string_view names[] = {"server", "accelerator", "nic", "switch", "cable"};
  return names[static_cast<std::size_t>(category)];
}

double BillOfMaterials::capital(const Draws& draws, bool fabric_only) const {
  double sum = 0;
  for (const BomItem& item : items) {
    if (item.price && !item.included && (!fabric_only || item.is_fabric())) {
      sum += static_cast<double>(item.count) * item.price->at(draws(item.id));
    }
  }
  return sum;
}

Interval BillOfMaterials::capital_range(bool fabric_only) const {
  Interval sum;
  for (const BomItem& item : items) {
    if (!item.price || item.included || (fabric_only && !item.is_fabric())) continue;
    const auto count = static_cast<double>(item.count);
    sum.low += count * item.price->low;
    sum.usual += count * item.price->usual;
    sum.high += count * item.price->high;
  }
  return sum;
}

double BillOfMaterials::watts() const {
  double sum = 0;
  for (const BomItem& item : items) sum += item.included ? 0 : static_cast<double>(item.count) * item.watts;
  return sum;
}

std::vector<const BomItem*> BillOfMaterials::unpriced() const {
  std::vector<const BomItem*> list;
  for (const BomItem& item : items)
    if (!item.price && !item.included) list.push_back(&item);
  return list;
}

void check_quotes(const CostSpec& cost, const Catalogue& catalogue) {
  if (cost.prices.empty()) return;
  std::vector<std::string> names;
  for (const topology::CatalogueEntry& entry : catalogue.entries()) names.push_back(entry.id);
  std::vector<Problem> problems;
  for (const auto& [id, quote] : cost.prices) {
    if (catalogue.price(id) != nullptr || std::find(names.begin(), names.end(), id) != names.end()) continue;
    const auto near = closest(id, names);
    problems.push_back({{},
                        "cost.prices." + id,
                        "the catalogue has no \"" + id + '"',
                        {},
                        near ? "did you mean \"" + *near + "\"?" : "see topsim list hardware",
                        {}});
  }
  if (!problems.empty()) throw ConfigError(std::move(problems));
}

BillOfMaterials bill_of_materials(const Topology& topology, const topology::TopologySpec& spec,
                                  const Catalogue& catalogue, const CostSpec& cost, const PlaceOf& place_of) {
  return Counter(topology, spec, catalogue, cost, place_of).count();
}
}  // namespace topsim::report
