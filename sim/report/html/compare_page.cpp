#include "sim/report/html/compare_page.hpp"

#include "sim/report/json.hpp"

namespace topsim::report {
namespace {
// Texts that are JSON already become one array.
template <class Text>
std::string array_of(std::span<const Candidate> candidates, const Text& text) {
  std::string array = "[";
  for (std::size_t i = 0; i < candidates.size(); ++i) array += (i == 0 ? "" : ",") + text(candidates[i]);
  return array + ']';
}
}  // namespace

std::string compare_html(const Comparison& comparison, std::span<const Candidate> candidates) {
  std::string title = comparison.names[0];
  for (std::size_t i = 1; i < comparison.names.size(); ++i) title += " or " + comparison.names[i];
  const std::string results =
      array_of(candidates, [](const Candidate& each) { return to_json(each.result); });
  const std::string bills = array_of(candidates, [](const Candidate& each) {
    return each.cost ? bom_json(*each.cost) : std::string("null");
  });
  return make_page({"compare", title, compare_json(comparison),
                    R"({"results":)" + results + R"(,"bills":)" + bills + '}'});
}
}  // namespace topsim::report
