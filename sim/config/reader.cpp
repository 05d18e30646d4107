#include "sim/config/reader.hpp"

#include <algorithm>
#include <filesystem>
#include <tuple>
#include <utility>

#include "sim/base/hints.hpp"
#include "sim/base/suggest.hpp"

namespace topsim::config {
namespace {
namespace fs = std::filesystem;
constexpr std::string_view kSuffix = ".json";
}  // namespace

std::vector<std::string> Library::names(std::string_view category) const {
  std::vector<std::string> names;
  for (const std::string& directory : directories_) {
    std::error_code error;
    for (fs::directory_iterator it(fs::path(directory) / category, error), end; !error && it != end;
         it.increment(error)) {
      if (it->path().extension() == kSuffix) names.push_back(it->path().stem().string());
    }
  }
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  return names;
}

std::string Library::find(std::string_view category, std::string_view name) const {
  if (name.empty() || name.find('/') != std::string_view::npos) return {};
  for (const std::string& directory : directories_) {
    const fs::path path = fs::path(directory) / category / (std::string(name) + std::string(kSuffix));
    std::error_code error;
    if (fs::is_regular_file(path, error)) return path.string();
  }
  return {};
}

namespace {
// "targets" of "workload.lora.targets[0]"; empty for what is not in a list.
std::string_view key_of_list(std::string_view path) {
  if (!path.ends_with(']')) return {};
  path = path.substr(0, path.find('[', path.rfind('.') + 1));
  return path.substr(path.rfind('.') + 1);
}
}  // namespace

void Reader::problem(const Node& at, std::string message, std::string label, std::string help) {
  problems_.push_back(
      {at.place(), at.path(), std::move(message), std::move(label), std::move(help), at.source_line()});
}

void Reader::problem_at_key(const Node& at, std::string message, std::string label, std::string help) {
  problem(at, std::move(message), std::move(label), std::move(help));
  Problem& added = problems_.back();
  added.place = at.key_place();
  if (added.place.line != at.place().line) added.source_line = at.source_line_of_key();
}

void Reader::unknown_name(const Node& at, std::string_view what, std::string_view name,
                          const std::vector<std::string>& known) {
  const std::string_view of_name = hint_of_value(what, name);
  const std::string hint(of_name.empty() ? hint_of_value(key_of_list(at.path()), name) : of_name);
  problem(at, "unknown " + std::string(what) + " \"" + std::string(name.substr(0, 100)) + '"',
          hint.empty() ? suggestion(name, known) : hint,
          known.empty() ? "none is known" : "known: " + join(known));
}

void Reader::add(const ConfigError& error) {
  problems_.insert(problems_.end(), error.problems().begin(), error.problems().end());
}

void Reader::finish() const {
  if (problems_.empty()) return;
  std::vector<Problem> sorted = problems_;
  // In the order of the file; the user's file comes first, because its problems were found first.
  std::vector<std::string> files;
  for (const Problem& problem : sorted) {
    if (std::find(files.begin(), files.end(), problem.place.file) == files.end()) {
      files.push_back(problem.place.file);
    }
  }
  const auto order = [&](const Problem& p) {
    return std::tuple(std::find(files.begin(), files.end(), p.place.file) - files.begin(), p.place.line,
                      p.place.column);
  };
  std::stable_sort(sorted.begin(), sorted.end(),
                   [&](const Problem& a, const Problem& b) { return order(a) < order(b); });
  throw ConfigError(std::move(sorted));
}

Node Reader::keep(Document document) {
  kept_.push_back(std::make_unique<Document>(std::move(document)));
  return kept_.back()->root();
}

bool Reader::enter(const std::string& document) {
  if (std::find(open_.begin(), open_.end(), document) != open_.end()) return false;
  open_.push_back(document);
  return true;
}
}  // namespace topsim::config
