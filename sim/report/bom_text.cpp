#include <fmt/core.h>

#include <nlohmann/json.hpp>

#include "sim/report/bill_of_materials.hpp"
#include "sim/report/text.hpp"

namespace topsim::report {
namespace {
std::string range_text(const Interval& range, double times) {
  if (range.low == range.high) return dollars_text(range.usual * times);
  return fmt::format("{} to {}", dollars_text(range.low * times), dollars_text(range.high * times));
}

nlohmann::json range_json(const Interval& range) {
  return {{"low", range.low}, {"usual", range.usual}, {"high", range.high}};
}
}  // namespace

std::string bom_table(const BillOfMaterials& bill) {
  std::string text =
      fmt::format("{:>7}  {}{:>22}{:>26}\n", "count", pad_right("item", 40), "each", "together");
  for (const BomItem& item : bill.items) {
    text += fmt::format("{:>7}  {}{:>22}{:>26}\n", item.count, pad_right(clip(item.name, 39), 40),
                        item.price ? range_text(*item.price, 1) : "?",
                        item.price ? range_text(*item.price, static_cast<double>(item.count)) : "?");
  }
  text += fmt::format("{:>7}  {}{:>48}\n", "", pad_right("fabric: switches, cables, NICs beside servers", 40),
                      range_text(bill.capital_range(true), 1));
  text +=
      fmt::format("{:>7}  {}{:>48}\n", "", pad_right("everything", 40), range_text(bill.capital_range(), 1));
  text += fmt::format("{:>7}  {}{:>48}\n", "", pad_right("power at full load", 40),
                      fmt::format("{} kW", three_digits(bill.watts() / 1000)));
  for (const std::string& remark : bill.remarks) text += "note: " + remark + "\n";
  return text;
}

std::string bom_json(const BillOfMaterials& bill) {
  using nlohmann::json;
  json items = json::array();
  for (const BomItem& item : bill.items) {
    items.push_back({{"category", name_of(item.category)},
                     {"id", item.id},
                     {"name", item.name},
                     {"count", item.count},
                     {"usd_each", item.price ? range_json(*item.price) : json()},
                     {"price_source", item.price_source},
                     {"watts_each", item.watts}});
  }
  const json document = {{"format", "topsim.bom/1"},
                         {"items", std::move(items)},
                         {"capital_usd", range_json(bill.capital_range())},
                         {"fabric_usd", range_json(bill.capital_range(true))},
                         {"watts", bill.watts()},
                         {"remarks", bill.remarks}};
  return document.dump(1) + '\n';
}
}  // namespace topsim::report
