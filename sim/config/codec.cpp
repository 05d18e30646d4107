#include "sim/config/codec.hpp"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <functional>
#include <utility>

#include "sim/base/hints.hpp"
#include "sim/base/lower_case.hpp"
#include "sim/base/nearest.hpp"
#include "sim/base/suggest.hpp"
#include "sim/base/take_number.hpp"

namespace topsim::config::detail {
namespace {

std::string shown(double value) {
  return to_text(Value::of(value));
}

std::string range_text(const Range& range, const std::function<std::string(double)>& print) {
  const bool low = std::isfinite(range.least), high = std::isfinite(range.most);
  if (range.open && range.least == 0 && !high) return "above 0";
  if (low && high) return "between " + print(range.least) + " and " + print(range.most);
  if (low && range.open) return "above " + print(range.least);
  if (low) return "at least " + print(range.least);
  if (high) return "at most " + print(range.most);
  return "any";
}

bool inside(const Range& range, double value) {
  return value <= range.most && (range.open ? value > range.least : value >= range.least);
}

bool check_range(const Node& node, const Range& range, double value,
                 const std::function<std::string(double)>& print, Reader& reader) {
  if (inside(range, value)) return true;
  if (value < 0 && range.least == 0) {
    reader.problem(node, "must not be negative", "must be " + range_text(range, print));
  } else {
    reader.problem(node, print(value) + " is out of range", "must be " + range_text(range, print));
  }
  return false;
}

std::string found(const Node& node) {
  if (node.is(Kind::boolean)) return node.boolean() ? "true" : "false";
  if (node.is_number()) return shown(node.number());
  constexpr std::size_t kShort = 40;
  if (node.is(Kind::string) && node.text().size() <= kShort) return "the string \"" + node.text() + '"';
  return std::string(name_of(node.kind()));
}

// For "80 %" where a share is written as 0.8, or "4 years" where a field counts years. Empty if it does not
// begin with a number.
std::string bare_number_hint(const std::string& text) {
  std::string_view unit = text;
  const std::optional<double> number = take_number<double>(unit);
  if (!number || !std::isfinite(*number)) return {};
  const double value = *number;
  unit.remove_prefix(std::min(unit.find_first_not_of(' '), unit.size()));
  if (unit.empty()) return "write " + shown(value);
  if (std::string_view after = unit.substr(1); unit.front() == ':')
    if (const double one = take_number<double>(after).value_or(0); one > 0)
      return "a ratio is one number: write " + shown(value / one);
  if (unit == "%") return "a share without a unit: write " + shown(value / 100);
  if (unit == "k" || unit == "K") return "write " + shown(1024 * value) + " (or " + shown(1000 * value) + ')';
  if (unit.ends_with("Hz")) return "a ratio, 1 for the clock that the accelerator's rates are stated at";
  // "1,2" is not a number, and "64K" is not 64.
  const bool word = unit.size() > 1 && std::isalpha(static_cast<unsigned char>(unit.front())) != 0;
  return word ? "a number without a unit: write " + shown(value) : std::string();
}

// Hints at missing or superfluous brackets.
std::string brackets_hint(const Node& node, bool wants_list) {
  constexpr std::size_t kShort = 40;
  const std::string text = to_text(node.value(), 0);
  if (node.is(Kind::array) && !wants_list) {
    const std::string one = node.size() == 1 ? to_text(node[0].value(), 0) : std::string();
    return one.empty() || one.size() > kShort ? "one value, not a list of them" : "without brackets: " + one;
  }
  if (node.is(Kind::array) || !wants_list || node.is(Kind::null)) return {};
  return "in brackets: [" + (text.size() > kShort ? "..." : text) + "]";
}

// A number in quotes is the most frequent mistake.
std::string hint_for(const Node& node, const std::string& expected) {
  if (node.is(Kind::boolean) || node.is(Kind::string)) {  // "recompute": true
    const std::string word = node.is(Kind::string) ? node.text() : node.boolean() ? "true" : "false";
    if (const std::string_view hint = hint_of_value(node.value().key, word); !hint.empty())
      return std::string(hint);
  }
  // Other programs set some switches by an amount: "dropout": 0.05.
  if (expected == kTruth && node.is_number() && node.number() >= 0)
    return node.number() > 0 ? "write true for any value above 0" : "write false for 0";
  const bool wants_list = expected.starts_with("a list");
  if (!node.is(Kind::string) || node.text().empty()) return brackets_hint(node, wants_list);
  const std::string& text = node.text();
  if (text.find("..") != std::string::npos) return "one number; topsim sweep --vary takes a list, 1,2,4";
  if (text == "true" || text == "false" || text.find_first_not_of("0123456789.-") == std::string::npos) {
    return "write " + text + " without quotes";
  }
  if (expected.starts_with("a number") || expected.starts_with("a whole number"))
    return bare_number_hint(text);
  return brackets_hint(node, wants_list);
}

// A number as it was written; a double would round many digits.
std::string written(const Node& node) {
  const std::string line = node.source_line();
  const Place place = node.place();
  const auto begin = static_cast<std::size_t>(std::max(1, place.column)) - 1;
  const std::string text =
      begin < line.size() ? line.substr(begin, static_cast<std::size_t>(place.length)) : "";
  const bool digits = !text.empty() && text.find_first_not_of("-0123456789") == std::string::npos;
  return digits ? text : shown(node.number());
}
}  // namespace

void wrong_kind(const Node& node, const std::string& expected, Reader& reader) {
  reader.problem(node, "expected " + expected + "; found " + found(node), hint_for(node, expected));
}

bool check_kind(const Node& node, Kind kind, const std::string& expected, Reader& reader) {
  if (node.is(kind)) return true;
  wrong_kind(node, expected, reader);
  return false;
}

bool read_boolean(const Node& node, bool& out, Reader& reader) {
  if (!check_kind(node, Kind::boolean, std::string(kTruth), reader)) return false;
  out = node.boolean();
  return true;
}

bool read_count(const Node& node, const Range& range, std::int64_t most, std::int64_t& out, Reader& reader) {
  const bool whole =
      node.is(Kind::integer) || (node.is(Kind::number) && std::trunc(node.number()) == node.number());
  if (!whole) {
    wrong_kind(node, expects_count(range), reader);
    return false;
  }
  const double value = node.number();
  const bool inexact = node.is(Kind::number) && std::abs(value) > kExactIntegers;
  if (value > static_cast<double>(most) || inexact) {
    if (inexact && value < 0x1p63) most = std::min(most, static_cast<std::int64_t>(kExactIntegers));
    const bool bounded = range.most < static_cast<double>(most);
    reader.problem(node, written(node) + " is too large",
                   "at most " + (bounded ? shown(range.most) : std::to_string(most)));
    return false;
  }
  if (!check_range(node, range, value, shown, reader)) return false;
  out = node.is(Kind::integer) ? node.integer() : static_cast<std::int64_t>(value);
  return true;
}

bool read_number(const Node& node, const Range& range, double& out, Reader& reader) {
  if (!node.is_number()) {
    wrong_kind(node, expects_number(range), reader);
    return false;
  }
  if (!check_range(node, range, node.number(), shown, reader)) return false;
  out = node.number();
  return true;
}

bool read_text(const Node& node, std::string& out, Reader& reader) {
  if (!check_kind(node, Kind::string, "a string", reader)) return false;
  out = node.text();
  return true;
}

bool read_quantity(const Node& node, Dimension dimension, const Range& range, double& value,
                   std::int64_t& exact, Reader& reader) {
  const std::string example = "e.g. \"" + std::string(example_of(dimension)) + '"';
  const std::string units =
      "units of " + std::string(name_of(dimension)) + ": " + join(unit_names(dimension));
  if (node.is_number() && node.number() != 0) {
    reader.problem(node, shown(node.number()) + " needs a unit", example, units);
    return false;
  }
  if (!node.is_number() && !node.is(Kind::string)) {
    wrong_kind(node, expects_quantity(dimension), reader);
    return false;
  }
  ParsedQuantity parsed;
  if (node.is(Kind::string)) parsed = parse_quantity(dimension, node.text());
  if (parsed.error) {
    reader.problem(node, std::move(parsed.error->message), std::move(parsed.error->label),
                   std::move(parsed.error->help));
    return false;
  }
  const auto print = [dimension](double v) {
    if (dimension == Dimension::time || dimension == Dimension::size) {
      return format_exact(dimension, std::llround(v));
    }
    return format_quantity(dimension, v);
  };
  if (!check_range(node, range, parsed.value, print, reader)) return false;
  value = parsed.value;
  exact = parsed.exact;
  return true;
}

bool read_name(const Node& node, const std::vector<std::string>& known, std::size_t& out, Reader& reader) {
  if (!node.is(Kind::string)) {
    const std::string_view hint =
        node.is(Kind::boolean) ? hint_of_value(node.value().key, node.boolean() ? "true" : "false") : "";
    reader.problem(node, "expected a name; found " + found(node), std::string(hint),
                   "one of: " + join(known));
    return false;
  }
  for (std::size_t i = 0; i < known.size(); ++i) {
    if (known[i] == node.text()) {
      out = i;
      return true;
    }
  }
  // "BF16" and "GPipe" are read; words that differ in more are asked back.
  const std::string small = lower_case(node.text());
  const auto alike = [&](const std::string& each) { return lower_case(each) == small; };
  const auto same = std::find_if(known.begin(), known.end(), alike);
  if (same != known.end() && std::find_if(same + 1, known.end(), alike) == known.end()) {
    out = static_cast<std::size_t>(same - known.begin());
    return true;
  }
  // A workload has a model too.
  const std::string what = node.value().key.empty()         ? "name"
                           : node.path() == "network.model" ? "network model"
                                                            : node.key();
  reader.unknown_name(node, what, node.text(), known);
  return false;
}

std::string expects_count(const Range& range) {
  return "a whole number" + (inside(range, -1) ? "" : ", " + range_text(range, shown));
}
std::string expects_number(const Range& range) {
  return "a number" + (inside(range, -1) ? "" : ", " + range_text(range, shown));
}
std::string expects_quantity(Dimension dimension) {
  return std::string(name_of(dimension)) + " such as \"" + std::string(example_of(dimension)) + '"';
}

Value schema_of_type(std::string_view type) {
  Value schema(Kind::object);
  schema.add("type", Value::of(type));
  return schema;
}

namespace {
Value with_range(Value schema, const Range& range) {
  if (std::isfinite(range.least)) {
    schema.add(range.open ? "exclusiveMinimum" : "minimum", Value::of(range.least));
  }
  if (std::isfinite(range.most)) schema.add("maximum", Value::of(range.most));
  return schema;
}
}  // namespace

Value schema_of_count(const Range& range) {
  return with_range(schema_of_type("integer"), range);
}
Value schema_of_number(const Range& range) {
  return with_range(schema_of_type("number"), range);
}

Value schema_of_quantity(Dimension dimension) {
  std::string units;
  for (const std::string& unit : unit_names(dimension, /*other_spellings=*/true))
    units += (units.empty() ? "" : "|") + unit;
  Value text = schema_of_type("string");
  text.add("pattern", Value::of("^ *[+]?[0-9.]+([eE][+-]?[0-9]+)? *(" + units + ") *$|^0$"));
  text.add("examples", Value(Kind::array)).push(Value::of(example_of(dimension)));
  Value zero(Kind::object);
  zero.add("const", Value::of(std::int64_t{0}));
  std::vector<Value> choices;
  choices.push_back(std::move(text));
  choices.push_back(std::move(zero));
  return schema_any_of(std::move(choices));
}

Value schema_of_names(const std::vector<std::string>& names, const std::vector<std::string>& texts) {
  Value schema(Kind::object);
  Value& list = schema.add("enum", Value(Kind::array));
  for (const std::string& name : names) list.push(Value::of(name));
  std::string described;
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (!texts[i].empty()) described += (described.empty() ? "" : "; ") + names[i] + ": " + texts[i];
  }
  if (!described.empty()) schema.add("$comment", Value::of(described));
  return schema;
}

Value schema_any_of(std::vector<Value> choices) {
  Value schema(Kind::object);
  Value& list = schema.add("anyOf", Value(Kind::array));
  for (Value& choice : choices) list.push(std::move(choice));
  return schema;
}

Value schema_or_null(Value schema) {
  if (Value* type = schema.find("type")) {
    Value types(Kind::array);
    types.push(Value::of(type->text));
    types.push(Value::of("null"));
    types.key = type->key;
    *type = std::move(types);
  } else if (Value* names = schema.find("enum")) {
    names->push(Value(Kind::null));
  } else if (Value* choices = schema.find("anyOf")) {
    choices->push(schema_of_type("null"));
  } else {  // a reference
    std::vector<Value> either;
    either.push_back(std::move(schema));
    either.push_back(schema_of_type("null"));
    return schema_any_of(std::move(either));
  }
  return schema;
}
}  // namespace topsim::config::detail

namespace topsim::config {
CodecPtr<std::string> one_of(const std::vector<std::string>& words) {
  std::vector<detail::NamesCodec<std::string>::Entry> entries;
  for (const std::string& word : words) entries.push_back({word, word, {}});
  return names<std::string>(std::move(entries));
}
CodecPtr<double> quantity(Dimension dimension, Range range) {
  return std::make_shared<detail::QuantityCodec<double>>(dimension, range);
}
}  // namespace topsim::config
