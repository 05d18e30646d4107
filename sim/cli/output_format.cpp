#include "sim/cli/output_format.hpp"

#include <algorithm>

#include "sim/base/error.hpp"
#include "sim/base/suggest.hpp"

namespace topsim::cli {

void check_format(const std::string& format, const std::vector<std::string>& known) {
  check_word("output format", format, "formats", known);
}

void check_word(const std::string& what, const std::string& word, const std::string& all,
                const std::vector<std::string>& known) {
  if (std::find(known.begin(), known.end(), word) != known.end()) return;
  const auto close = closest(word, known);
  throw ConfigError("no " + what + " \"" + word + '"',
                    (close ? "did you mean " + *close + "? " : std::string()) + all + ": " + join(known));
}
}  // namespace topsim::cli
