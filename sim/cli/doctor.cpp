// The facts that support needs first when something does not work.
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <iostream>

#include "sim/cli/commands.hpp"
#include "sim/cli/scenario_options.hpp"
#include "sim/network/factory.hpp"
#include "sim/network/simgrid_network.hpp"
#include "sim/report/html/page.hpp"
#include "sim/report/version.hpp"
#include "sim/scenario/read/directories.hpp"
#include "topology/catalogue.hpp"

namespace topsim::cli {
namespace {

class Checks {
 public:
  void fact(const std::string& what, const std::string& value) const { line("      ", what, value); }
  void check(const std::string& what, bool ok, const std::string& value, const std::string& remedy) {
    line(ok ? "ok    " : "FAULT ", what, ok ? value : value + ": " + remedy);
    healthy_ = healthy_ && ok;
  }
  [[nodiscard]] bool healthy() const { return healthy_; }

 private:
  static void line(const std::string& mark, const std::string& what, const std::string& value) {
    std::cout << mark << what << std::string(what.size() < 14 ? 14 - what.size() : 1, ' ') << value << '\n';
  }
  bool healthy_ = true;
};

void check_catalogue(Checks& checks, const std::vector<std::string>& directories) {
  try {
    const std::size_t count = topology::Catalogue::load(directories).entries().size();
    checks.check("catalogue", count > 0, std::to_string(count) + " entries", "the folder hardware/ is empty");
  } catch (const ConfigError& error) {
    checks.check("catalogue", false, error.what(), "repair or reinstall the files");
  }
}

bool has_module(const std::filesystem::path& package) {
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(package, error))
    if (entry.path().filename().string().starts_with("_core.") && entry.path().extension() == ".so")
      return true;
  return false;
}

// Looks for the module beside the program in a build, or below the prefix of an installation.
std::string python_module(const std::filesystem::path& program) {
  namespace fs = std::filesystem;
  if (report::python().empty()) return "no module: the build found no pybind11";
  for (const fs::path& folder : {program / "python", program.parent_path() / report::python_folder()})
    if (has_module(folder / "topsim"))
      return "module for " + std::string(report::python()) + ", in " + folder.string();
  return "module for " + std::string(report::python()) + ", not beside this program";
}

int doctor() {
  namespace fs = std::filesystem;
  Checks checks;
  std::error_code error;
  checks.fact("version",
              "topsim " + std::string(report::version()) + " (" + std::string(report::commit()) + ")");
  checks.fact("compiler", __VERSION__);
  checks.fact("executable", fs::read_symlink("/proc/self/exe", error).string());
  const std::vector<std::string> directories = scenario::config_directories();
  constexpr const char* kSet = "set TOPSIM_CONFIG_PATH to the folder that holds hardware/ and models/";
  for (const std::string& directory : directories) {
    const bool there = fs::is_directory(directory, error);
    checks.check("configs", there, there ? directory : "there is no folder " + directory, kSet);
  }
  const std::vector<std::string> layers = scenario::catalogue_layers(directories);
  if (layers.empty())
    checks.check("catalogue", false, "not found", kSet);
  else
    check_catalogue(checks, layers);
  if (!directories.empty()) {
    const std::size_t models = config::Library(directories).names("models").size();
    checks.check("models", models > 0, std::to_string(models), "the folder models/ is empty");
  }
  std::string names;
  for (const network::Model& model : network::models())
    names += (names.empty() ? "" : ", ") + std::string(model.name) +
             (model.is_installed != nullptr && !model.is_installed() ? " (not installed)" : "");
  checks.fact("networks", names);
  checks.fact("python", python_module(fs::read_symlink("/proc/self/exe", error).parent_path()));
  checks.fact("pages", report::has_page() ? "--html writes them" : "off: the build found no npm");
  checks.fact("stdout", isatty(STDOUT_FILENO) == 1 ? "a terminal" : "no terminal: no colours, no progress");
  for (const char* variable : {"TOPSIM_CONFIG_PATH", "NO_COLOR", "COLUMNS", "TERM"}) {
    if (const char* value = std::getenv(variable)) checks.fact(variable, value);
  }
  return checks.healthy() ? kOk : kCheckFailed;
}
}  // namespace

Action configure_doctor(CLI::App&) {
  return doctor;
}
}  // namespace topsim::cli
