// --format and other options that take one of a few words, and the width of tables.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace topsim::cli {
// Throws ConfigError with the closest known one and the list.
void check_format(const std::string& format, const std::vector<std::string>& known);
// The same for another option: `what` it names, and what `all` its words are called.
void check_word(const std::string& what, const std::string& word, const std::string& all,
                const std::vector<std::string>& known);
// Columns of a printed table: those of the window, or of COLUMNS; unlimited in a pipe, for grep and
// sort.
[[nodiscard]] std::size_t columns_for_people();
}  // namespace topsim::cli
