#include "sim/report/bill_of_materials.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "sim/base/error.hpp"
#include "sim/base/suggest.hpp"
#include "sim/report/cable_choice.hpp"
#include "sim/report/findings.hpp"
#include "sim/report/optical_circuits.hpp"
#include "sim/report/port_remarks.hpp"
#include "sim/report/price_book.hpp"
#include "topology/build.hpp"
#include "topology/catalogue/device_entries.hpp"
#include "topology/catalogue/node_recipe.hpp"

namespace topsim::report {
namespace {
using topology::Catalogue;
using topology::DeviceKind;
using topology::Topology;

class Counter {
 public:
  Counter(const Topology& topology, const topology::TopologySpec& spec, const Catalogue& catalogue,
          const CostSpec& cost, const PlaceOf& place_of)
      : topology_(topology),
        spec_(spec),
        catalogue_(catalogue),
        cost_(cost),
        place_of_(place_of),
        prices_(catalogue, cost),
        optics_(topology),
        listed_(catalogue),
        chooser_(topology, topology::resolve_fabric(spec.fabric, catalogue), catalogue, optics_, listed_) {}

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
      if (item.price && !item.priced_as.empty())
        remarks_.push_back(
            fmt::format("no price of a {0} is known: it stands at that of a {1}, another machine; a quote "
                        "(cost.prices.{0}) replaces it",
                        item.id, item.priced_as));
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
      if (!included && prices_.took_quote(id)) continue;
      remarks_.push_back(fmt::format(
          "the quote for {}{} changes nothing: {}", id, place_of_ ? place_of_("cost.prices." + id) : "",
          included ? "it is part of the server's price" : "nothing in the bill is priced by it"));
    }
  }

  void add(BomCategory category, const std::string& id, const std::string& name, std::int64_t count,
           double watts, const PartPrice& price, bool included = false) {
    if (count <= 0) return;
    BomItem& item = items_[{category, id, name}];
    item.category = category;
    item.id = id;
    item.name = name;
    item.count += count;
    item.watts = watts;
    item.included = included;
    item.price = price.usd;
    item.price_source = price.source;
    item.unsourced = price.unsourced;
    item.estimated = price.estimated;
    item.basis = price.basis;
    item.priced_as = price.of;
  }

  void servers() {
    const topology::NodeRecipe& recipe = catalogue_.node(spec_.node.use);
    const auto nodes = static_cast<std::int64_t>(topology_.nodes());
    const topology::Accelerator& chip =
        catalogue_.accelerator(spec_.node.accelerator.value_or(recipe.accelerator));
    double watts = recipe.power.value();
    const int accelerators = spec_.node.accelerators.value_or(recipe.accelerators);
    const bool fewer = spec_.node.nics || accelerators < recipe.accelerators;
    if (watts > 0 && chip.id != recipe.accelerator) {
      const double usual = catalogue_.accelerator(recipe.accelerator).tdp.value();
      if (chip.tdp.value() > 0 && usual > 0) watts += (chip.tdp.value() - usual) * recipe.accelerators;
    }
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
    const PartPrice price = prices_.of_server_with(chip, recipe, remarks_);
    if (price.usd) {
      add(BomCategory::server, recipe.id, recipe.name, nodes, watts, price);
      in_servers_.insert(chip.id);
      nics(/*in_servers=*/true);
      if (spec_.node.nic) remarks_.push_back("the price of the server is that of its usual NICs");
      if (fewer) remarks_.push_back("the price of the server is that with all its accelerators and NICs");
      return;
    }
    remarks_.push_back(fmt::format(
        "no price of a {} server{} is known: its accelerators and NICs are counted, the rest is not",
        recipe.id, chip.id == recipe.accelerator ? "" : " with " + chip.id));
    add(BomCategory::accelerator, chip.id, chip.name, nodes * accelerators, watts / accelerators,
        prices_.of(chip.id));
    nics(/*in_servers=*/false, /*with_power=*/false);
  }

  void accelerators() {
    bool power = false;
    for (DeviceId id : topology_.accelerators()) {
      const std::string& model = topology_.model_of(id);
      const bool listed = listed_(model, "accelerator");
      const topology::Accelerator* entry = listed ? &catalogue_.accelerator(model) : nullptr;
      add(BomCategory::accelerator, model, listed ? entry->name : model, 1, listed ? entry->tdp.value() : 0,
          prices_.of(model));
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
      const topology::NicEntry* entry = listed_(model, "nic") ? &catalogue_.nic(model) : nullptr;
      add(BomCategory::nic, model, entry != nullptr ? entry->name : model, device.count,
          with_power && entry != nullptr ? entry->power.value() : 0, prices_.of(model), in_servers);
    }
  }

  void switches() {
    for (const topology::Device& device : topology_.devices()) {
      if (device.kind != DeviceKind::fabric_switch) continue;
      const std::string& model = topology_.models()[device.model];
      const topology::SwitchEntry* entry =
          listed_(model, "switch") ? &catalogue_.network_switch(model) : nullptr;
      add(BomCategory::network_switch, model, entry != nullptr ? entry->name : model, device.count,
          entry != nullptr ? entry->power.value() : 0, prices_.of(model));
    }
  }

  void optical_circuits() {
    if (!optics_) return;
    const topology::SwitchEntry& entry = catalogue_.network_switch(OpticalCircuits::kSwitch);
    add(BomCategory::network_switch, entry.id, entry.name, optics_.switches(entry.ports), entry.power.value(),
        prices_.of(entry.id));
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
      const ChosenCable cable = chooser_.of(link);
      if (cable.entry == nullptr) {
        const topology::LinkType& type = topology_.link_types()[link.type];
        add(BomCategory::cable, "cable for " + type.id, type.label, link.count, 0, {});
        continue;
      }
      PartPrice price = prices_.of(cable.entry->id);
      if (!price.usd)
        price = {chooser_.price(cable, link), cable.entry->source, is_remembered(cable.entry->source)};
      add(BomCategory::cable, cable.entry->id,
          fmt::format("{}, {:.0f} m{}", cable.entry->name, cable.length.value(),
                      cable.entry->kind == topology::CableKind::transceiver ? ", 2 modules" : ""),
          link.count, 2 * cable.entry->power.value(), price);
    }
  }

  const Topology& topology_;
  const topology::TopologySpec& spec_;
  const Catalogue& catalogue_;
  const CostSpec& cost_;
  const PlaceOf& place_of_;
  PriceBook prices_;
  const OpticalCircuits optics_;
  const Listed listed_;
  CableChooser chooser_;
  std::map<std::tuple<BomCategory, std::string, std::string>, BomItem> items_;  // by id and name
  std::vector<std::string> remarks_;
  std::set<std::string> in_servers_;  // accelerators that are part of servers
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

std::vector<const BomItem*> BillOfMaterials::without_own_price() const {
  std::vector<const BomItem*> list;
  for (const BomItem& item : items)
    if (!item.is_fabric() && !item.included && (!item.price || !item.priced_as.empty()))
      list.push_back(&item);
  return list;
}

bool BillOfMaterials::has_servers() const {
  return std::any_of(items.begin(), items.end(),
                     [](const BomItem& item) { return item.category == BomCategory::server; });
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
