#include "topology/catalogue/figure.hpp"

namespace topsim::topology {
namespace {
using config::Kind;
using config::Node;

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
}  // namespace

namespace detail {
Node open_figure(const Node& node, config::Reader& reader) {
  if (!node.is(Kind::object)) return open_sourced(node, reader);
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
