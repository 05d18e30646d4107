#include "sim/report/releases.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <string_view>

namespace topsim::report {
namespace {
std::string text_at(const std::string& path, const std::string& document) {
  const nlohmann::json::json_pointer at(path);
  const nlohmann::json whole = nlohmann::json::parse(document, nullptr, /*allow_exceptions=*/false);
  if (!whole.is_object() || !whole.contains(at) || !whole.at(at).is_string()) return {};
  return whole.at(at).get<std::string>();
}

struct Parts {
  std::string framework, year, variant;  // "megatron", "2025", "-fsdp"
};
Parts parts(const std::string& name) {
  const std::size_t at = std::min(name.find('@'), name.size()), year = std::min(at + 1, name.size());
  const std::size_t end = std::min(name.find('-', year), name.size());
  return {name.substr(0, at), name.substr(year, end - year), name.substr(end)};
}
}  // namespace

Release release_of(const Result& result) {
  const std::string said = text_at("/workload/framework", result.scenario);
  const std::string chosen = text_at("/framework", result.left_open);
  const bool bare = said.find('@') == std::string::npos;
  const std::string name = chosen.empty() ? said : chosen;
  if (name.find('@') == std::string::npos) return {};
  return {name, bare};
}

std::set<std::string> of_several_years(const std::set<std::string>& releases) {
  std::map<std::string, std::map<std::string, std::set<std::string>>> known;  // by framework, by year
  for (const std::string& release : releases) {
    const auto [framework, year, variant] = parts(release);
    if (!year.empty() && variant != "-gpu") known[framework][year].insert(release);
  }
  for (const auto& [framework, years] : known) {
    if (years.size() < 2) continue;
    std::set<std::string> apart;
    for (const auto& [year, names] : years) apart.insert(names.begin(), names.end());
    return apart;
  }
  return {};
}

std::string several_releases(const std::set<std::string>& releases) {
  if (releases.empty()) return {};
  return fmt::format(
      "points are assumed to run {}: they differ by the release, too; --set workload.framework={} gives all "
      "of them one",
      fmt::join(releases, " or "), *releases.rbegin());
}
}  // namespace topsim::report
