// What a step, a token and a training run cost.
//
//   per second  R = K / (Y a) + W PUE E / 3.6e6        K capital (USD), Y years, a = 31,557,600 s a year,
//                                                      W watts, E USD/kWh, 3.6e6 J/kWh
//   per step    R t      per token  R t / tokens      per run  R t / tokens x tokens of the run
// W: every part at full load. Prices, E, PUE and Y are ranges; a comparison draws them once for all its
// candidates. Not included: interest, staff, spares, licences, floor space.
#pragma once

#include "sim/report/bill_of_materials.hpp"
#include "sim/report/result.hpp"

namespace topsim::report {

inline constexpr double kSecondsPerYear = kDaysPerYear * kSecondsPerDay;

struct CostModel {
  BillOfMaterials bill;
  Interval electricity;  // USD/kWh
  Interval pue;
  Interval years;
  std::optional<double> tokens;  // of one training run

  [[nodiscard]] double per_second(const Draws& draws) const;
  // The energy's part of it.
  [[nodiscard]] double energy_per_second(const Draws& draws) const;
  [[nodiscard]] double seconds_written_off(const Draws& draws) const;
};

[[nodiscard]] CostModel make_cost_model(BillOfMaterials bill, const topology::Catalogue& catalogue,
                                        const CostSpec& spec);

// `topsim topo bom`: the bill with the cost of power and depreciation; JSON is "topsim.bom/1".
[[nodiscard]] std::string bom_table(const CostModel& cost, int columns = 80);
[[nodiscard]] std::string bom_json(const CostModel& cost);
[[nodiscard]] std::string bom_csv(const CostModel& cost);

// The fabric's price, as a share of `reference`'s fabric price, below which `other` costs less per token;
// empty when one of them buys no fabric or processes no tokens. Negative: not even with a free fabric.
[[nodiscard]] std::optional<double> break_even_fabric_share(const CostModel& reference,
                                                            double reference_token_seconds,
                                                            const CostModel& other,
                                                            double other_token_seconds, const Draws& draws);
}  // namespace topsim::report
