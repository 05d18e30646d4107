#include "sim/report/html/compare_page.hpp"

#include <fmt/ranges.h>

#include "sim/report/json.hpp"

namespace topsim::report {

ComparePage compare_page(const Comparison& comparison, std::span<const Candidate> candidates) {
  ComparePage page{comparison.names, compare_json(comparison), {}, {}};
  for (const Candidate& each : candidates) {
    page.results.push_back(to_json(each.result));
    page.bills.push_back(each.cost ? bom_json(*each.cost) : "null");
  }
  return page;
}

std::string compare_html(const ComparePage& page) {
  return make_page({"compare", fmt::format("{}", fmt::join(page.names, " or ")), page.comparison,
                    fmt::format(R"({{"results":[{}],"bills":[{}]}})", fmt::join(page.results, ","),
                                fmt::join(page.bills, ","))});
}
}  // namespace topsim::report
