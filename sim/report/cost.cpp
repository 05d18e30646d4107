#include "sim/report/cost.hpp"

#include "topology/catalogue/price_entry.hpp"

namespace topsim::report {
namespace {
constexpr double kJoulesPerKilowattHour = 3.6e6;

Interval range_or(const std::vector<double>& own, const Interval& published) {
  if (own.empty()) return published;
  return {own.front(), (own.front() + own.back()) / 2, own.back()};
}

Interval published(const topology::Ratio* ratio, const Interval& otherwise) {
  return ratio != nullptr ? Interval{ratio->low, ratio->use, ratio->high} : otherwise;
}
}  // namespace

double CostModel::energy_per_second(const Draws& draws) const {
  return bill.watts() * pue.at(draws("pue")) * electricity.at(draws("electricity")) / kJoulesPerKilowattHour;
}

double CostModel::seconds_written_off(const Draws& draws) const {
  return years.at(draws("years")) * kSecondsPerYear;
}

double CostModel::per_second(const Draws& draws) const {
  return bill.capital(draws) / seconds_written_off(draws) + energy_per_second(draws);
}

CostModel make_cost_model(BillOfMaterials bill, const topology::Catalogue& catalogue, const CostSpec& spec) {
  CostModel model;
  model.bill = std::move(bill);
  const topology::PriceEntry* electricity = catalogue.price("electricity");
  model.electricity = range_or(
      spec.electricity,
      electricity != nullptr ? Interval{electricity->low, electricity->use, electricity->high} : Interval{});
  model.pue = range_or(spec.pue, published(catalogue.ratio("pue"), {1, 1, 1}));
  model.years = spec.years ? Interval{*spec.years, *spec.years, *spec.years}
                           : published(catalogue.ratio("years"), {4, 4, 4});
  model.tokens = spec.tokens;
  return model;
}

std::optional<double> break_even_fabric_share(const CostModel& reference, double reference_token_seconds,
                                              const CostModel& other, double other_token_seconds,
                                              const Draws& draws) {
  const double reference_fabric = reference.bill.capital(draws, true);
  if (reference_fabric <= 0 || other.bill.capital(draws, true) <= 0) return {};
  if (reference_token_seconds <= 0 || other_token_seconds <= 0) return {};
  // Solves for the fabric x: (S + x) / (Y a) + energy = the reference's rate x its time per token / the
  // other's.
  const double affordable = reference.per_second(draws) * reference_token_seconds / other_token_seconds;
  const double servers = other.bill.capital(draws) - other.bill.capital(draws, true);
  const double fabric =
      (affordable - other.energy_per_second(draws)) * other.seconds_written_off(draws) - servers;
  return fabric / reference_fabric;
}
}  // namespace topsim::report
