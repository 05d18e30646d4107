// XML of other tools: parsed, or refused with a place. The text is not trusted.
#pragma once

#include <boost/property_tree/ptree.hpp>
#include <string>
#include <string_view>

namespace topsim::topology {

// The element `root` of the text. `expected`: what the file should have been, for the remedy. Throws
// ConfigError with the line.
[[nodiscard]] boost::property_tree::ptree parse_xml(std::string_view text, const std::string& root,
                                                    const std::string& file, const std::string& expected);
}  // namespace topsim::topology
