#include "sim/config/document.hpp"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <utility>

#include "sim/base/suggest.hpp"

namespace topsim::config {
namespace {
namespace fs = std::filesystem;

constexpr std::size_t kLongestShownLine = 2000;  // a minified file is a single line, too long for a message

// One step of a path: a key, or an index into a list.
struct Step {
  std::string key;
  std::size_t index = 0;
  bool is_index = false;
  std::size_t begin = 0;  // its position in the path's text
};

// "topology.links[2].bandwidth", with ["odd.key"] for a key with dots or brackets. nullopt: not a path.
std::optional<std::vector<Step>> parse_path(std::string_view path) {
  std::vector<Step> steps;
  std::size_t i = 0;
  while (i < path.size()) {
    Step step;
    step.begin = i;
    if (path[i] == '[') {
      const bool quoted = i + 1 < path.size() && path[i + 1] == '"';
      const std::size_t end = path.find(quoted ? "\"]" : "]", i + 2);
      if (end == std::string_view::npos) return std::nullopt;
      if (quoted) {
        step.key = path.substr(i + 2, end - i - 2);
        i = end + 2;
      } else {
        const std::string_view digits = path.substr(i + 1, end - i - 1);
        const auto result = std::from_chars(digits.data(), digits.data() + digits.size(), step.index);
        if (result.ec != std::errc{} || result.ptr != digits.data() + digits.size()) return std::nullopt;
        step.is_index = true;
        i = end + 1;
      }
    } else {
      if (path[i] == '.') {
        if (steps.empty()) return std::nullopt;
        step.begin = ++i;
      } else if (!steps.empty()) {
        return std::nullopt;
      }
      const std::size_t end = std::min(path.find_first_of(".[", i), path.size());
      step.key = path.substr(i, end - i);
      if (step.key.empty()) return std::nullopt;
      i = end;
    }
    steps.push_back(std::move(step));
  }
  if (steps.empty()) return std::nullopt;
  return steps;
}

const Value* child_of(const Value& value, const Step& step) {
  if (!step.is_index) return value.find(step.key);
  if (value.kind != Kind::array || step.index >= value.children.size()) return nullptr;
  return value.children[step.index].get();
}

void set_source(Value& value, const Source& source) {
  value.source = &source;
  for (const auto& child : value.children) set_source(*child, source);
}

std::vector<std::string> files_beside(const fs::path& path) {
  std::vector<std::string> names;
  std::error_code ignored;
  const fs::path folder = path.has_parent_path() ? path.parent_path() : fs::path(".");
  for (fs::directory_iterator it(folder, ignored), end; !ignored && it != end; it.increment(ignored)) {
    names.push_back(it->path().filename().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}
}  // namespace

Node Node::find(std::string_view name) const {
  return value_ == nullptr ? Node() : Node(value_->find(name));
}

Node Node::at_path(std::string_view path) const {
  if (path.empty()) return *this;
  const auto steps = parse_path(path);
  const Value* value = value_;
  for (std::size_t i = 0; steps && value != nullptr && i < steps->size(); ++i) {
    value = child_of(*value, (*steps)[i]);
  }
  return Node(steps ? value : nullptr);
}

std::string Node::path() const {
  std::vector<const Value*> chain;
  for (const Value* v = value_; v != nullptr && v->parent != nullptr; v = v->parent) chain.push_back(v);
  std::string path;
  for (auto it = chain.rbegin(); it != chain.rend(); ++it) {
    const Value& v = **it;
    if (v.parent->kind == Kind::array) {
      const auto& siblings = v.parent->children;
      const auto self =
          std::find_if(siblings.begin(), siblings.end(), [&](const auto& s) { return s.get() == &v; });
      path += '[' + std::to_string(self - siblings.begin()) + ']';
    } else if (v.key.find_first_of(".[]\"") != std::string::npos) {
      path += "[\"" + v.key + "\"]";
    } else {
      path += (path.empty() ? "" : ".") + v.key;
    }
  }
  return path;
}

Place Node::place() const {
  if (value_ == nullptr || value_->source == nullptr) return {};
  return {value_->source->name, value_->span.line, value_->span.column, value_->span.length};
}
Place Node::key_place() const {
  if (value_ == nullptr || value_->source == nullptr || value_->key_span.line == 0) return place();
  return {value_->source->name, value_->key_span.line, value_->key_span.column, value_->key_span.length};
}
namespace {
std::string shown_line(const Source& source, int number) {
  std::string line = source.line(number);
  return line.size() > kLongestShownLine ? std::string() : line;
}
}  // namespace
std::string Node::source_line() const {
  if (value_ == nullptr || value_->source == nullptr) return {};
  return shown_line(*value_->source, value_->span.line);
}
std::string Node::source_line_of_key() const {
  if (value_ == nullptr || value_->source == nullptr) return {};
  return shown_line(*value_->source, value_->key_span.line);
}

std::vector<std::string> Document::files() const {
  std::vector<std::string> names;
  for (const auto& source : sources_) names.push_back(source->name);
  return names;
}

Document Document::read_file(const std::string& path) {
  std::error_code ignored;
  if (fs::is_directory(path, ignored)) {
    throw ConfigError("\"" + path + "\" is a folder", "name a file in it");
  }
  std::ifstream file(path, std::ios::binary);
  if (!file) {
    std::string help = "looked for " + fs::absolute(path, ignored).lexically_normal().string();
    if (const auto close = closest(fs::path(path).filename().string(), files_beside(path))) {
      help += "; did you mean " + (fs::path(path).parent_path() / *close).string() + "?";
    }
    const bool there = fs::exists(path, ignored);
    throw ConfigError((there ? "cannot open \"" : "no such file: \"") + path + '"', help);
  }
  std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  return parse(std::move(text), path);
}

namespace {
ConfigError mistake_of(std::string_view assignment, std::string message, std::string help) {
  std::vector<Problem> problems(1);
  problems[0].place = {"--set", 1, 1, static_cast<int>(assignment.size())};
  problems[0].message = std::move(message);
  problems[0].help = std::move(help);
  problems[0].source_line = assignment;
  return ConfigError(std::move(problems));
}

// Turns null or a name into an object: "link": "ib-ndr" is short for {"use": "ib-ndr"}, so descending into it
// keeps the name. False for any other value.
bool open_object(Value& at, const Source& source, int path_length) {
  if (at.kind == Kind::object) return true;
  if (at.kind != Kind::string && at.kind != Kind::null) return false;
  Value object(Kind::object);
  object.source = &source;
  object.span = {1, 1, path_length};
  object.key = at.key;
  object.key_span = at.key_span;
  if (at.kind == Kind::string) {
    Value name = at.copy();
    object.add("use", std::move(name));
  }
  at = std::move(object);
  return true;
}
}  // namespace

void Document::set(std::string_view assignment) {
  const auto fail = [&](std::string message, std::string help) {
    return mistake_of(assignment, std::move(message), std::move(help));
  };
  const std::size_t equals = assignment.find('=');
  if (equals == std::string_view::npos || equals == 0) {
    throw fail("--set needs PATH=VALUE", "e.g. --set workload.sequence=4096");
  }
  const std::string_view path = assignment.substr(0, equals);
  const auto steps = parse_path(path);
  if (!steps) throw fail('"' + std::string(path) + "\" is no path", "e.g. workload.plan.tp or faults[0].at");

  const auto source = std::make_shared<const Source>(Source{"--set", std::string(assignment)});
  const std::string value_text(assignment.substr(equals + 1));
  Value value;
  try {
    // Leading blanks preserve the columns of the rest.
    value = std::move(*parse(std::string(equals + 1, ' ') + value_text, "--set").root_);
  } catch (const ConfigError& error) {
    // A value that begins like an object, a list or a string was meant as one.
    const std::size_t first = value_text.find_first_not_of(' ');
    if (first != std::string::npos &&
        std::string_view("{[\"").find(value_text[first]) != std::string_view::npos) {
      std::vector<Problem> problems = error.problems();
      for (Problem& problem : problems) problem.source_line = assignment;
      throw ConfigError(std::move(problems));
    }
    value = Value::of(std::string_view(value_text));
    value.span = {1, static_cast<int>(equals) + 2, std::max(1, static_cast<int>(value_text.size()))};
  }
  set_source(value, *source);

  Value* at = root_.get();
  for (const Step& step : *steps) {
    if (!step.is_index && !open_object(*at, *source, static_cast<int>(equals)))
      throw fail("--set cannot reach \"" + std::string(path) + "\": " + Node(at).path() + " is " +
                     std::string(name_of(at->kind)),
                 {});
    if (step.is_index && at->kind == Kind::null) at->kind = Kind::array;
    Value* child = const_cast<Value*>(child_of(*at, step));
    if (child == nullptr) {
      if (step.is_index && (at->kind != Kind::array || step.index != at->children.size())) {
        throw fail("--set cannot reach \"" + std::string(path) + "\": the list has " +
                       std::to_string(at->kind == Kind::array ? at->children.size() : 0) + " entries",
                   "an index one past the last appends");
      }
      Value fresh(Kind::null);
      fresh.source = source.get();
      fresh.key_span = {1, static_cast<int>(step.begin) + 1, static_cast<int>(step.key.size())};
      child = step.is_index ? &at->push(std::move(fresh)) : &at->add(step.key, std::move(fresh));
    }
    at = child;
  }
  value.key = at->key;
  value.key_span = {1, static_cast<int>(steps->back().begin) + 1, static_cast<int>(steps->back().key.size())};
  *at = std::move(value);
  sources_.push_back(source);
}

namespace {
void merge_objects(Value& over, Value& under) {
  for (auto& child : under.children) {
    Value* there = over.find(child->key);
    if (there == nullptr) {
      const std::string key = child->key;
      over.add(key, std::move(*child));
    } else if (there->kind == Kind::object && child->kind == Kind::object) {
      merge_objects(*there, *child);
    }
  }
}
}  // namespace

void Document::merge_below(Value& at, Document other) {
  for (auto& source : other.sources_) sources_.push_back(source);
  if (at.kind == Kind::object && other.root_->kind == Kind::object) merge_objects(at, *other.root_);
}

std::vector<Problem> Document::locate(std::vector<Problem> problems) const {
  for (Problem& problem : problems) {
    if (!problem.place.file.empty()) continue;
    if (problem.path.empty()) {  // about the whole: no line of the file is wrong
      problem.place.file = name();
      continue;
    }
    std::string path = problem.path;
    Node node = root().at_path(path);
    while (!node) {
      const std::size_t cut = path.find_last_of(".[");
      path.resize(cut == std::string::npos ? 0 : cut);
      node = root().at_path(path);
    }
    problem.place = node.place();
    problem.source_line = node.source_line();
  }
  return problems;
}
}  // namespace topsim::config
