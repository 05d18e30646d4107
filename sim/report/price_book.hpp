// What the parts of a bill cost: the user's quotes, else the catalogue's offers; of servers without any, what
// stands for them.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "sim/report/cost_spec.hpp"
#include "sim/report/interval.hpp"
#include "topology/catalogue.hpp"
#include "topology/catalogue/price_entry.hpp"

namespace topsim::report {

struct PartPrice {
  std::optional<Interval> usd;  // each; unset: not known
  std::string source;           // "4 offers, 2024-08 to 2026: ..."; "quote"
  bool unsourced = false;       // rests only on remembered figures
  bool estimated = false;       // rests only on estimates
  std::optional<topology::PriceBasis> basis = {};
  std::string of = {};  // the other machine whose price it is; empty: its own
};

// Whether there is no text behind the source, in the notation of configs/hardware.
[[nodiscard]] bool is_remembered(std::string_view source);

class PriceBook {
 public:
  // REQUIRES: both outlive it.
  PriceBook(const topology::Catalogue& catalogue, const CostSpec& cost)
      : catalogue_(catalogue), cost_(cost) {}

  [[nodiscard]] PartPrice of(const std::string& id);
  // A recipe derived from another one (HGX from DGX) takes that one's price if it has no offers of its own.
  [[nodiscard]] PartPrice of_server(const topology::NodeRecipe& recipe);
  // With these accelerators, which need not be the recipe's: then a quote, else the price of a server that
  // has them, of which a remark tells.
  [[nodiscard]] PartPrice of_server_with(const topology::Accelerator& chip,
                                         const topology::NodeRecipe& recipe,
                                         std::vector<std::string>& remarks);
  // Whether somebody asked for what this quote is of.
  [[nodiscard]] bool took_quote(const std::string& id) const { return taken_.contains(id); }

 private:
  const topology::Catalogue& catalogue_;
  const CostSpec& cost_;
  std::set<std::string> taken_;
};
}  // namespace topsim::report
