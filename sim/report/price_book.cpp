#include "sim/report/price_book.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "sim/report/server_price.hpp"
#include "topology/catalogue/node_recipe.hpp"

namespace topsim::report {
namespace {
using topology::PriceBasis;

// Of the offer that is nearest to the usual price.
PriceBasis basis_of(const topology::PriceEntry& entry) {
  const auto away = [&](const topology::Price& offer) { return std::abs(offer.dollars - entry.use); };
  return std::min_element(
             entry.offers.begin(), entry.offers.end(),
             [&](const topology::Price& a, const topology::Price& b) { return away(a) < away(b); })
      ->basis;
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
}  // namespace

bool is_remembered(std::string_view source) {
  return source.starts_with("recalled:");
}

PartPrice PriceBook::of(const std::string& id) {
  if (const auto quote = cost_.prices.find(id); quote != cost_.prices.end()) {
    taken_.insert(id);
    const double low = quote->second.front();
    const double high = quote->second.back();
    return {Interval{low, (low + high) / 2, high}, "quote", false, false, PriceBasis::quote};
  }
  const topology::PriceEntry* entry = catalogue_.price(id);
  if (entry == nullptr) return {};
  const auto all = [&](auto&& holds) {
    return std::all_of(entry->offers.begin(), entry->offers.end(), holds);
  };
  return {Interval{entry->low, entry->use, entry->high}, describe(*entry),
          all([](const topology::Price& offer) { return is_remembered(offer.source); }),
          all([](const topology::Price& offer) { return offer.basis == PriceBasis::estimate; }),
          basis_of(*entry)};
}

PartPrice PriceBook::of_server(const topology::NodeRecipe& recipe) {
  PartPrice price = of(recipe.id);
  for (const topology::NodeRecipe* each = &recipe; !price.usd && !each->like.empty();) {
    each = &catalogue_.node(each->like);
    price = of(each->id);
    price.source += ", of a " + each->id;
    // The same machine under another name is not mentioned.
    if (each->accelerator != recipe.accelerator) price.of = each->id;
  }
  return price;
}

PartPrice PriceBook::of_server_with(const topology::Accelerator& chip, const topology::NodeRecipe& recipe,
                                    std::vector<std::string>& remarks) {
  if (chip.id == recipe.accelerator || cost_.prices.contains(recipe.id)) return of_server(recipe);
  const topology::NodeRecipe* other = priced_server_with(chip.id, recipe, catalogue_, cost_);
  if (other == nullptr) return {};
  remarks.push_back(
      fmt::format("the price of a {0} with {1} is that of a {2}; a quote (cost.prices.{0}) replaces it",
                  recipe.id, chip.id, other->id));
  return of_server(*other);
}
}  // namespace topsim::report
