// What things cost and how often they break, with the spread of the sources.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace topsim::topology {

// List prices are higher than what is paid.
enum class PriceBasis : std::uint8_t { list, street, estimate, quote };
[[nodiscard]] std::string_view name_of(PriceBasis basis);

// One quotation, list price or estimate, in US dollars.
struct Price {
  double dollars = 0;
  std::string kind;                       // in the file's words: "list", "street", "planning estimate", ...
  PriceBasis basis = PriceBasis::street;  // what they mean; a quote is the user's own
  std::string date;                       // "2024-08"; may be empty
  std::string source;
};

// configs/hardware/prices.json: all that is known of one item.
struct PriceEntry {
  std::string id;    // catalogue id of the thing, or a service: "electricity", "colocation", "h200-sxm-hour"
  std::string unit;  // "each", "kWh", "accelerator hour", "node hour", "kW month", ...
  // US dollars. The default is the median of the offers unless the file names one.
  double use = 0, low = 0, high = 0;
  std::vector<Price> offers;
};

// A number the cost model needs that is no price: PUE, years of service, ...
struct Ratio {
  std::string id, source;
  double use = 0, low = 0, high = 0;
};

// configs/hardware/reliability.json: published failure rates.
struct FailureRate {
  std::string id;  // "accelerator", "nic", "fabric-link", "leaf-switch", "node", ...
  std::string name, source;
  double per_year = 0, low = 0, high = 0;  // events a year of one such thing
  std::string remedy;                      // what it costs: "node replaced", "NIC fails over"
};
}  // namespace topsim::topology
