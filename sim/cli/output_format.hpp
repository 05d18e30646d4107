// --format and other options that take one of a few words, and the width of tables.
#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace CLI {
class App;
}

namespace topsim::cli {
// What a command prints, by --format; the first is the default.
inline constexpr std::array<std::string_view, 2> kTableJson = {"table", "json"};
inline constexpr std::array<std::string_view, 3> kTableJsonCsv = {"table", "json", "csv"};
inline constexpr std::array<std::string_view, 3> kTableMdJson = {"table", "md", "json"};

// `remark`: on one of them, for the help.
void add_format_option(CLI::App& app, std::string& format, std::span<const std::string_view> known,
                       const std::string& remark = {});
// Throws ConfigError with the closest known one and the list.
void check_format(const std::string& format, std::span<const std::string_view> known);
// The same for another option: `what` it names, and what `all` its words are called.
void check_word(const std::string& what, const std::string& word, const std::string& all,
                const std::vector<std::string>& known);
// Columns of a printed table: those of the window, or of COLUMNS; unlimited in a pipe, for grep and
// sort.
[[nodiscard]] std::size_t columns_for_people();
}  // namespace topsim::cli
