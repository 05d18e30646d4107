#include "topology/import/xml.hpp"

#include <algorithm>
#include <boost/property_tree/xml_parser.hpp>
#include <sstream>

#include "sim/base/error.hpp"
#include "topology/import/encoding.hpp"

namespace topsim::topology {
namespace {

[[noreturn]] void refuse(const std::string& file, int line, std::string message,
                         const std::string& expected) {
  throw ConfigError({Problem{{file, line, 1, 1}, {}, std::move(message), {}, "expected " + expected, {}}});
}

// The parser recurses for every level: a file of opening tags alone would exhaust the stack.
void check_depth(std::string_view text, const std::string& file, const std::string& expected) {
  constexpr int kDeepest = 500;
  int depth = 0, line = 1;
  for (std::size_t i = 0; i + 1 < text.size(); ++i) {
    if (text[i] == '\n') ++line;
    if (text[i] == '/' && text[i + 1] == '>') --depth;
    if (text[i] != '<') continue;
    if (text[i + 1] == '/')
      --depth;
    else if (text[i + 1] != '!' && text[i + 1] != '?' && ++depth > kDeepest)
      refuse(file, line, "elements are nested deeper than in any topology", expected);
  }
}

}  // namespace

boost::property_tree::ptree parse_xml(std::string_view text, const std::string& root, const std::string& file,
                                      const std::string& expected) {
  namespace parser = boost::property_tree::xml_parser;
  refuse_utf16(text, file);
  check_depth(text, file, expected);
  boost::property_tree::ptree tree;
  try {
    std::istringstream stream{std::string(text)};
    boost::property_tree::read_xml(stream, tree, parser::no_comments);
  } catch (const parser::xml_parser_error& error) {
    refuse(file, std::max(1, static_cast<int>(error.line())), "not a topology file: " + error.message(),
           expected);
  }
  const auto found = tree.find(root);
  if (found == tree.not_found()) refuse(file, 1, file + " has no <" + root + "> element", expected);
  return std::move(found->second);
}

}  // namespace topsim::topology
