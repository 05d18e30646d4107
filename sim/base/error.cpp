#include "sim/base/error.hpp"

#include <utility>

namespace topsim {
namespace {
std::string summary(const std::vector<Problem>& problems) {
  std::string text;
  for (const Problem& problem : problems) {
    if (!text.empty()) text += '\n';
    if (!problem.place.file.empty()) {
      text += problem.place.file + ':' + std::to_string(problem.place.line) + ':' +
              std::to_string(problem.place.column) + ": ";
    }
    text += problem.message;
  }
  return text;
}
}  // namespace

ConfigError::ConfigError(std::vector<Problem> problems)
    : std::runtime_error(summary(problems)), problems_(std::move(problems)) {}

ConfigError::ConfigError(std::string message, std::string help)
    : ConfigError(std::vector<Problem>{Problem{{}, {}, std::move(message), {}, std::move(help), {}}}) {}
}  // namespace topsim
