#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iostream>
#include <limits>
#include <memory>

#include "sim/base/suggest.hpp"
#include "sim/cli/commands.hpp"
#include "sim/cli/declare.hpp"
#include "sim/cli/fail_if.hpp"
#include "sim/cli/interrupt.hpp"
#include "sim/cli/output_format.hpp"
#include "sim/cli/outputs.hpp"
#include "sim/cli/progress_line.hpp"
#include "sim/cli/study_input.hpp"
#include "sim/cli/written.hpp"
#include "sim/report/compare_verdict.hpp"
#include "sim/report/html/compare_page.hpp"
#include "sim/report/json.hpp"
#include "sim/report/terminal.hpp"
#include "sim/report/write.hpp"
#include "sim/study/ensemble.hpp"
#include "topology/build.hpp"

namespace topsim::cli {
namespace {

struct Options {
  ScenarioOptions changes;
  std::vector<std::string> files, with;
  std::string format = "table", html, fail_if;
  std::size_t seeds = 32;
  int jobs = 0;
  bool all = false, no_cost = false, allow_oom = false, quiet = false;
};

// Rows whose names depend on what was run.
bool is_row(const std::string& key) {
  return key.starts_with("collectives.") || key.starts_with("links.");
}

void check(const Options& options) {
  check_format(options.format, kTableMdJson);
  if (!options.fail_if.empty()) {
    const Condition condition = parse_condition(options.fail_if, Percent::of_baseline);
    if (!is_row(condition.key)) check_key(condition, report::comparison_keys());
  }
  if (options.files.size() + options.with.size() < 2) {
    throw ConfigError("compare needs at least two candidates, the baseline first",
                      "e.g. topsim compare configs/8xH100-ib.json configs/8xH100-roce.json");
  }
}

// Mistakes in a change are reported in the option that made it.
StudyInput read_changed(const Options& options, const std::string& change) {
  ScenarioOptions changes = options.changes;
  changes.assignments.push_back(change);
  try {
    return read_study_input(options.files.front(), changes);
  } catch (const ConfigError& error) {
    std::vector<Problem> problems = error.problems();
    for (Problem& problem : problems)
      if (problem.source_line == change) {
        problem.place.file = "--with";
        for (std::string* text : {&problem.message, &problem.help})
          if (const std::size_t at = text->find("--set"); at != std::string::npos)
            text->replace(at, 5, "--with");
      }
    throw ConfigError(std::move(problems));
  }
}

// Results are used as they are; scenarios are simulated. After an interruption, candidates whose simulation
// did not end are left out, because they have no step to compare.
std::vector<report::Candidate> gather(const Options& options, executor::Progress& progress,
                                      bool& single_runs) {
  std::vector<StudyInput> inputs;
  for (const std::string& file : options.files) inputs.push_back(read_study_input(file, options.changes));
  for (const std::string& change : options.with) {
    inputs.push_back(read_changed(options, change));
    inputs.back().scenario.name += " " + change.substr(change.rfind('.', change.find('=')) + 1);
  }
  Inputs read{"a candidate", options.files};
  for (const StudyInput& input : inputs) read.add(input.scenario);
  check_outputs(read, {{"--html", options.html, OutputKind::page}});
  const auto is_result = [](const StudyInput& input) { return input.result.has_value(); };
  const topology::Catalogue catalogue = shipped_catalogue();

  study::EnsembleOptions how;
  single_runs = std::any_of(inputs.begin(), inputs.end(), is_result);
  how.samples = single_runs ? 1 : options.seeds;
  how.jobs = options.jobs;
  how.allow_oom = options.allow_oom;
  std::vector<scenario::Scenario> scenarios;
  for (const StudyInput& input : inputs) {
    if (!input.result) scenarios.push_back(input.scenario);
  }
  std::vector<report::Candidate> simulated;
  if (!scenarios.empty()) {
    const ProgressLine line(progress, options.quiet);
    simulated = study::run_ensembles(scenarios, catalogue, how, &progress);
  }

  std::vector<report::Candidate> candidates;
  std::size_t next = 0;
  for (const StudyInput& input : inputs) {
    if (input.result) {
      const topology::Topology topology = topology::build(input.scenario.topology, catalogue);
      candidates.push_back(
          {*input.result, {input.result->step}, study::cost_model(input.scenario, topology, catalogue)});
    } else {
      report::Candidate& each = simulated[next++];
      if (progress.stop && !each.result.complete) continue;
      candidates.push_back(std::move(each));
    }
    if (options.no_cost) candidates.back().cost.reset();
  }
  return candidates;
}

// A condition on a row needs that row. Which rows exist is known only now; the error comes before any output.
void require_row(const Options& options, const report::Comparison& comparison) {
  if (options.fail_if.empty()) return;
  const std::string key = parse_condition(options.fail_if, Percent::of_baseline).key;
  if (!is_row(key)) return;
  std::string known;
  for (const report::ComparisonRow& each : comparison.rows) {
    if (each.metric == key) return;
    if (is_row(each.metric)) known += (known.empty() ? "" : ", ") + each.metric;
  }
  throw ConfigError("--fail-if: the comparison has no row \"" + key + '"',
                    known.empty() ? "no collective and no link is in both" : "rows of its kind: " + known);
}

// A change from zero to any value is an infinite percentage.
double change(double base, double value) {
  if (value == base) return 0;
  if (base != 0) return value / base - 1;
  return std::copysign(std::numeric_limits<double>::infinity(), value);
}

// "step_time > 5 %" tests the difference to the baseline, "step_time > 10 s" the value, for every other
// candidate.
int judge_candidates(const Options& options, std::span<const report::Candidate> candidates,
                     const report::Comparison& comparison) {
  if (options.fail_if.empty()) return kOk;
  const Condition condition = parse_condition(options.fail_if, Percent::of_baseline);
  const bool relative = options.fail_if.find('%') != std::string::npos;
  const auto row =
      std::find_if(comparison.rows.begin(), comparison.rows.end(),
                   [&](const report::ComparisonRow& each) { return each.metric == condition.key; });
  const auto judged = [&](std::size_t c) {
    if (row == comparison.rows.end()) return judge(condition, report::to_json(candidates[c].result));
    return Verdict{holds(condition, row->values[c]), row->values[c]};
  };
  const double base = judged(0).value;
  int exit = kOk;
  for (std::size_t c = 1; c < candidates.size(); ++c) {
    Verdict verdict = judged(c);
    std::string judged_as = figures_text(condition, verdict.value);
    if (relative) {
      const double changed = change(base, verdict.value);
      verdict.holds = holds(condition, changed);
      const std::string value = value_text(condition.key, verdict.value);
      judged_as = base == 0 ? value + " where the baseline has none"
                            : fmt::format("{}, {:+.3g} % to the baseline's {}", value, 100 * changed,
                                          value_text(condition.key, base));
    }
    if (std::isinf(verdict.value)) judged_as = "failures leave it no time to train";
    if (!verdict.holds) continue;
    std::cerr << "failed: " << condition.text << " (" << comparison.names[c] << ": " << judged_as << ")\n";
    exit = kCheckFailed;
  }
  // Whether it held or not: read as a share, the answer may be the other one. No share is below zero.
  if (relative && is_share(condition.key) && condition.limit > 0)
    std::cerr << fmt::format(
        "hint: \"{}\": here {:.3g} % is a difference to the baseline; for the share itself write {:.3g} in "
        "its "
        "place\n",
        condition.text, 100 * condition.limit, condition.limit);
  return exit;
}

int run(const Options& options) {
  check(options);
  report::check_page(options.html);
  executor::Progress progress;
  const InterruptGuard guard(progress.stop);
  bool single_runs = false;
  const std::vector<report::Candidate> candidates = gather(options, progress, single_runs);
  const bool interrupted = progress.stop;
  if (interrupted && !options.quiet)
    std::cerr << "interrupted: " << candidates.size() << " of " << options.files.size() + options.with.size()
              << " candidates were simulated to their end\n";
  report::Comparison comparison;
  if (candidates.size() < 2) {  // nothing to compare; the JSON says so
    comparison.complete = false;
    if (options.format == "json") std::cout << report::compare_json(comparison);
    return kInterrupted;
  }
  comparison = report::compare(candidates);
  comparison.complete = !interrupted;
  if (single_runs) report::say_single_runs(comparison);
  if (!interrupted) require_row(options, comparison);
  if (options.format == "json") {
    std::cout << report::compare_json(comparison);
  } else if (options.format == "md") {
    std::cout << report::compare_markdown(comparison, candidates, options.all);
  } else {
    std::cout << report::compare_table(comparison, options.all, report::options_of_stdout().columns);
  }
  std::cout.flush();
  if (!options.html.empty())
    report::write_file(options.html, report::compare_html(report::compare_page(comparison, candidates)));
  say_written(options.quiet, {options.html});
  if (interrupted) return kInterrupted;
  return judge_candidates(options, candidates, comparison);
}
}  // namespace

Action configure_compare(CLI::App& app) {
  const auto options = std::make_shared<Options>();
  add_option(app, "files", options->files, "Scenarios or results; the first is the baseline")
      .required()
      .type_name("A.json B.json");
  options->changes.declare_changes(app);
  add_option(app, "--with", options->with,
             "One more candidate: the baseline with this change, e.g. --with topology.fabric.sharp=true "
             "(repeatable)")
      .type_name("PATH=VALUE")
      .one_each();
  add_format_option(app, options->format, kTableMdJson, "md: a memo with the bills of materials");
  add_page(app, options->html, "The comparison as a page: one file that opens offline");
  add_option(app, "--seeds", options->seeds, "Samples of ECMP seeds and uncertain inputs (default 32)")
      .range(1, 100000)
      .type_name("N");
  add_jobs(app, options->jobs);
  add_flag(app, "--all", options->all, "Also rows that do not differ");
  add_flag(app, "--no-cost", options->no_cost, "Leave prices and power out");
  add_option(
      app, "--fail-if", options->fail_if,
      "Exit 1 when it holds of a candidate. A figure in % is a difference to the baseline, of shares too: "
      "'step_time > 5 %', 'mfu < -2 %'. Any other is a value: 'step_time > 10 s', 'mfu < 0.4' (40 % of "
      "the peak)")
      .not_empty()
      .type_name("EXPR");
  add_flag(app, "--allow-oom", options->allow_oom, "Simulate models that do not fit the memory");
  add_flag(app, "--quiet", options->quiet, "No progress on stderr");
  return [options] { return run(*options); };
}
}  // namespace topsim::cli
