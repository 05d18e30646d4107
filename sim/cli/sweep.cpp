// topsim sweep: runs a scenario with varied values in parallel; its store survives interruptions.
#include "sim/study/sweep.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <iostream>
#include <memory>

#include "sim/base/error.hpp"
#include "sim/cli/commands.hpp"
#include "sim/cli/declare.hpp"
#include "sim/cli/interrupt.hpp"
#include "sim/cli/output_format.hpp"
#include "sim/cli/outputs.hpp"
#include "sim/cli/progress_line.hpp"
#include "sim/cli/scenario_options.hpp"
#include "sim/cli/written.hpp"
#include "sim/report/html/page.hpp"
#include "sim/report/terminal.hpp"
#include "sim/report/text.hpp"
#include "sim/report/write.hpp"
#include "sim/scenario/read/shipped.hpp"
#include "sim/study/sweep_choice.hpp"
#include "sim/study/sweep_figures.hpp"
#include "sim/study/sweep_text.hpp"

namespace topsim::cli {
namespace {

struct Options {
  ScenarioOptions scenario;
  std::vector<std::string> vary, pareto;
  std::string points, out, best, html, format = "table";
  int jobs = 0;
  bool all = false, quiet = false, allow_oom = false;
};

study::SweepSpace space_of(const Options& options) {
  study::SweepSpace space;
  if (!options.points.empty()) space = study::read_points(options.points);
  for (const std::string& each : options.vary) space = study::product(space, study::vary(each));
  if (space.points.empty())
    throw ConfigError("topsim sweep needs --vary or --points", "e.g. --vary workload.plan.tp=1,2,4,8");
  return space;
}

std::string progress_text(const study::SweepProgress& progress, double wall_seconds) {
  const std::size_t done = progress.done, total = progress.total, found = progress.found;
  std::string text = fmt::format("{} of {} points", done, total);
  if (const std::size_t failed = progress.failed; failed > 0)
    text += fmt::format(" \u00b7 {} failed", failed);
  if (done > found && wall_seconds > 0) {
    const double rate = static_cast<double>(done - found) / wall_seconds;
    text += fmt::format(" \u00b7 {:.1f} a second \u00b7 {:.0f} s left", rate,
                        static_cast<double>(total - done) / rate);
  }
  return text;
}

// Refuses a name that other programs would open as text, because the store is a database.
void check_store(const std::string& out) {
  const std::string extension = std::filesystem::path(out).extension().string();
  for (const char* text : {".csv", ".json", ".html", ".txt"})
    if (extension == text)
      throw ConfigError(fmt::format("--out {} would be an SQLite file", out),
                        fmt::format("name it {}.sqlite; --format csv and --format json print the rows",
                                    std::filesystem::path(out).stem().string()));
}

// A key that is varied cannot also be set.
void refuse_both(const Options& options, const std::vector<std::string>& varied) {
  std::vector<std::string> set = options.scenario.assignments;
  if (!options.scenario.network.empty()) set.emplace_back("network.model=");
  if (options.scenario.seed) set.emplace_back("run.seed=");
  for (const std::string& assignment : set) {
    const std::string path = assignment.substr(0, assignment.find('='));
    if (std::find(varied.begin(), varied.end(), path) != varied.end())
      throw ConfigError(path + " is varied, and set by an option, which has no effect",
                        "leave --set, --network or --seed out for it, or what varies it");
  }
}

void refuse_overwriting(const Options& options, const study::SweepBase& base) {
  Inputs inputs{"the scenario", {options.scenario.path, options.points}};
  try {
    inputs.add(base.read({}));
  } catch (const ConfigError&) {
    // Its points alone can be read.
  }
  check_outputs(inputs, {{"--html", options.html, OutputKind::page}, {"--out", options.out}});
}

// Names of figures are checked before anything runs: a mistake in a name must not cost hours.
int run(const Options& options) {
  check_format(options.format, {"table", "json", "csv"});
  report::check_page(options.html);
  check_store(options.out);
  study::SweepReport report;
  report.space = space_of(options);
  for (const std::string& name : options.pareto) report.pareto_figures.push_back(study::sweep_figure(name));
  if (!options.best.empty()) report.by = study::sweep_figure(options.best);

  const std::vector<std::string> directories = scenario::catalogue_directories();
  const topology::Catalogue catalogue = topology::Catalogue::load(directories);
  study::SweepBase base;
  base.catalogue = &catalogue;
  base.inputs = study::inputs_digest(directories);
  base.allow_oom = options.allow_oom;
  base.read = [&options](std::span<const std::string> assignments) {
    ScenarioOptions changed = options.scenario;
    changed.assignments.insert(changed.assignments.end(), assignments.begin(), assignments.end());
    return changed.load();
  };
  study::check_values(report.space, base);
  refuse_overwriting(options, base);
  refuse_both(options, report.space.paths);
  const auto& set = options.scenario.assignments;
  const bool dp_is_set = std::any_of(set.begin(), set.end(), [](const std::string& assignment) {
    return assignment.rfind("workload.plan.dp=", 0) == 0;
  });
  if (!dp_is_set && study::let_data_parallel_follow(report.space, base) && !options.quiet)
    std::cerr << "note: dp follows from the accelerators; --set workload.plan.dp=N holds it\n";
  report.assumed_releases = study::assumed_releases(report.space, base);
  if (!report.assumed_releases.empty() && !options.quiet)
    std::cerr << fmt::format(
        "note: points are assumed to run {}; --set workload.framework=NAME@RELEASE gives all of them one\n",
        fmt::join(report.assumed_releases, " or "));
  study::SweepStore store(options.out, report.space, study::sweep_identity(report.space, base));
  if (store.left_out() > 0 && !options.quiet)
    std::cerr << "note: " << report::plural(static_cast<double>(store.left_out()), "row") << " of "
              << options.out
              << " left its table, whose values this sweep does not have; the runs stay stored\n";

  study::SweepProgress progress;
  const InterruptGuard guard(progress.stop);
  {
    const ProgressLine line([&](double wall, int) { return progress_text(progress, wall); }, options.quiet);
    study::run_sweep(report.space, base, store, options.jobs, progress);
  }
  report.rows = store.rows();
  report.scenario = std::filesystem::path(options.scenario.path).stem().string();
  report.complete = report.rows.size() == report.space.points.size();
  if (options.best.empty()) report.by = study::usual_figure(report.rows);
  if (options.pareto.empty()) report.pareto_figures = study::usual_pareto_figures(report.rows);
  if (!options.quiet && progress.found > 0 && store.stored_before() == 0)
    std::cerr << progress.found << " of " << progress.total << " points repeat another\n";
  else if (!options.quiet && progress.found > 0)
    std::cerr << progress.found << " of " << progress.total << " points were there, "
              << progress.done - progress.found << " simulated now\n";
  const auto columns = static_cast<std::size_t>(report::options_of_stdout().columns);
  std::cout << (options.format == "json"  ? study::sweep_json(report)
                : options.format == "csv" ? study::sweep_csv(report)
                                          : study::sweep_table(report, options.all ? 0 : 20, columns))
            << std::flush;
  if (!options.html.empty())
    report::write_file(options.html, report::sweep_html(study::sweep_json(report), report.scenario));
  say_written(options.quiet, {options.out, options.html});
  if (!report.complete) {
    if (!options.quiet)
      std::cerr << "interrupted: " << report.rows.size() << " of " << report.space.points.size()
                << " points are done" << (options.out.empty() ? "" : "; the same command goes on from there")
                << '\n';
    return kInterrupted;
  }
  for (const study::SweepRow& row : report.rows)
    if (row.message.starts_with(study::kInternalError))
      throw InternalError(fmt::format("in point {}: {}", row.point, row.message));
  const bool any =
      std::any_of(report.rows.begin(), report.rows.end(), [](const auto& row) { return row.ok; });
  if (!any) throw ConfigError("no point of the sweep can be simulated", report.rows.front().message);
  return kOk;
}
}  // namespace

Action configure_sweep(CLI::App& app) {
  const auto options = std::make_shared<Options>();
  options->scenario.declare(app);
  add_option(app, "--vary", options->vary, "A point for each value; with several, for each combination")
      .type_name("PATH=V1,V2,...")
      .one_each();
  add_option(app, "--points", options->points, "A list of points: CSV with paths in its first line, or JSON")
      .type_name("FILE");
  add_option(app, "--out", options->out,
             "Rows go to this SQLite file as they finish; an unfinished file is continued")
      .not_empty()
      .type_name("FILE.sqlite");
  add_jobs(app, options->jobs);
  add_option(app, "--best", options->best,
             "Rank by this figure: step_seconds, mfu, usd_per_million_tokens ... (default tokens_per_second, "
             "step_seconds where there are no tokens)")
      .type_name("KEY");
  add_option(app, "--pareto", options->pareto,
             "Figures of the Pareto set: no point is better in all of them (default: speed, "
             "cost, accelerators, memory)")
      .separated_by(',')
      .type_name("KEY,KEY");
  add_option(app, "--format", options->format, "What is printed (default table)").type_name("table|json|csv");
  add_page(app, options->html, "The sweep as a page: one file that opens offline");
  add_flag(app, "--all", options->all, "Every point in the table, not the first 20");
  add_flag(app, "--allow-oom", options->allow_oom, "Simulate models that do not fit the memory");
  add_flag(app, "--quiet", options->quiet, "No progress, no remarks on stderr");
  return [options] { return run(*options); };
}
}  // namespace topsim::cli
