#include "sim/cli/study_input.hpp"

#include <filesystem>
#include <fstream>
#include <iterator>

#include "sim/base/error.hpp"
#include "sim/report/json.hpp"
#include "sim/scenario/read/read.hpp"

namespace topsim::cli {
namespace {
// A result's keys are sorted, so its format is not the first one; a scenario never contains this word.
bool is_result(const std::string& text) {
  return text.find("\"topsim.result/") != std::string::npos;
}

// Empty if it cannot be read: the name of a shipped scenario.
std::string content(const std::string& file) {
  std::ifstream stream(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>()};
}
}  // namespace

StudyInput read_study_input(const std::string& given, const ScenarioOptions& changes) {
  // A folder written by --out contains its result.
  const std::filesystem::path inside = std::filesystem::path(given) / "result.json";
  std::error_code error;
  const std::string file = std::filesystem::exists(inside, error) ? inside.string() : given;
  if (std::filesystem::is_directory(file, error))
    throw ConfigError('"' + given + "\" is a folder without result.json",
                      "topsim run SCENARIO --out " + given + " writes one; or name a file in it");
  const std::string text = Streams::is_stream(file) ? changes.streams->text(file) : content(file);
  StudyInput input;
  if (!is_result(text)) {
    input.scenario = changes.load(file);
    return input;
  }
  if (!changes.assignments.empty() || !changes.network.empty() || changes.seed) {
    throw ConfigError(file + " is a result: --set, --network and --seed cannot change it",
                      "give the scenario file instead");
  }
  input.result = report::result_from_json(text, file);
  report::require_step(*input.result, file);
  input.scenario = scenario::parse_scenario(input.result->scenario, file, {}, shipped_library());
  input.scenario.name = input.result->name;
  return input;
}
}  // namespace topsim::cli
