#include "sim/report/cost_spec.hpp"

namespace topsim::report {

const config::Object<CostSpec>& table(config::Type<CostSpec>) {
  using config::Dimension;
  // An unset range is written as an empty list.
  const auto ends_of_range = [](const std::vector<double>& values, const config::Node& at,
                                config::Reader& reader) {
    if (at && (values.size() > 2 || (values.size() == 2 && values[0] > values[1]))) {
      reader.problem(at, "expected one value, or the two ends of a range, the lower first");
    }
  };
  static const auto object =
      config::Object<CostSpec>("cost",
                               "Prices and running costs that replace the catalogue's published ranges")
          .field("prices", &CostSpec::prices,
                 "quotes by catalogue id, such as \"30 kUSD\", one value or [low, high]",
                 config::map_of(config::one_or_list(config::quantity(Dimension::money))),
                 config::example(R"({"qm9700": ["30000 USD", "36000 USD"]})"))
          .field("electricity", &CostSpec::electricity, "price of energy, one value or [low, high]",
                 config::one_or_list(config::quantity(Dimension::energy_price)),
                 config::default_text("the catalogue's range"), config::example("\"0.08 USD/kWh\""))
          .field("pue", &CostSpec::pue, "power usage effectiveness, one value or [low, high]",
                 config::one_or_list(config::codec_for<double>(config::between(1, 10))),
                 config::default_text("the catalogue's range"))
          .field("years", &CostSpec::years, "over which the purchase is written off",
                 config::between(0.01, 100), config::default_text("the catalogue's range"))
          .field("tokens", &CostSpec::tokens, "of one training run, for the cost of a run",
                 config::positive())
          .check([ends_of_range](const CostSpec& spec, const config::Node& node, config::Reader& reader) {
            for (const auto& [id, price] : spec.prices) {
              const config::Node at = node.find("prices").find(id);
              ends_of_range(price, at, reader);
              if (price.empty()) reader.problem(at, "expected a price");
            }
            ends_of_range(spec.electricity, node.find("electricity"), reader);
            ends_of_range(spec.pue, node.find("pue"), reader);
          });
  return object;
}
}  // namespace topsim::report
