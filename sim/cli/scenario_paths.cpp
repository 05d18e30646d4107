#include "sim/cli/scenario_paths.hpp"

#include <nlohmann/json.hpp>
#include <set>

#include "sim/scenario/read/schema.hpp"
#include "sim/scenario/scenario.hpp"

namespace topsim::cli {
namespace {
using nlohmann::json;
constexpr int kDeepest = 6;  // network.packet.congestion_control.dcqcn.byte_counter has five

void add_paths(const json& document, const json& part, const std::string& prefix, int depth,
               std::set<std::string>& paths) {
  if (depth > kDeepest) return;
  const json* node = &part;
  if (const auto reference = part.find("$ref"); reference != part.end()) {
    node = &document.at(json::json_pointer(reference->get<std::string>().substr(1)));
  }
  for (const char* choice : {"anyOf", "oneOf"}) {
    if (!node->contains(choice)) continue;
    for (const json& each : node->at(choice)) add_paths(document, each, prefix, depth, paths);
  }
  if (!node->contains("properties")) return;
  for (const auto& [key, below] : node->at("properties").items()) {
    if (key.front() == '$' || key == "description") continue;
    paths.insert(prefix + key);
    add_paths(document, below, prefix + key + '.', depth + 1, paths);
  }
}
}  // namespace

std::vector<std::string> scenario_paths() {
  const json document = json::parse(scenario::schema("scenario"));
  std::set<std::string> paths;
  add_paths(document, document, "", 0, paths);
  return {paths.begin(), paths.end()};
}
}  // namespace topsim::cli
