#include "sim/config/home_of_key.hpp"

#include <algorithm>
#include <deque>
#include <map>
#include <set>
#include <vector>

#include "sim/base/synonyms.hpp"

namespace topsim::config {
namespace {
constexpr std::string_view kDefinitions = "#/$defs/";

struct Place {
  const Value* schema;
  std::string path;
};

// Adds the object that a schema describes: itself, what it refers to, each of its alternatives.
void add_objects(const Value& schema, const std::string& path, std::map<std::string, Value>& definitions,
                 std::set<std::string>& seen, std::deque<Place>& found) {
  if (const Value* reference = schema.find("$ref")) {
    const std::string id = reference->text.substr(kDefinitions.size());
    if (seen.insert(id).second) add_objects(definitions[id], path, definitions, seen, found);
  }
  if (const Value* choices = schema.find("anyOf"))
    for (const auto& choice : choices->children) add_objects(*choice, path, definitions, seen, found);
  if (schema.find("properties") != nullptr) found.push_back({&schema, path});
}
}  // namespace

std::string home_of_key(std::string_view key, const Value& root, Definitions& definitions) {
  std::vector<std::string> keys, paths;  // those nearest to the root first
  std::set<std::string> seen;
  std::deque<Place> open;
  add_objects(root, "", definitions.values(), seen, open);
  for (; !open.empty(); open.pop_front()) {
    for (const auto& property : open.front().schema->find("properties")->children) {
      const std::string& before = open.front().path;
      keys.push_back(property->key);
      paths.push_back(before.empty() ? property->key : before + '.' + property->key);
      add_objects(*property, paths.back(), definitions.values(), seen, open);
    }
  }
  // Some names stand for a key of one object alone, "lora.dropout".
  for (std::size_t i = 0, count = keys.size(); i < count; ++i) {
    const std::size_t last = paths[i].rfind('.');
    if (last == std::string::npos || last == 0) continue;
    const std::size_t before = paths[i].rfind('.', last - 1);
    keys.push_back(before == std::string::npos ? paths[i] : paths[i].substr(before + 1));
    paths.push_back(paths[i]);
  }
  auto home = std::find(keys.begin(), keys.end(), key);
  if (home == keys.end()) {
    const auto same = same_meaning(key, keys);
    home = same ? std::find(keys.begin(), keys.end(), *same) : keys.end();
  }
  return home == keys.end() ? std::string() : paths[static_cast<std::size_t>(home - keys.begin())];
}
}  // namespace topsim::config
