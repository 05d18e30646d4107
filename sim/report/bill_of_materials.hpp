// What has to be bought for a topology, counted from its devices and cables; prices from the catalogue, as
// ranges over their offers, or from the scenario's quotes.
//
// A server's price contains its accelerators, NVSwitches and the NICs of its recipe. Where no offer
// for a server is known, accelerators and NICs are listed instead and the rest of the server is not
// counted (`remarks` says so). A connection is one cable, or two optical modules and their fibre.
// Modules at NVIDIA's switches are NVIDIA's own (Spectrum-X and Quantum-2 require LinkX: SemiAnalysis,
// 2024-06); at others the range begins at the cheapest third-party offer and its middle is the usual
// price.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "sim/report/cost_spec.hpp"
#include "sim/report/interval.hpp"
#include "topology/catalogue.hpp"
#include "topology/catalogue/price_entry.hpp"
#include "topology/spec.hpp"
#include "topology/topology.hpp"

namespace topsim::report {

using topology::PriceBasis;

enum class BomCategory : std::uint8_t { server, accelerator, nic, network_switch, cable };
[[nodiscard]] std::string_view name_of(BomCategory category);

struct BomItem {
  BomCategory category = BomCategory::server;
  std::string id, name;
  std::int64_t count = 0;
  std::optional<Interval> price;      // USD each
  std::string price_source;           // "4 offers, 2024-08 to 2026"; "quote"
  double watts = 0;                   // each, at full load
  bool included = false;              // in a server's price and power: counted, not added up
  bool unsourced = false;             // the price rests only on remembered figures
  bool estimated = false;             // the price rests only on estimates
  std::optional<PriceBasis> basis{};  // of the usual price; unset for a cable priced by its parts
  std::string priced_as{};            // the other machine whose price it is; empty: its own
  // Switches, cables and NICs that are not part of a server's price.
  [[nodiscard]] bool is_fabric() const {
    return category != BomCategory::server && category != BomCategory::accelerator;
  }
};

struct BillOfMaterials {
  std::vector<BomItem> items;  // by category, then id
  std::vector<std::string> remarks;
  [[nodiscard]] double capital(const Draws& draws, bool fabric_only = false) const;  // USD
  [[nodiscard]] Interval capital_range(bool fabric_only = false) const;  // every price low, usual, high
  [[nodiscard]] double watts() const;
  // Items that the sums leave out because no price is known.
  [[nodiscard]] std::vector<const BomItem*> unpriced() const;
  // Servers and accelerators, which dominate the total, without a price of their own: what a cost would rest
  // on is not known.
  [[nodiscard]] std::vector<const BomItem*> without_own_price() const;
  // False: the servers' accelerators and NICs stand for them.
  [[nodiscard]] bool has_servers() const;
};

// Throws ConfigError for a quote of a part that the catalogue does not know: it would silently be unused.
void check_quotes(const CostSpec& cost, const topology::Catalogue& catalogue);

// `place_of("cost.prices.qm9700")` is " at 14:9", or empty where it is not known; it is used in remarks on
// quotes without effect.
using PlaceOf = std::function<std::string(const std::string& path)>;
[[nodiscard]] BillOfMaterials bill_of_materials(const topology::Topology& topology,
                                                const topology::TopologySpec& spec,
                                                const topology::Catalogue& catalogue, const CostSpec& cost,
                                                const PlaceOf& place_of = {});

// The items and their total.
[[nodiscard]] std::string bom_table(const BillOfMaterials& bill, int columns = 80);
}  // namespace topsim::report
