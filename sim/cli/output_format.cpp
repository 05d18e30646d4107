#include "sim/cli/output_format.hpp"

#include <algorithm>

#include "sim/base/error.hpp"
#include "sim/base/suggest.hpp"

namespace topsim::cli {

void check_format(const std::string& format, const std::vector<std::string>& known) {
  if (std::find(known.begin(), known.end(), format) != known.end()) return;
  const auto close = closest(format, known);
  throw ConfigError("no output format \"" + format + '"',
                    (close ? "did you mean " + *close + "? " : std::string()) + "formats: " + join(known));
}
}  // namespace topsim::cli
