#include "sim/study/explain.hpp"

#include <iostream>
#include <memory>
#include <optional>

#include "sim/cli/commands.hpp"
#include "sim/cli/declare.hpp"
#include "sim/cli/interrupt.hpp"
#include "sim/cli/output_format.hpp"
#include "sim/cli/outputs.hpp"
#include "sim/cli/progress_line.hpp"
#include "sim/cli/study_input.hpp"
#include "sim/cli/written.hpp"
#include "sim/report/html/html.hpp"
#include "sim/report/terminal.hpp"
#include "sim/report/write.hpp"
#include "sim/scenario/run/simulate.hpp"

namespace topsim::cli {
namespace {

struct Options {
  ScenarioOptions changes;
  std::string file, format = "table", html;
  double faster = 10;  // percent
  bool no_what_if = false, quiet = false;
};

int run(const Options& options) {
  check_format(options.format, kTableJson);
  StudyInput input = read_study_input(options.file, options.changes);
  Inputs inputs{input.result ? "the result" : "the scenario", {options.file}};
  inputs.add(input.scenario);
  check_outputs(inputs, {{"--html", options.html, OutputKind::page}});
  const topology::Catalogue catalogue = shipped_catalogue();
  executor::Progress progress;
  const InterruptGuard guard(progress.stop);
  std::optional<ProgressLine> line;
  line.emplace(progress, options.quiet);
  report::check_page(options.html);
  scenario::Simulated drawn;
  if (!input.result || !options.html.empty()) {
    scenario::SimulateOptions how;
    how.allow_oom = true;
    how.timeline = !options.html.empty();
    drawn = scenario::simulate(input.scenario, catalogue, how, &progress);
    if (!input.result) input.result = drawn.result;
  }
  std::optional<study::WhatIfs> what_ifs;
  if (!options.no_what_if && !progress.stop) {
    what_ifs = study::what_if_faster(input.scenario, catalogue, 1 + options.faster / 100, &progress);
  }
  line.reset();
  const bool interrupted = progress.stop;
  if (interrupted && !options.quiet)
    std::cerr << (drawn.result.complete ? "interrupted: gains of faster parts are missing\n"
                                        : "interrupted: there is no step to explain yet\n");
  if (!drawn.result.complete) return kInterrupted;
  if (what_ifs && what_ifs->step == Duration{}) what_ifs.reset();
  if (what_ifs && what_ifs->step != input.result->step && !options.quiet) {
    std::cerr
        << "warning: this topsim simulates the result's scenario to another step time than the result's; "
           "the gains are of the new one\n";
  }
  if (!options.html.empty()) {
    // The page says what the text says: the result has findings and an interval of further runs.
    const bool same = input.result->step == drawn.result.step;
    report::write_file(options.html,
                       report::to_html(same ? *input.result : drawn.result, &*drawn.timeline, &*drawn.picture,
                                       what_ifs ? study::what_if_json(*what_ifs) : ""));
  }
  std::cout << (options.format == "json"
                    ? study::explain_json(*input.result, what_ifs, !interrupted)
                    : study::explain_text(*input.result, what_ifs, report::options_of_stdout().columns));
  std::cout.flush();
  say_written(options.quiet, {options.html});
  return interrupted ? kInterrupted : kOk;
}
}  // namespace

Action configure_explain(CLI::App& app) {
  const auto options = std::make_shared<Options>();
  add_option(app, "result", options->file, "result.json of a run, or a scenario")
      .required()
      .type_name("RESULT.json");
  options->changes.declare_changes(app);
  add_format_option(app, options->format, kTableJson);
  add_page(app, options->html, "The page of the run, with what a faster part would buy");
  add_option(app, "--faster", options->faster, "By how much each part is made faster (default 10)")
      .range(0.1, 1000.0)
      .type_name("PERCENT");
  add_flag(app, "--no-what-if", options->no_what_if, "Do not simulate again");
  add_flag(app, "--quiet", options->quiet, "No progress, no remarks on stderr");
  return [options] { return run(*options); };
}
}  // namespace topsim::cli
