// The `cost` section of a scenario: what the user pays, in place of the catalogue's published ranges.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "sim/config/object.hpp"

namespace topsim::report {

// One value, or two: the ends of a range.
struct CostSpec {
  std::map<std::string, std::vector<double>> prices;  // USD, by catalogue id of the thing: quotes
  std::vector<double> electricity;                    // USD/kWh
  std::vector<double> pue;                            // power usage effectiveness of the building
  std::optional<double> years;                        // over which the purchase is written off
  std::optional<double> tokens;                       // of one training run
};
[[nodiscard]] const config::Object<CostSpec>& table(config::Type<CostSpec> type);
}  // namespace topsim::report
