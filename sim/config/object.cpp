#include "sim/config/object.hpp"

#include <algorithm>
#include <filesystem>
#include <optional>
#include <span>
#include <utility>

#include "sim/base/hints.hpp"
#include "sim/base/suggest.hpp"
#include "sim/base/synonyms.hpp"

namespace topsim::config {
namespace {
constexpr std::string_view kUse = "use";

std::string with_article(const std::string& noun) {
  return (std::string_view("aeiou").find(noun.front()) == std::string_view::npos ? "a " : "an ") + noun;
}
// Suggests a key of the same object that means the same; else one with a similar spelling, rather one that
// the object does not have yet, the path of an equal key in another object, or both.
std::string did_you_mean(const std::string& key, std::span<const std::string> known, const Node& object,
                         const std::string& home) {
  if (const auto same = same_meaning(key, known)) return "did you mean \"" + *same + "\"?";
  std::vector<std::string> absent;
  std::copy_if(known.begin(), known.end(), std::back_inserter(absent),
               [&](const std::string& each) { return !object.find(each); });
  std::optional<std::string> close = closest(key, absent);
  if (!close) close = closest(key, known);
  std::string text;
  if (close) text = '"' + *close + '"';
  if (!home.empty() && !(close && home.ends_with('.' + *close)))
    text += (text.empty() ? "\"" : " or \"") + home + '"';
  return text.empty() ? text : "did you mean " + text + '?';
}

// A file that is named where a library's name or figures belong; absent if there is none.
std::optional<Document> named_file(const Node& name) {
  namespace fs = std::filesystem;
  std::error_code error;
  for (const fs::path& folder : {fs::path(name.place().file).parent_path(), fs::path()}) {
    const fs::path file = folder / name.text();
    if (!fs::is_regular_file(file, error)) continue;
    try {
      return Document::read_file(file.string());
    } catch (const ConfigError&) {
      return std::nullopt;
    }
  }
  return std::nullopt;
}

Value text_of_example(const std::string& json) {
  Document document = Document::parse(json, "example");
  return std::move(document.tree());
}
}  // namespace

namespace detail {

std::string ObjectBase::expects() const {
  const char* what = !has_shorthand()                  ? "an object"
                     : shorthand_kind_ == Kind::string ? "a name or an object"
                                                       : "a number or an object";
  return std::string(what) + " (" + name_ + ")";
}

std::vector<std::string> ObjectBase::keys() const {
  std::vector<std::string> keys;
  for (const FieldFacts& facts : facts_) keys.push_back(facts.key);
  std::sort(keys.begin(), keys.end());
  return keys;
}

Node ObjectBase::member(const Node& node, const std::string& key) const {
  if (!node.is(Kind::object)) return key == shorthand_ ? node : Node();
  Node child = node.find(key);
  if (!child && key == shorthand_) child = node.find(kUse);
  return child.is(Kind::null) ? Node() : child;
}

FieldFacts& ObjectBase::add_facts(std::string_view key, std::string_view description) {
  FieldFacts& facts = facts_.emplace_back();
  facts.key = key;
  facts.description = description;
  return facts;
}

bool ObjectBase::check(const Node& node, Reader& reader) const {
  if (!accepts(node.kind())) {
    wrong_kind(node, expects(), reader);
    return false;
  }
  if (translate_ != nullptr && node.is(Kind::object)) {
    if (const std::optional<std::string> written = translate_(node)) {
      reader.problem(node, "these are another program's keys of a " + name_, "", *written);
      return false;
    }
  }
  const auto is_field = [this](const std::string& key) {
    return std::any_of(facts_.begin(), facts_.end(), [&](const FieldFacts& f) { return f.key == key; });
  };
  for (std::size_t i = 0; i < (node.is(Kind::object) ? node.size() : 0); ++i) {
    const Node child = node[i];
    const std::string& key = child.key();
    if (is_remark(key) || key == "description" || (key == kUse && has_shorthand()) || is_field(key)) {
      continue;
    }
    const std::vector<std::string> known = keys();
    const std::string hint(hint_of_key(name_, key));
    reader.problem_at_key(child, "unknown key \"" + key + '"',
                          hint.empty() ? did_you_mean(key, known, node, reader.home_of(key)) : hint,
                          "keys of " + with_article(name_) + ": " + join(known));
  }
  const bool from_entry = !category_.empty() && member(node, shorthand_);
  for (const FieldFacts& facts : facts_) {
    if (facts.required && !from_entry && !member(node, facts.key)) {
      reader.problem(node, "missing key \"" + facts.key + '"', "",
                     facts.key + ": " + facts.description +
                         (facts.examples.empty() ? "" : ", such as " + facts.examples.front()));
    }
  }
  return true;
}

Node ObjectBase::library_entry(const Node& node, Reader& reader) const {
  if (category_.empty() || reader.library() == nullptr) return {};
  const Node name = member(node, shorthand_);
  if (!name.is(Kind::string)) return {};
  const std::string path = reader.library()->find(category_, name.text());
  if (path.empty()) {
    const std::optional<Document> file = name.text().ends_with(".json") ? named_file(name) : std::nullopt;
    if (!file) {
      reader.unknown_name(name, name_, name.text(), reader.library()->names(category_));
    } else {
      const std::optional<std::string> written =
          translate_ != nullptr ? translate_(file->root()) : std::nullopt;
      reader.problem(
          name, '"' + name.text() + "\" is a file, and a " + name_ + " is a name or its figures", "",
          written.value_or(
              "write its figures here, such as {\"layers\": 32, \"hidden\": 4096, \"heads\": 32}"));
    }
    return {};
  }
  if (!reader.enter(path)) {
    reader.problem(name, '"' + name.text() + "\" refers to itself");
    return {};
  }
  try {
    return reader.keep(Document::read_file(path));
  } catch (const ConfigError& error) {
    reader.add(error);
    reader.leave();
    return {};
  }
}

Value ObjectBase::schema(Definitions& definitions,
                         const std::function<Value(std::size_t, Definitions&)>& field_schema,
                         const std::function<Value(std::size_t)>& field_default) const {
  bool fresh = false;
  const std::string id = definitions.id_of(this, name_, fresh);
  Value reference(Kind::object);
  reference.add("$ref", Value::of("#/$defs/" + id));
  if (!fresh) return reference;

  Value object = schema_of_type("object");
  Value& properties = object.add("properties", Value(Kind::object));
  Value required(Kind::array);
  for (std::size_t i = 0; i < facts_.size(); ++i) {
    const FieldFacts& facts = facts_[i];
    Value property = field_schema(i, definitions);
    if (!facts.required) property = schema_or_null(std::move(property));  // null counts as left out
    std::string text = facts.description;
    if (!facts.default_text.empty()) text += " (default: " + facts.default_text + ")";
    if (!text.empty()) property.add("description", Value::of(text));
    Value initial = field_default(i);
    const bool empty = initial.kind == Kind::null || initial.kind == Kind::object ||
                       (initial.kind == Kind::array && initial.children.empty()) ||
                       (initial.kind == Kind::string && initial.text.empty());
    if (!empty && !facts.required && facts.default_text.empty()) property.add("default", std::move(initial));
    if (!facts.examples.empty()) {
      Value& examples = property.add("examples", Value(Kind::array));
      for (const std::string& example : facts.examples) examples.push(text_of_example(example));
    }
    if (facts.required) required.push(Value::of(facts.key));
    properties.add(facts.key, std::move(property));
  }
  for (const char* accepted : {"$schema", "description"}) {
    if (properties.find(accepted) == nullptr) properties.add(accepted, schema_of_type("string"));
  }
  const char* brief = shorthand_kind_ == Kind::string ? "string" : "integer";
  if (has_shorthand() && properties.find(kUse) == nullptr)
    properties.add(std::string(kUse), schema_of_type(brief));
  object.add("patternProperties", Value(Kind::object)).add("^//", Value(Kind::object));
  object.add("additionalProperties", Value::of(false));
  if (!required.children.empty()) object.add("required", std::move(required));
  if (has_shorthand()) {
    std::vector<Value> choices;
    choices.push_back(schema_of_type(brief));
    choices.push_back(std::move(object));
    object = schema_any_of(std::move(choices));
  }
  object.add("description", Value::of(description_));
  definitions.fill(id, std::move(object));
  return reference;
}
}  // namespace detail

std::string Definitions::id_of(const void* owner, const std::string& name, bool& fresh) {
  std::string id = name;
  std::replace(id.begin(), id.end(), ' ', '-');
  const std::string first = id;
  for (int i = 2;; ++i) {
    const auto [it, inserted] = owners_.emplace(id, owner);
    fresh = inserted;
    if (it->second == owner) return id;
    id = first + "-" + std::to_string(i);
  }
}

std::string finish_schema(std::string_view name, Value root, Definitions definitions) {
  Value schema(Kind::object);
  schema.add("$schema", Value::of("https://json-schema.org/draft/2020-12/schema"));
  schema.add("title", Value::of("topsim " + std::string(name)));
  for (auto& child : root.children) {
    const std::string key = child->key;
    schema.add(key, std::move(*child));
  }
  Value& all = schema.add("$defs", Value(Kind::object));
  for (auto& [key, value] : definitions.values()) all.add(key, std::move(value));
  return to_text(schema) + '\n';
}
}  // namespace topsim::config
