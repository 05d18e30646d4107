#include "sim/cli/outputs.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "sim/base/error.hpp"

namespace topsim::cli {
namespace fs = std::filesystem;
namespace {

// Pipes and devices lose nothing when they are written to.
bool one_file(const std::string& a, const std::string& b) {
  std::error_code error;
  return fs::is_regular_file(a, error) && fs::equivalent(a, b, error);
}

// Neither need exist.
bool one_name(const std::string& a, const std::string& b) {
  const auto whole = [](const std::string& file) {
    std::error_code error;
    return fs::weakly_canonical(fs::absolute(file, error), error);
  };
  return whole(a) == whole(b);
}

const char* usual_ending(OutputKind kind) {
  switch (kind) {
    case OutputKind::page:
      return ".html";
    case OutputKind::scenario:
      return ".json";
    case OutputKind::trace:
    case OutputKind::other:
      break;  // their commands look themselves
  }
  return nullptr;
}

// A page in x.json would be taken for a scenario by whoever finds it.
void check_ending(const Output& output) {
  const char* const usual = usual_ending(output.kind);
  const std::string ending = fs::path(output.file).extension().string();
  if (usual == nullptr || ending == usual) return;
  for (const char* const other : {".csv", ".gz", ".html", ".json", ".md", ".pdf", ".pftrace", ".png",
                                  ".sqlite", ".svg", ".txt", ".xml", ".yaml", ".yml"})
    if (ending == other)
      throw ConfigError(
          fmt::format("{} {} would be {}", output.option, output.file,
                      output.kind == OutputKind::page ? "a page of HTML" : "a scenario in JSON"),
          fmt::format("name it {}", fs::path(output.file).replace_extension(usual).string()));
}
}  // namespace

void Inputs::add(const scenario::Scenario& scenario) {
  for (std::string& file : scenario::files_read(scenario)) files.push_back(std::move(file));
}

void check_outputs(const Inputs& inputs, const std::vector<Output>& outputs) {
  for (auto output = outputs.begin(); output != outputs.end(); ++output) {
    if (output->file.empty()) continue;
    for (const std::string& input : inputs.files)
      if (one_file(input, output->file))
        throw ConfigError(fmt::format("{} {} is {} that is read", output->option, output->file,
                                      one_file(input, inputs.files.front()) ? inputs.what : "a file"),
                          "name another file");
    for (auto other = output + 1; other != outputs.end(); ++other)
      if (!other->file.empty() && one_name(output->file, other->file))
        throw ConfigError(
            fmt::format("{} and {} name the same file: {}", output->option, other->option, output->file),
            "give each its own");
    check_ending(*output);
  }
}

void check_folder(const Inputs& inputs, const std::string& directory) {
  if (directory.empty()) return;
  for (const char* const name : {"result.json", "run.json", "report.html", "links.csv", "ranks.csv",
                                 "collectives.csv", "timeline.csv", "timeline.csv.gz"})
    for (const std::string& input : inputs.files)
      if (one_file(input, (fs::path(directory) / name).string()))
        throw ConfigError(fmt::format("--out {} would overwrite {}, which is read", directory, input),
                          "name another folder");
}
}  // namespace topsim::cli
