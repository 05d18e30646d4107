// topsim sweep: runs a scenario with varied values in parallel; its store survives interruptions.
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
#include "sim/report/releases.hpp"
#include "sim/report/terminal.hpp"
#include "sim/report/text.hpp"
#include "sim/report/write.hpp"
#include "sim/study/sweep_session.hpp"

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

void refuse_overwriting(const Options& options) {
  Inputs inputs{"the scenario", {options.scenario.path, options.points}};
  try {
    inputs.add(options.scenario.load());
  } catch (const ConfigError&) {
    // Its points alone can be read.
  }
  check_outputs(inputs, {{"--html", options.html, OutputKind::page}, {"--out", options.out}});
}

study::SweepRequest request_of(const Options& options) {
  study::SweepRequest request;
  request.space = space_of(options);
  ScenarioOptions scenario = options.scenario;
  scenario.assignments = scenario.all_assignments();
  scenario.network.clear();
  scenario.seed.reset();
  request.settings = scenario.assignments;
  request.read = [scenario](std::span<const std::string> assignments) {
    ScenarioOptions changed = scenario;
    changed.assignments.insert(changed.assignments.end(), assignments.begin(), assignments.end());
    return changed.load();
  };
  request.file = options.out;
  request.allow_oom = options.allow_oom;
  request.best = options.best;
  request.pareto = options.pareto;
  return request;
}

void say_what_is_assumed(const study::SweepSession& session, const std::string& out) {
  if (session.dp_follows())
    std::cerr << "note: dp follows from the accelerators; --set workload.plan.dp=N holds it\n";
  if (const std::string said = report::several_releases(session.assumed_releases()); !said.empty())
    std::cerr << "note: " << said << '\n';
  if (const std::size_t left = session.store().left_out(); left > 0)
    std::cerr << "note: " << report::plural(static_cast<double>(left), "row") << " of " << out
              << " left its table, whose values this sweep does not have; the runs stay stored\n";
}

void say_what_was_there(const study::SweepProgress& progress, std::size_t stored_before) {
  if (progress.found == 0) return;
  if (stored_before == 0)
    std::cerr << progress.found << " of " << progress.total << " points repeat another\n";
  else
    std::cerr << progress.found << " of " << progress.total << " points were there, "
              << progress.done - progress.found << " simulated now\n";
}

int run(const Options& options) {
  check_format(options.format, kTableJsonCsv);
  report::check_page(options.html);
  check_store(options.out);
  study::SweepRequest request = request_of(options);
  refuse_overwriting(options);
  study::SweepSession session(std::move(request));
  if (!options.quiet) say_what_is_assumed(session, options.out);

  study::SweepProgress progress;
  const InterruptGuard guard(progress.stop);
  {
    const ProgressLine line([&](double wall, int) { return progress_text(progress, wall); }, options.quiet);
    session.run(options.jobs, progress);
  }
  if (!options.quiet) say_what_was_there(progress, session.store().stored_before());
  const study::SweepReport report = session.report();
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
  add_format_option(app, options->format, kTableJsonCsv);
  add_page(app, options->html, "The sweep as a page: one file that opens offline");
  add_flag(app, "--all", options->all, "Every point in the table, not the first 20");
  add_flag(app, "--allow-oom", options->allow_oom, "Simulate models that do not fit the memory");
  add_flag(app, "--quiet", options->quiet, "No progress, no remarks on stderr");
  return [options] { return run(*options); };
}
}  // namespace topsim::cli
