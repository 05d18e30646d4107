// What things cost and how often they break, with the spread of the sources.
#pragma once

#include <string>
#include <vector>

namespace topsim::topology {

// One quotation, list price or estimate.
struct Price {
  double dollars = 0;  // converted from its currency at PriceBook's rate
  std::string text;    // as written: "2600000 CNY"
  std::string kind;    // "list", "street", "planning estimate", ...
  std::string date;    // "2024-08"; may be empty
  std::string source;
};

// All that is known of one item. `use` is the default: the median of the quotations unless the file names
// one.
struct PriceEntry {
  std::string id;    // catalogue id of the thing, or of a service ("electricity-us", "colocation")
  std::string unit;  // "each", "kWh", "GPU hour", "kW month", "metre"
  double use = 0, low = 0, high = 0;
  std::vector<Price> quotations;
};

// configs/hardware/reliability.json: published failure rates.
struct FailureRate {
  std::string id;  // "gpu", "nic", "link", "switch", "node", "job"
  std::string name, source;
  double per_year = 0, low = 0, high = 0;  // events a year of one such thing
  std::string remedy;                      // what it costs: "node replaced", "NIC fails over"
};
}  // namespace topsim::topology
