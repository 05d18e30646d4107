// Which server of the catalogue stands for the price of one whose accelerators were replaced.
#pragma once

#include <string_view>

#include "sim/report/cost_spec.hpp"
#include "topology/catalogue.hpp"

namespace topsim::report {

// A recipe with as many accelerators as `recipe`, these ones, and a price of its own (the catalogue's or a
// quote); preferably of the same kind (hgx-, dgx-). Null where there is none.
[[nodiscard]] const topology::NodeRecipe* priced_server_with(std::string_view accelerator,
                                                             const topology::NodeRecipe& recipe,
                                                             const topology::Catalogue& catalogue,
                                                             const CostSpec& cost);
}  // namespace topsim::report
