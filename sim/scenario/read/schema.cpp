#include "sim/scenario/read/schema.hpp"

#include <algorithm>

#include "sim/base/suggest.hpp"
#include "sim/config/document.hpp"
#include "sim/scenario/read/includable.hpp"
#include "sim/scenario/read/tables.hpp"
#include "sim/scenario/scenario.hpp"
#include "topology/catalogue/schemas.hpp"
#include "topology/spec_reader.hpp"
#include "workloads/fields.hpp"

namespace topsim::scenario {
namespace {
using config::Value;

// The schemas that `topsim schema NAME` prints; the hardware's follow.
constexpr topology::Schema kSchemas[] = {
    {"scenario", config::schema<Scenario>},
    {"topology", config::schema<topology::TopologySpec>},
    {"workload", config::schema<workloads::WorkloadSpec>},
    {"model", config::schema<workloads::ModelSpec>},
    {"network", config::schema<NetworkSpec>},
};

// "file" stands for the omitted members: an object has either "file" or all required members.
void allow_file(Value* section) {
  if (section == nullptr) return;
  Value* choices = section->find("anyOf");  // a short form, or the object
  Value& object = choices != nullptr ? *choices->children.back() : *section;
  Value& file = object.find("properties")->add("file", Value(config::Kind::object));
  file.add("type", Value::of("string"));
  file.add("description", Value::of("a JSON file whose members these override"));
  const auto required = std::find_if(object.children.begin(), object.children.end(),
                                     [](const auto& member) { return member->key == "required"; });
  if (required == object.children.end()) return;
  Value whole(config::Kind::object), included(config::Kind::object);
  whole.add("required", std::move(**required));
  object.children.erase(required);
  included.add("required", Value(config::Kind::array)).push(Value::of("file"));
  Value& either = object.add("anyOf", Value(config::Kind::array));
  either.push(std::move(whole));
  either.push(std::move(included));
}

// Includes are resolved before the tables are read (read.cpp), so the tables do not contain them.
std::string with_includes(std::string text, const std::string& name) {
  config::Document schema = config::Document::parse(std::move(text), name);
  Value& definitions = *schema.tree().find("$defs");
  allow_file(definitions.find("scenario"));
  for (const char* section : kIncludable) allow_file(definitions.find(section));
  return config::to_text(schema.tree()) + '\n';
}
}  // namespace

std::vector<std::string> schema_names() {
  std::vector<std::string> names;
  for (const topology::Schema& entry : kSchemas) names.emplace_back(entry.name);
  for (const topology::Schema& file : topology::hardware_schemas()) names.emplace_back(file.name);
  return names;
}

std::string schema(const std::string& name) {
  for (const topology::Schema& entry : kSchemas) {
    if (name == entry.name) return with_includes(entry.make(name), name);
  }
  for (const topology::Schema& file : topology::hardware_schemas()) {
    if (name == file.name) return file.make(name);
  }
  const std::vector<std::string> known = schema_names();
  const auto close = closest(name, known);
  throw ConfigError("unknown schema \"" + name + '"',
                    close ? "did you mean \"" + *close + "\"?" : "known: " + join(known));
}
}  // namespace topsim::scenario
