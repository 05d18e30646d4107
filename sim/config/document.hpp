// A parsed JSON file, and handles to its parts that know their place and path.
//
//   const Document document = Document::read_file("configs/8xH100-ib.json");
//   Node nodes = document.root().find("topology").find("nodes");
//   reader.problem(nodes, "too many nodes", "the switch has 64 ports", "use a third tier");
//
// Refused with place and remedy: what is not JSON, a key twice, NaN, numbers beyond a double, more than 100
// levels. Accepted and skipped wherever an object is read: keys that begin with "//", "$schema", and
// "description" where the struct has none.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/error.hpp"
#include "sim/config/value.hpp"

namespace topsim::config {

class Node {
 public:
  Node() = default;
  explicit Node(const Value* value) : value_(value) {}
  explicit operator bool() const { return value_ != nullptr; }  // false: absent
  [[nodiscard]] Kind kind() const { return value_->kind; }
  [[nodiscard]] bool is(Kind k) const { return value_ != nullptr && value_->kind == k; }
  [[nodiscard]] bool is_number() const { return is(Kind::integer) || is(Kind::number); }
  [[nodiscard]] bool boolean() const { return value_->boolean; }
  [[nodiscard]] std::int64_t integer() const { return value_->integer; }
  [[nodiscard]] double number() const { return value_->number; }
  [[nodiscard]] const std::string& text() const { return value_->text; }
  [[nodiscard]] const std::string& key() const { return value_->key; }

  [[nodiscard]] std::size_t size() const { return value_ == nullptr ? 0 : value_->children.size(); }
  [[nodiscard]] Node operator[](std::size_t i) const { return Node(value_->children[i].get()); }
  // Absent when there is no such member, or this is absent or no object: finds can be chained.
  [[nodiscard]] Node find(std::string_view name) const;
  // "topology.links[2].bandwidth"; absent where the document does not have it.
  [[nodiscard]] Node at_path(std::string_view path) const;

  [[nodiscard]] std::string path() const;
  [[nodiscard]] Place place() const;
  [[nodiscard]] Place key_place() const;          // of the key when it has one, else place()
  [[nodiscard]] std::string source_line() const;  // the text of the line place() is on
  [[nodiscard]] std::string source_line_of_key() const;
  [[nodiscard]] const Value& value() const { return *value_; }

 private:
  const Value* value_ = nullptr;
};

// A comment or an editor's key: "// ...", "$schema".
[[nodiscard]] bool is_remark(std::string_view key);

class Document {
 public:
  // All mistakes are ConfigErrors. For a missing file they name the path tried and similar files beside it.
  static Document read_file(const std::string& path);
  static Document parse(std::string text, std::string name);

  [[nodiscard]] Node root() const { return Node(root_.get()); }
  [[nodiscard]] Value& tree() { return *root_; }
  [[nodiscard]] const std::string& name() const { return sources_.front()->name; }
  [[nodiscard]] std::vector<std::string> files() const;  // itself, what it includes, and "--set"

  // Sets what `path=value` says (as --set does), creating missing objects; lists are indexed:
  // links[2].length. A value that is not JSON is a string: topology.fabric.link=ib-ndr.
  void set(std::string_view assignment);
  // Puts the members of `other` under this document's `at` where `at` has none of that name (objects merge
  // deeply); what `at` says wins. Places keep pointing into the file they came from.
  void merge_below(Value& at, Document other);

  // Fills place and source line of problems that only name a path (a check made after reading). A path that
  // the file does not have is shown at its nearest ancestor that it has.
  [[nodiscard]] std::vector<Problem> locate(std::vector<Problem> problems) const;

 private:
  Document() = default;
  std::vector<std::shared_ptr<const Source>> sources_;  // [0] is the file itself; then includes and --set
  std::unique_ptr<Value> root_;
};
}  // namespace topsim::config
