#include "sim/cli/output_format.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <limits>

#include "sim/base/error.hpp"
#include "sim/base/suggest.hpp"
#include "sim/cli/declare.hpp"
#include "sim/report/terminal.hpp"

namespace topsim::cli {

void add_format_option(CLI::App& app, std::string& format, std::span<const std::string_view> known,
                       const std::string& remark) {
  const std::vector<std::string> words(known.begin(), known.end());
  add_option(
      app, "--format", format,
      fmt::format("What is printed (default {}){}{}", words.front(), remark.empty() ? "" : "; ", remark))
      .type_name(word_list(words));
}

void check_format(const std::string& format, std::span<const std::string_view> known) {
  check_word("output format", format, "formats", {known.begin(), known.end()});
}

void check_word(const std::string& what, const std::string& word, const std::string& all,
                const std::vector<std::string>& known) {
  if (std::find(known.begin(), known.end(), word) != known.end()) return;
  const auto close = closest(word, known);
  throw ConfigError("no " + what + " \"" + word + '"',
                    (close ? "did you mean " + *close + "? " : std::string()) + all + ": " + join(known));
}
std::size_t columns_for_people() {
  const char* columns = std::getenv("COLUMNS");
  if (isatty(STDOUT_FILENO) == 0 && (columns == nullptr || *columns == '\0'))
    return std::numeric_limits<std::size_t>::max() / 2;
  return static_cast<std::size_t>(std::max(report::options_of_stdout().columns, 40));
}
}  // namespace topsim::cli
