#include "topology/catalogue/figure.hpp"

#include "sim/base/suggest.hpp"

namespace topsim::topology {
namespace {
using config::Kind;
using config::Node;
using config::Value;

const std::vector<std::string> kDisagreeing{"others", "use", "why"};  // keys where sources disagree

const config::Value* sources_of(const Node& node) {
  const config::Value* value = &node.value();
  while (value->parent != nullptr) value = value->parent;
  return value->find("sources");
}

bool check_source(const Node& key, config::Reader& reader) {
  const config::Value* sources = sources_of(key);
  if (sources != nullptr && sources->find(key.text()) != nullptr) return true;
  std::vector<std::string> known;
  if (sources != nullptr) {
    for (const auto& source : sources->children) known.push_back(source->key);
  }
  reader.unknown_name(key, "source", key.text(), known);
  return false;
}

bool is_sourced(const Node& node) {
  return node.is(Kind::array) && (node.size() == 2 || node.size() == 3) && node[1].is(Kind::string) &&
         (node.size() == 2 || node[2].is(Kind::string));
}

Node open_sourced(const Node& node, config::Reader& reader) {
  if (!is_sourced(node)) {
    reader.problem(node, "a figure of the catalogue needs its source", "write [value, \"source\"]",
                   "the second element names a line of the file's \"sources\"; a remark may follow");
    return {};
  }
  return check_source(node[1], reader) ? node[0] : Node{};
}

// The id of a schema in $defs, where kinds of figures that occur often are stored once.
std::string kept_once(const std::string& name, Value schema, config::Definitions& definitions) {
  const std::string text = config::to_text(schema);
  for (int number = 1;; ++number) {
    std::string id = number == 1 ? name : name + "-" + std::to_string(number);
    const auto [at, fresh] = definitions.values().try_emplace(id);
    if (fresh) at->second = std::move(schema);
    if (fresh || config::to_text(at->second) == text) return id;
  }
}

Value reference(const std::string& id) {
  Value schema(Kind::object);
  schema.add("$ref", Value::of("#/$defs/" + id));
  return schema;
}
}  // namespace

namespace detail {
Value schema_of_figure(Value value, config::Definitions& definitions) {
  const auto text = [](const char* description) {
    Value schema = config::detail::schema_of_type("string");
    schema.add("description", Value::of(description));
    return schema;
  };
  Value sourced = config::detail::schema_of_type("array");
  Value& elements = sourced.add("prefixItems", Value(Kind::array));
  elements.push(std::move(value));
  elements.push(text("a key of \"sources\""));
  elements.push(text("a remark"));
  sourced.add("minItems", Value::of(std::int64_t{2}));
  sourced.add("maxItems", Value::of(std::int64_t{3}));
  const std::string id = kept_once("sourced", std::move(sourced), definitions);

  Value disagreeing = config::detail::schema_of_type("object");
  Value& properties = disagreeing.add("properties", Value(Kind::object));
  properties.add("use", reference(id));
  properties.add("others", config::detail::schema_of_type("array")).add("items", reference(id));
  properties.add("why", text("why that one is used"));
  disagreeing.add("patternProperties", Value(Kind::object)).add("^//", Value(Kind::object));
  disagreeing.add("additionalProperties", Value::of(false));
  Value& required = disagreeing.add("required", Value(Kind::array));
  for (const std::string& key : kDisagreeing) required.push(Value::of(key));
  std::vector<Value> forms;
  forms.push_back(reference(id));
  forms.push_back(std::move(disagreeing));
  return reference(kept_once("figure", config::detail::schema_any_of(std::move(forms)), definitions));
}

Node open_figure(const Node& node, config::Reader& reader) {
  if (!node.is(Kind::object)) return open_sourced(node, reader);
  for (std::size_t i = 0; i < node.size(); ++i) {
    const std::string& key = node[i].key();
    if (config::is_remark(key) || std::count(kDisagreeing.begin(), kDisagreeing.end(), key) > 0) continue;
    const auto close = closest(key, kDisagreeing);
    reader.problem_at_key(node[i], "unknown key \"" + key + '"',
                          close ? "did you mean \"" + *close + "\"?" : "",
                          "keys of a figure on which sources disagree: " + join(kDisagreeing));
  }
  const Node use = node.find("use");
  if (use && node.find("others").is(Kind::array) && node.find("why").is(Kind::string)) {
    return open_sourced(use, reader);
  }
  reader.problem(node, "a figure on which sources disagree needs \"use\", \"others\" and \"why\"");
  return {};
}

std::vector<Node> other_values(const Node& node, config::Reader& reader) {
  std::vector<Node> values;
  const Node others = node.is(Kind::object) ? node.find("others") : Node{};
  for (std::size_t i = 0; i < others.size(); ++i) {
    if (const Node value = open_sourced(others[i], reader)) values.push_back(value);
  }
  return values;
}
}  // namespace detail

std::string first_source(const Node& entry) {
  if (is_sourced(entry) && entry[1].is(Kind::string)) {
    const config::Value* sources = sources_of(entry);
    const config::Value* text = sources == nullptr ? nullptr : sources->find(entry[1].text());
    if (text != nullptr) return text->text;
  }
  for (std::size_t i = 0; i < entry.size(); ++i) {
    if (std::string text = first_source(entry[i]); !text.empty()) return text;
  }
  return {};
}
}  // namespace topsim::topology
