#include <fmt/core.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "sim/report/cost.hpp"
#include "sim/report/csv.hpp"
#include "sim/report/text.hpp"

namespace topsim::report {
namespace {
constexpr std::size_t kTotals = 42;  // columns for the name of a total
constexpr double kSecondsPerHour = 3600;

std::string range_text(const Interval& range, double times = 1) {
  if (range.low == range.high) return dollars_text(range.usual * times);
  constexpr double kMillion = 1e6;
  if (range.low * times >= 100 * kMillion)
    return fmt::format("{:.0f} to {:.0f} MUSD", range.low * times / kMillion, range.high * times / kMillion);
  std::string low = dollars_text(range.low * times);
  return fmt::format("{} to {}", low.substr(0, low.rfind(' ')), dollars_text(range.high * times));
}

std::string share_text(const Interval& range) {
  return range.low == range.high ? three_digits(range.usual)
                                 : fmt::format("{} to {}", three_digits(range.low), three_digits(range.high));
}

nlohmann::json bounds_json(const Interval& range) {
  return {{"low", range.low}, {"usual", range.usual}, {"high", range.high}};
}

Interval times(const Interval& a, const Interval& b, double factor) {
  return {a.low * b.low * factor, a.usual * b.usual * factor, a.high * b.high * factor};
}

Interval watts_with_pue(const CostModel& cost) {
  return times(cost.pue, {1, 1, 1}, cost.bill.watts());
}
Interval energy_per_year(const CostModel& cost) {
  return times(cost.pue, cost.electricity, cost.bill.watts() / 1000 * kSecondsPerYear / kSecondsPerHour);
}
// Capital divided by its years, plus energy. The ends of the range: everything cheap and long-lived,
// everything expensive and short-lived.
Interval per_hour(const CostModel& cost) {
  const Interval capital = cost.bill.capital_range(), energy = energy_per_year(cost);
  const double hours = kSecondsPerYear / kSecondsPerHour;
  return {(capital.low / cost.years.high + energy.low) / hours,
          (capital.usual / cost.years.usual + energy.usual) / hours,
          (capital.high / cost.years.low + energy.high) / hours};
}

constexpr std::size_t kCount = 9, kFigures = 13 + 30;  // columns beside the names

// The width of the longest name, as far as the window has room; longer names get lines of their own.
std::size_t name_columns(const BillOfMaterials& bill, int columns) {
  const std::size_t room =
      static_cast<std::size_t>(columns) - std::min<std::size_t>(columns, kCount + kFigures);
  std::size_t longest = 0;
  for (const BomItem& item : bill.items) longest = std::max(longest, width(item.name) + 1);
  return std::max<std::size_t>(28, std::min(longest, room));
}

std::string total(const std::string& what, const std::string& figure, std::size_t name) {
  return fmt::format("{:>7}  {}{}\n", "", pad_right(what, kTotals),
                     pad_left(figure, name + kFigures - kTotals));
}

std::string remarks_text(const BillOfMaterials& bill) {
  std::string text;
  for (const std::string& remark : bill.remarks)
    for (const std::string& line : wrap("note: " + remark, 80, 6)) text += line + "\n";
  return text;
}

}  // namespace

std::string bom_table(const BillOfMaterials& bill, int columns) {
  const std::size_t name = name_columns(bill, columns);
  std::string text = fmt::format("{:>7}  {}{}{}\n", "count", pad_right("item", name),
                                 pad_left("usually each", 13), pad_left("together", 30));
  for (const BomItem& item : bill.items) {
    const std::string each = item.included ? "in the server"
                             : item.price  ? dollars_text(item.price->usual)
                                           : "no price";
    const std::string together =
        item.price && !item.included ? range_text(*item.price, static_cast<double>(item.count)) : "";
    const std::vector<std::string> lines = wrap(item.name, name - 1, 2);
    for (std::size_t i = 0; i + 1 < lines.size(); ++i)
      text += fmt::format("{:>7}  {}\n", i == 0 ? fmt::format("{}", item.count) : "", lines[i]);
    std::string figures = pad_left(each, 13);
    if (!together.empty()) figures += pad_left(together, 30);
    text += fmt::format("{:>7}  {}{}\n", lines.size() == 1 ? fmt::format("{}", item.count) : "",
                        pad_right(lines.back(), name), figures);
  }
  text += total("fabric: switches, cables, NICs if apart", range_text(bill.capital_range(true)), name);
  text += total(bill.unpriced().empty() ? "everything" : "everything that has a price",
                range_text(bill.capital_range()), name);
  text += total("power at full load", three_digits(bill.watts() / 1000) + " kW", name);
  return text;
}

std::string bom_table(const CostModel& cost, int columns) {
  std::string text = bom_table(cost.bill, columns);
  const std::size_t name = name_columns(cost.bill, columns);
  const Interval watts = watts_with_pue(cost);
  text += total("with cooling (PUE " + share_text(cost.pue) + ")",
                watts.low == watts.high ? three_digits(watts.usual / 1000) + " kW"
                                        : fmt::format("{} to {} kW", three_digits(watts.low / 1000),
                                                      three_digits(watts.high / 1000)),
                name);
  text += total("energy a year at " + range_text(cost.electricity) + "/kWh",
                range_text(energy_per_year(cost)), name);
  text += total("an hour, over " + share_text(cost.years) + " years", range_text(per_hour(cost)), name);
  text += remarks_text(cost.bill) + "prices\n";
  for (const BomItem& item : cost.bill.items)
    if (item.price && !item.included)
      for (const std::string& line : wrap(fmt::format("  {}: {}", item.id, item.price_source), 80, 4))
        text += line + "\n";
  text += "  offers: topsim list hardware NAME; your own quotes: cost.prices of a scenario\n";
  return text;
}

std::string bom_json(const CostModel& cost) {
  using nlohmann::json;
  json items = json::array();
  for (const BomItem& item : cost.bill.items) {
    items.push_back({{"category", name_of(item.category)},
                     {"id", item.id},
                     {"name", item.name},
                     {"count", item.count},
                     {"included_in_server", item.included},
                     {"usd_each", item.price ? bounds_json(*item.price) : json()},
                     {"price_source", item.price_source},
                     {"basis", item.basis ? name_of(*item.basis) : ""},
                     {"of", item.priced_as.empty() ? item.id : item.priced_as},
                     {"watts_each", item.watts}});
  }
  const json document = {{"format", "topsim.bom/1"},
                         {"items", std::move(items)},
                         {"capital_usd", bounds_json(cost.bill.capital_range())},
                         {"fabric_usd", bounds_json(cost.bill.capital_range(true))},
                         {"watts", cost.bill.watts()},
                         {"pue", bounds_json(cost.pue)},
                         {"usd_per_kwh", bounds_json(cost.electricity)},
                         {"years", bounds_json(cost.years)},
                         {"energy_usd_per_year", bounds_json(energy_per_year(cost))},
                         {"usd_per_hour", bounds_json(per_hour(cost))},
                         {"remarks", cost.bill.remarks}};
  return document.dump(1) + '\n';
}

std::string bom_csv(const CostModel& cost) {
  std::string text =
      "category,id,name,count,included_in_server,usd_low,usd_usual,usd_high,watts,price_source\n";
  for (const BomItem& item : cost.bill.items) {
    text += fmt::format("{},{},{},{},{},", name_of(item.category), csv_field(item.id), csv_field(item.name),
                        item.count, item.included);
    text += item.price ? fmt::format("{},{},{}", item.price->low, item.price->usual, item.price->high) : ",,";
    text += fmt::format(",{},{}\n", item.watts, csv_field(item.price_source));
  }
  return text;
}
}  // namespace topsim::report
