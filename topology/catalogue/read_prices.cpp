#include <algorithm>

#include "sim/config/object.hpp"
#include "topology/catalogue/figure.hpp"
#include "topology/catalogue/impl.hpp"

namespace topsim::topology {
using config::Type;

namespace {
config::CodecPtr<double> money() {
  return figure(config::quantity(config::Dimension::money));
}
}  // namespace

static const config::Object<Price>& table(Type<Price>) {
  static const auto object = config::Object<Price>("offer", "One quotation, list price or estimate")
                                 .field("amount", &Price::dollars, "price", config::required(), money())
                                 .field("kind", &Price::kind, "list, street, estimate, ...")
                                 .field("date", &Price::date, "year, month or day");
  return object;
}

namespace {
using config::Node;

struct RawPrice : PriceEntry {
  std::optional<double> chosen;
};
const config::Object<RawPrice>& table(Type<RawPrice>) {
  static const auto object =
      config::Object<RawPrice>("price", "All that is known of what something costs")
          .field("unit", &PriceEntry::unit, "each, kWh, accelerator hour, ...", config::required())
          .field("use", &RawPrice::chosen, "default; left out: the median of the offers", money())
          .field("offers", &PriceEntry::offers, "quotations", config::required());
  return object;
}

struct RawRatio : Ratio {
  std::vector<double> range;
};
const config::Object<RawRatio>& table(Type<RawRatio>) {
  static const auto object =
      config::Object<RawRatio>("ratio", "A number of the cost model that is no price")
          .field("use", &Ratio::use, "default", config::required(), figure<double>())
          .field("range", &RawRatio::range, "lowest and highest", figure<std::vector<double>>());
  return object;
}

struct RawFailure : FailureRate {
  std::vector<double> others;
};
const config::Object<RawFailure>& table(Type<RawFailure>) {
  static const auto object =
      config::Object<RawFailure>("failure rate", "How often one such thing fails")
          .field("name", &FailureRate::name, "for people", config::required())
          .field("per_year", &FailureRate::per_year, "events a year", config::required(), figure<double>())
          .field("others", &RawFailure::others, "what other sources say", config::list_of(figure<double>()))
          .field("remedy", &FailureRate::remedy, "what a failure costs");
  return object;
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const std::size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}
}  // namespace

void read_prices(const config::Document& file, ById<PriceEntry>& prices, ById<Ratio>& ratios,
                 config::Reader& reader) {
  const Node section = file.root().find("prices");
  for (std::size_t i = 0; i < section.size(); ++i) {
    RawPrice price;
    table(Type<RawPrice>{}).read(section[i], price, reader);
    if (price.offers.empty()) continue;
    const Node offers = section[i].find("offers");
    std::vector<double> amounts;
    for (std::size_t k = 0; k < price.offers.size(); ++k) {
      price.offers[k].source = first_source(offers[k]);
      amounts.push_back(price.offers[k].dollars);
    }
    price.use = price.chosen.value_or(median(amounts));
    price.low = std::min(price.use, *std::min_element(amounts.begin(), amounts.end()));
    price.high = std::max(price.use, *std::max_element(amounts.begin(), amounts.end()));
    price.id = section[i].key();
    prices.emplace(price.id, std::move(price));
  }
  const Node numbers = file.root().find("ratios");
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    RawRatio ratio;
    table(Type<RawRatio>{}).read(numbers[i], ratio, reader);
    ratio.low = ratio.range.size() == 2 ? ratio.range[0] : ratio.use;
    ratio.high = ratio.range.size() == 2 ? ratio.range[1] : ratio.use;
    ratio.id = numbers[i].key();
    ratio.source = first_source(numbers[i]);
    ratios.emplace(ratio.id, std::move(ratio));
  }
}

void read_reliability(const config::Document& file, ById<FailureRate>& rates, config::Reader& reader) {
  const Node section = file.root().find("reliability");
  for (std::size_t i = 0; i < section.size(); ++i) {
    RawFailure rate;
    table(Type<RawFailure>{}).read(section[i], rate, reader);
    rate.low = rate.high = rate.per_year;
    for (const double other : rate.others) {
      rate.low = std::min(rate.low, other);
      rate.high = std::max(rate.high, other);
    }
    rate.id = section[i].key();
    rate.source = first_source(section[i]);
    rates.emplace(rate.id, std::move(rate));
  }
}
}  // namespace topsim::topology
