#include <algorithm>

#include "topology/catalogue/figure.hpp"
#include "topology/catalogue/hardware_file.hpp"
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

struct PricesFile : HardwareFile {
  std::map<std::string, RawPrice> prices;
  std::map<std::string, RawRatio> ratios;
};
const config::Object<PricesFile>& table(Type<PricesFile>) {
  static const auto object =
      hardware_file<PricesFile>("prices file", "What things and services cost")
          .field("prices", &PricesFile::prices, "by the id of a thing of the catalogue, or a service")
          .field("ratios", &PricesFile::ratios, "PUE, years of service, ...");
  return object;
}

struct ReliabilityFile : HardwareFile {
  std::map<std::string, RawFailure> reliability;
};
const config::Object<ReliabilityFile>& table(Type<ReliabilityFile>) {
  static const auto object = hardware_file<ReliabilityFile>("reliability file", "How often things fail")
                                 .field("reliability", &ReliabilityFile::reliability, "by kind of thing");
  return object;
}

PriceBasis basis_of(std::string_view kind) {
  const auto says = [&](std::string_view word) { return kind.find(word) != std::string_view::npos; };
  if (says("estimate")) return PriceBasis::estimate;
  return says("list") || kind == "MSRP" ? PriceBasis::list : PriceBasis::street;
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const std::size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}
}  // namespace

std::string_view name_of(PriceBasis basis) {
  constexpr std::string_view names[] = {"list", "street", "estimate", "quote"};
  return names[static_cast<std::size_t>(basis)];
}

std::string prices_schema(std::string_view name) {
  return config::schema<PricesFile>(name);
}
std::string reliability_schema(std::string_view name) {
  return config::schema<ReliabilityFile>(name);
}

void read_prices(const config::Document& file, ById<PriceEntry>& prices, ById<Ratio>& ratios,
                 config::Reader& reader) {
  PricesFile whole;
  table(Type<PricesFile>{}).read(file.root(), whole, reader);
  for_each_entry(file.root().find("prices"), whole.prices, [&](const Node& entry, RawPrice& price) {
    if (price.offers.empty()) return;
    const Node offers = entry.find("offers");
    std::vector<double> amounts;
    for (std::size_t k = 0; k < price.offers.size(); ++k) {
      price.offers[k].source = first_source(offers[k]);
      price.offers[k].basis = basis_of(price.offers[k].kind);
      amounts.push_back(price.offers[k].dollars);
    }
    price.use = price.chosen.value_or(median(amounts));
    price.low = std::min(price.use, *std::min_element(amounts.begin(), amounts.end()));
    price.high = std::max(price.use, *std::max_element(amounts.begin(), amounts.end()));
    price.id = entry.key();
    prices.emplace(price.id, std::move(price));
  });
  for_each_entry(file.root().find("ratios"), whole.ratios, [&](const Node& entry, RawRatio& ratio) {
    ratio.low = ratio.range.size() == 2 ? ratio.range[0] : ratio.use;
    ratio.high = ratio.range.size() == 2 ? ratio.range[1] : ratio.use;
    ratio.id = entry.key();
    ratio.source = first_source(entry);
    ratios.emplace(ratio.id, std::move(ratio));
  });
}

void read_reliability(const config::Document& file, ById<FailureRate>& rates, config::Reader& reader) {
  ReliabilityFile whole;
  table(Type<ReliabilityFile>{}).read(file.root(), whole, reader);
  for_each_entry(file.root().find("reliability"), whole.reliability,
                 [&](const Node& entry, RawFailure& rate) {
                   rate.low = rate.high = rate.per_year;
                   for (const double other : rate.others) {
                     rate.low = std::min(rate.low, other);
                     rate.high = std::max(rate.high, other);
                   }
                   rate.id = entry.key();
                   rate.source = first_source(entry);
                   rates.emplace(rate.id, std::move(rate));
                 });
}
}  // namespace topsim::topology
