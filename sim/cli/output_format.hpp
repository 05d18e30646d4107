// --format and other options that take one of a few words.
#pragma once

#include <string>
#include <vector>

namespace topsim::cli {
// Throws ConfigError with the closest known one and the list.
void check_format(const std::string& format, const std::vector<std::string>& known);
// The same for another option: `what` it names, and what `all` its words are called.
void check_word(const std::string& what, const std::string& word, const std::string& all,
                const std::vector<std::string>& known);
}  // namespace topsim::cli
