// topsim plan: the fastest parallel plans that fit the memory.
#include <fmt/format.h>

#include <algorithm>
#include <iostream>
#include <memory>

#include "sim/base/suggest.hpp"
#include "sim/cli/commands.hpp"
#include "sim/cli/declare.hpp"
#include "sim/cli/interrupt.hpp"
#include "sim/cli/output_format.hpp"
#include "sim/cli/outputs.hpp"
#include "sim/cli/progress_line.hpp"
#include "sim/cli/scenario_options.hpp"
#include "sim/report/terminal.hpp"
#include "sim/report/write.hpp"
#include "sim/study/plan_gpus.hpp"
#include "sim/study/plan_text.hpp"

namespace topsim::cli {
namespace {

struct Options {
  ScenarioOptions scenario;
  std::vector<std::string> keep, schedules;
  std::string format = "table", out;
  int gpus = 0, jobs = 0;
  std::size_t top = 5;
  bool exhaustive = false, quiet = false;
};

study::PlanOptions plan_options(const Options& options) {
  study::PlanOptions plan;
  plan.top = options.top;
  plan.jobs = options.jobs;
  plan.exhaustive = options.exhaustive;
  const auto dimensions = study::plan_dimensions();
  const std::vector<std::string> known(dimensions.begin(), dimensions.end());
  for (const std::string& name : options.keep) {
    if (std::find(known.begin(), known.end(), name) == known.end()) {
      const auto close = closest(name, known);
      throw ConfigError(
          "--keep: a plan has no \"" + name + '"',
          (close ? "did you mean " + *close + "? " : std::string()) + "dimensions: " + join(known));
    }
    plan.space.keep.push_back(name);
  }
  if (!options.schedules.empty()) plan.space.schedules.clear();
  for (const std::string& name : options.schedules)
    plan.space.schedules.push_back(study::schedule_named(name));
  return plan;
}

std::string progress_text(const study::PlanProgress& progress) {
  const std::size_t choices = progress.choices, bounded = progress.bounded;
  if (bounded < choices) return fmt::format("{} of {} plans bounded", bounded, choices);
  return fmt::format("{} plans bounded \u00b7 {} simulated", choices, progress.simulated.load());
}

int run(const Options& options) {
  check_format(options.format, kTableJson);
  if (!options.out.empty()) report::check_place(options.out);
  const study::PlanOptions plan = plan_options(options);
  const topology::Catalogue catalogue = shipped_catalogue();
  scenario::Scenario scenario = options.scenario.load();
  Inputs inputs{"the scenario", {options.scenario.path}};
  inputs.add(scenario);
  check_outputs(inputs, {{"--out", options.out, OutputKind::scenario}});
  if (options.gpus > 0) study::use_accelerators(scenario, catalogue, options.gpus);
  study::PlanProgress progress;
  study::PlanReport report;
  const InterruptGuard guard(progress.stop);
  {
    const ProgressLine line([&](double, int) { return progress_text(progress); }, options.quiet);
    report = study::search_plans(scenario, catalogue, plan, progress);
  }
  const auto columns = static_cast<std::size_t>(report::options_of_stdout().columns);
  std::cout << (options.format == "json" ? study::plan_json(report) : study::plan_table(report, columns))
            << std::flush;
  if (!report.complete) {
    if (!options.quiet) std::cerr << "interrupted: the search is not done\n";
    return kInterrupted;
  }
  if (!report.assumed_release.empty() && !options.quiet)
    std::cerr << fmt::format(
        "note: plans are assumed to run {}; --set workload.framework=NAME@RELEASE names another\n",
        report.assumed_release);
  if (!options.out.empty()) {
    report::write_file(options.out, study::best_plan_json(report));
    if (!options.quiet)
      std::cerr << "wrote " << options.out << ": " << study::plan_words(report.rows.front()) << '\n';
  }
  return kOk;
}
}  // namespace

Action configure_plan(CLI::App& app) {
  const auto options = std::make_shared<Options>();
  options->scenario.declare(app, "Network model of the scenario written by --out; the search uses flow");
  add_option(app, "--gpus", options->gpus, "Accelerators to plan for; the scenario's own when left out")
      .range(1, 1'000'000'000)
      .type_name("N");
  add_option(app, "--top", options->top, "How many plans are wanted (default 5)")
      .range(1, 1000)
      .type_name("N");
  add_option(app, "--keep", options->keep, "What stays as the scenario has it: tp,recompute,...")
      .separated_by(',')
      .type_name("NAME,NAME");
  add_option(app, "--schedules", options->schedules,
             "Of gpipe,1f1b,interleaved,zb-h1,zb-1p,zb-2p,zb-v; default: all but gpipe and zb-1p")
      .separated_by(',')
      .type_name("NAME,NAME");
  add_option(app, "--out", options->out, "Write the scenario with the best plan there")
      .not_empty()
      .type_name("FILE.json");
  add_format_option(app, options->format, kTableJson);
  add_jobs(app, options->jobs);
  add_flag(app, "--exhaustive", options->exhaustive,
           "Simulate every plan that fits, also those that the bound excludes");
  add_flag(app, "--quiet", options->quiet, "No progress, no remarks on stderr");
  return [options] { return run(*options); };
}
}  // namespace topsim::cli
