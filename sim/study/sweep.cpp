#include "sim/study/sweep.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <new>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>

#include "sim/base/error.hpp"
#include "sim/base/parallel.hpp"
#include "sim/report/releases.hpp"
#include "sim/report/version.hpp"
#include "sim/scenario/read/mistakes.hpp"
#include "sim/scenario/read/read.hpp"
#include "sim/scenario/run/simulate.hpp"
#include "sim/study/digest.hpp"
#include "sim/study/ensemble.hpp"
#include "sim/study/sweep_figures.hpp"
#include "workloads/framework.hpp"
#include "workloads/trace/load.hpp"

namespace topsim::study {
namespace {
namespace fs = std::filesystem;
using scenario::Scenario;

std::string content(const fs::path& file) {
  std::ifstream stream(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>()};
}

// One sentence without a place in a file, so that it is the same wherever the sweep runs.
std::string sentence(const ConfigError& error) {
  const Problem& problem = error.problems().front();
  std::string text = problem.message;
  if (!problem.label.empty()) text += " (" + problem.label + ')';
  if (!problem.help.empty()) text += "; " + problem.help;
  if (error.problems().size() > 1) text += "; and " + std::to_string(error.problems().size() - 1) + " more";
  return text;
}

std::string key_of(const SweepBase& base, const Scenario& scenario) {
  Digest digest;
  digest.add(base.inputs).add(base.allow_oom ? "oom" : "").add(scenario::to_json(scenario));
  const fs::path folder = scenario.topology.directory;
  if (!scenario.topology.file.empty()) digest.add(content(folder / scenario.topology.file));
  if (scenario.workload.trace)
    for (const std::string& file : workloads::trace::files_of(*scenario.workload.trace, folder.string()))
      digest.add(fs::path(file).filename().string()).add(content(file));
  return digest.text();
}

std::string key_of_unreadable(const SweepBase& base, std::span<const std::string> assignments,
                              const std::string& message) {
  Digest digest;
  digest.add(base.inputs).add(message);
  for (const std::string& assignment : assignments) digest.add(assignment);
  return digest.text();
}

struct Sweep {
  const SweepSpace& space;
  const SweepBase& base;
  SweepStore& store;
  SweepProgress& progress;

  void point(std::size_t number) {
    const std::vector<std::string> assignments = space.assignments(number);
    if (!store.claim(number, point_key(base, assignments))) {
      ++progress.found;
      ++progress.done;
      return;
    }
    SweepRow row;
    row.point = number;
    executor::Progress run;
    run.stop_all = &progress.stop;
    const bool complete = run_point(base, assignments, row, run);
    if (!complete || progress.stop) return;
    store.add(row);
    if (!row.ok) ++progress.failed;
    ++progress.done;
  }
};
}  // namespace

std::string inputs_digest(std::span<const std::string> config_directories) {
  Digest digest;
  digest.add(report::version()).add(report::commit());
  std::error_code ignored;
  std::set<fs::path> files;
  for (const std::string& layer : config_directories)
    for (const char* folder : {"hardware", "calibration"})
      for (const auto& entry : fs::directory_iterator(fs::path(layer) / folder, ignored))
        if (entry.path().extension() == ".json") files.insert(entry.path());
  for (const fs::path& file : files) digest.add(content(file));
  return digest.text();
}

Scenario readable_scenario(const SweepSpace& space, const SweepBase& base) {
  std::optional<ConfigError> mistake;
  try {
    return base.read({});
  } catch (const ConfigError& error) {
    mistake = error;
  }
  for (std::size_t point = 0; point < space.points.size(); ++point) {
    try {
      return base.read(space.assignments(point));
    } catch (const ConfigError&) {
      continue;
    }
  }
  throw ConfigError(*mistake);
}

// A mistake in a path is reported once for all its values.
void check_values(const SweepSpace& space, const SweepBase& base) {
  std::vector<Problem> mistakes;
  const auto add = [&](Problem problem) {
    const bool known = std::any_of(mistakes.begin(), mistakes.end(), [&](const Problem& each) {
      return each.message == problem.message && each.path == problem.path;
    });
    if (known) return;
    problem.place.file = "point of the sweep";
    mistakes.push_back(std::move(problem));
  };
  for (std::size_t p = 0; p < space.paths.size(); ++p) {
    std::set<std::string> seen;
    for (const auto& point : space.points) {
      if (!seen.insert(point[p]).second) continue;
      const std::string assignment = space.paths[p] + '=' + point[p];
      try {
        (void)base.read(std::span(&assignment, 1));
      } catch (const ConfigError& error) {
        for (const Problem& problem : error.problems()) {
          if (problem.source_line == assignment) add(problem);
        }
      }
    }
  }
  if (!mistakes.empty()) throw ConfigError(std::move(mistakes));
}

namespace {
// By --set, of itself or within an object, not by the file.
bool is_set(const Scenario& scenario, std::string_view path) {
  const config::Node node = scenario.document ? scenario.document->root().at_path(path) : config::Node();
  return node && node.place().file == "--set";
}
}  // namespace

bool let_data_parallel_follow(const SweepSpace& space, SweepBase& base) {
  const auto varies = [&](std::string_view path) {
    return std::find(space.paths.begin(), space.paths.end(), path) != space.paths.end();
  };
  constexpr std::string_view kSizes[] = {"workload.plan.tp", "workload.plan.pp",      "workload.plan.cp",
                                         "topology.nodes",   "topology.accelerators", "topology.node"};
  if (varies("workload.plan.dp") || std::none_of(std::begin(kSizes), std::end(kSizes), varies)) return false;
  try {
    const Scenario given = base.read({});
    if (!given.workload.plan.dp || is_set(given, "workload.plan.dp")) return false;
  } catch (const ConfigError&) {
    return false;  // the points will report what is wrong
  }
  base.read = [given = base.read](std::span<const std::string> assignments) {
    std::vector<std::string> all{"workload.plan.dp=null"};
    all.insert(all.end(), assignments.begin(), assignments.end());
    return given(all);
  };
  return true;
}

namespace {
constexpr std::size_t kMostPoints = 1000;  // a read takes about a millisecond

std::string task_of(const Scenario& scenario) {
  if (scenario.workload.trace) return std::string(kReplay);
  return nlohmann::json::parse(scenario::to_json(scenario)).at("workload").at("task");
}
}  // namespace

std::set<std::string> tasks_of(const SweepSpace& space, const SweepBase& base, const Scenario& given) {
  const auto decides = [](const std::string& path) {
    return path == "workload" || path.starts_with("workload.task") || path.starts_with("workload.trace");
  };
  if (std::none_of(space.paths.begin(), space.paths.end(), decides)) return {task_of(given)};
  std::set<std::string> tasks;
  for (std::size_t point = 0; point < std::min(kMostPoints, space.points.size()); ++point) {
    try {
      tasks.insert(task_of(base.read(space.assignments(point))));
    } catch (const ConfigError&) {
      continue;  // the point will report what is wrong
    }
  }
  return tasks;
}

std::set<std::string> assumed_releases(const SweepSpace& space, const SweepBase& base) {
  std::set<std::string> releases;
  for (std::size_t point = 0; point < std::min(kMostPoints, space.points.size()); ++point) {
    try {
      const Scenario scenario = base.read(space.assignments(point));
      workloads::WorkloadSpec workload = scenario.workload;
      if (workload.trace || workload.framework.find('@') != std::string::npos) continue;
      const auto job = scenario::job_of(scenario.topology, *base.catalogue);
      if (!job) continue;  // a file of devices
      workload.host = job->host;
      releases.insert(workloads::full_name(workloads::framework_of(workload)));
    } catch (const ConfigError&) {
      continue;  // the point will report what is wrong
    }
  }
  return report::of_several_years(releases);
}

std::set<std::string> assumed_releases(std::span<const SweepRow> rows) {
  std::set<std::string> releases;
  for (const SweepRow& row : rows) releases.insert(row.assumed_release);
  return report::of_several_years(releases);
}

std::string point_key(const SweepBase& base, std::span<const std::string> assignments) {
  try {
    return key_of(base, base.read(assignments));
  } catch (const ConfigError& error) {
    return key_of_unreadable(base, assignments, sentence(error));
  }
}

SweepIdentity sweep_identity(const SweepSpace& space, const SweepBase& base) {
  Digest digest, family;
  for (const std::string& path : space.paths) digest.add(path), family.add(path);
  for (const auto& point : space.points) {
    for (const std::string& value : point) digest.add(value);
  }
  // The first point's scenario represents all: they differ only in the values above.
  if (!space.points.empty()) digest.add(point_key(base, space.assignments(0)));
  try {
    family.add(scenario::to_json(base.read({})));
  } catch (const ConfigError& error) {
    family.add(sentence(error));  // only its points can be read
  }
  return {digest.text(), family.text()};
}

namespace {
std::string warnings_of(const report::Result& result) {
  std::string text;
  for (const report::Finding& each : result.findings)
    if (each.severity == report::Severity::warning) text += (text.empty() ? "" : "\n") + each.message;
  return text;
}
std::string joined(std::string text, const std::string& more) {
  return more.empty() ? text : text.empty() ? more : std::move(text) + '\n' + more;
}

// Why a point has no cost; empty where it has one, or nothing of it is known.
std::string unknown_cost(const report::BillOfMaterials& bill) {
  const auto without = bill.without_own_price();
  if (without.empty() || bill.capital(report::Draws(0)) <= 0) return "";
  return fmt::format("no cost: a {} has no known price of its own; a quote (cost.prices.{}) gives one",
                     without.front()->id, without.front()->id);
}
}  // namespace

bool run_point(const SweepBase& base, std::span<const std::string> assignments, SweepRow& row,
               executor::Progress& progress) {
  scenario::SimulateOptions how;
  how.allow_oom = base.allow_oom;
  how.searches = base.searches;
  try {
    const Scenario scenario = base.read(assignments);
    row.key = key_of(base, scenario);
    const scenario::Prepared prepared = scenario::prepare(scenario, *base.catalogue, how);
    const report::Result result =
        scenario::simulate(scenario, *base.catalogue, prepared, how, &progress).result;
    if (!result.complete) return false;
    const report::CostModel cost = cost_model(scenario, prepared.topology, *base.catalogue);
    row.figures = figures_of(result, cost);
    row.message = joined(warnings_of(result), unknown_cost(cost.bill));
    if (const report::Release release = report::release_of(result); release.assumed)
      row.assumed_release = release.name;
    row.ok = true;
  } catch (const ConfigError& error) {
    row.message = sentence(error);
    if (row.key.empty()) row.key = key_of_unreadable(base, assignments, row.message);
  } catch (const std::bad_alloc&) {
    throw;  // out of memory is not a property of the point: not stored
  } catch (const std::exception& error) {
    row.message = std::string(kInternalError) + error.what();
  }
  return true;
}

void run_sweep(const SweepSpace& space, const SweepBase& base, SweepStore& store, int jobs,
               SweepProgress& progress) {
  progress.total = space.points.size();
  Sweep sweep{space, base, store, progress};
  const auto point = [&](std::size_t i) {
    try {
      sweep.point(i);
    } catch (...) {
      progress.stop = true;
      throw;
    }
  };
  parallel::in_order(space.points.size(), jobs, point, [&] { return progress.stop.load(); });
}
}  // namespace topsim::study
