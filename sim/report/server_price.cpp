#include "sim/report/server_price.hpp"

#include "topology/catalogue/node_recipe.hpp"
#include "topology/catalogue/price_entry.hpp"

namespace topsim::report {
namespace {
// Somebody's price of this server, or of one with the same accelerators that it is made from.
bool has_own_price(const topology::NodeRecipe& recipe, const topology::Catalogue& catalogue,
                   const CostSpec& cost) {
  if (cost.prices.contains(recipe.id) || catalogue.price(recipe.id) != nullptr) return true;
  if (recipe.like.empty()) return false;
  const topology::NodeRecipe& like = catalogue.node(recipe.like);
  return like.accelerator == recipe.accelerator && has_own_price(like, catalogue, cost);
}
}  // namespace

const topology::NodeRecipe* priced_server_with(std::string_view accelerator,
                                               const topology::NodeRecipe& recipe,
                                               const topology::Catalogue& catalogue, const CostSpec& cost) {
  const std::string_view kind = std::string_view(recipe.id).substr(0, recipe.id.find('-'));
  const topology::NodeRecipe* found = nullptr;
  for (const topology::CatalogueEntry& entry : catalogue.entries()) {
    if (entry.category != "node") continue;
    const topology::NodeRecipe& other = catalogue.node(entry.id);
    if (other.accelerator != accelerator || other.accelerators != recipe.accelerators ||
        !has_own_price(other, catalogue, cost))
      continue;
    if (other.id.starts_with(kind)) return &other;
    if (found == nullptr) found = &other;
  }
  return found;
}
}  // namespace topsim::report
