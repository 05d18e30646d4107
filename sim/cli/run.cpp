#include <fmt/format.h>

#include <filesystem>
#include <iostream>
#include <memory>
#include <optional>

#include "sim/base/suggest.hpp"
#include "sim/cli/commands.hpp"
#include "sim/cli/declare.hpp"
#include "sim/cli/fail_if.hpp"
#include "sim/cli/interrupt.hpp"
#include "sim/cli/output_format.hpp"
#include "sim/cli/outputs.hpp"
#include "sim/cli/progress_line.hpp"
#include "sim/cli/scenario_options.hpp"
#include "sim/cli/written.hpp"
#include "sim/report/csv.hpp"
#include "sim/report/html/html.hpp"
#include "sim/report/json.hpp"
#include "sim/report/member.hpp"
#include "sim/report/terminal.hpp"
#include "sim/report/text.hpp"
#include "sim/report/trace.hpp"
#include "sim/report/write.hpp"
#include "sim/scenario/run/simulate.hpp"
#include "topology/named_link.hpp"

namespace topsim::cli {
namespace {

struct Options {
  ScenarioOptions scenario;
  std::string format = "table", progress = "line", out, trace, html, fail_if;
  bool quiet = false, no_fold = false, allow_oom = false;
  std::vector<std::uint32_t> ranks;
  std::vector<std::string> links;
};

scenario::SimulateOptions how_to_run(const Options& options) {
  scenario::SimulateOptions how;
  how.further_runs = true;
  how.fold = !options.no_fold;
  how.timeline = !options.trace.empty() || !options.html.empty() || !options.out.empty();
  how.allow_oom = options.allow_oom;
  constexpr std::uint64_t kMostSlices = 4'000'000;  // about a gigabyte
  if (options.trace.empty()) how.most_slices = kMostSlices;
  return how;
}

scenario::Simulated simulate(const Options& options, executor::Progress& progress) {
  const ProgressLine line(progress, options.progress == "json" ? ProgressStyle::json : ProgressStyle::line,
                          options.quiet);
  return scenario::simulate(options.scenario.load(), shipped_catalogue(), how_to_run(options), &progress);
}

// The topology for --rank and --link, which are checked before a long run; none if neither is given.
std::optional<topology::Topology> topology_of_members(const Options& options) {
  if (options.ranks.empty() && options.links.empty()) return {};
  topology::Topology topology =
      scenario::prepare(options.scenario.load(), shipped_catalogue(), how_to_run(options)).topology;
  for (const std::uint32_t rank : options.ranks)
    if (rank >= topology.accelerators().size())
      throw report::no_such_rank(rank, topology.accelerators().size());
  for (const std::string& link : options.links) (void)topology::named_links(topology, link);
  return topology;
}

// Prints what --rank and --link select instead of the whole result.
void print_members(const Options& options, const report::Result& result, const topology::Topology& topology) {
  const report::Members members = report::find_members(result, topology, options.ranks, options.links);
  std::cout << (options.format == "json" ? report::to_json(members) : report::to_text(members));
}

void print(const Options& options, const scenario::Simulated& simulated, const std::string& result_file,
           const std::optional<topology::Topology>& members) {
  if (members) {
    print_members(options, simulated.result, *members);
  } else if (options.format == "json") {
    std::cout << report::to_json(simulated.result);
  } else if (options.format == "csv") {
    std::cout << report::summary_csv(simulated.result);
  } else {
    std::cout << report::to_terminal(simulated.result, report::options_of_stdout(), simulated.record,
                                     result_file);
  }
  std::cout.flush();
}

// A build without the page writes no report.html to --out; --html was refused before the simulation.
void write_page(const Options& options, const scenario::Simulated& simulated) {
  if (!report::has_page() || (options.html.empty() && options.out.empty())) return;
  const std::string page =
      report::to_html(simulated.result, simulated.timeline ? &*simulated.timeline : nullptr,
                      simulated.picture ? &*simulated.picture : nullptr);
  if (!options.html.empty()) report::write_file(options.html, page);
  if (!options.out.empty()) report::write_file(options.out + "/report.html", page);
}

// The checks of --fail-if, after all output was written.
int judge_result(const std::optional<Condition>& condition, const report::Result& result) {
  if (!condition) return kOk;
  const Verdict verdict = judge(*condition, report::to_json(result));
  if (!verdict.holds) return kOk;
  std::cerr << "failed: " << condition->text << " (" << condition->key << " is "
            << figures_text(*condition, verdict.value) << ")\n";
  return kCheckFailed;
}

void refuse_overwriting(const Options& options) {
  Inputs inputs{"the scenario", {options.scenario.path}};
  inputs.add(options.scenario.load());
  check_outputs(inputs,
                {{"--html", options.html, OutputKind::page}, {"--trace", options.trace, OutputKind::trace}});
  check_folder(inputs, options.out);
}

int run(const Options& options) {
  check_format(options.format, kTableJsonCsv);
  check_word("kind of progress", options.progress, "kinds", {"line", "json"});
  if (options.format == "csv" && (!options.ranks.empty() || !options.links.empty()))
    throw ConfigError("--rank and --link print text or JSON", "--format table or --format json");
  std::optional<Condition> condition;
  if (!options.fail_if.empty()) {
    condition = parse_condition(options.fail_if);
    check_key(*condition);
  }
  if (!options.html.empty()) report::require_page();
  refuse_overwriting(options);
  if (!options.out.empty()) report::make_directory(options.out);  // before other files are written to it
  if (!options.html.empty()) report::check_place(options.html);
  if (!options.trace.empty()) report::check_trace(options.trace);
  const std::optional<topology::Topology> members = topology_of_members(options);
  executor::Progress progress;
  const bool only_screen = options.format == "table" && options.out.empty() && options.html.empty() &&
                           options.trace.empty() && !members;
  const InterruptGuard guard(progress.stop, only_screen ? &progress.worth_printing : &progress.ops_total);
  const scenario::Simulated simulated = simulate(options, progress);
  const report::Timeline* timeline = simulated.timeline ? &*simulated.timeline : nullptr;
  std::string result_file;
  if (!options.out.empty()) {
    result_file = report::write_directory(options.out, simulated.result, simulated.record, timeline);
  }
  write_page(options, simulated);
  if (!options.trace.empty()) report::write_trace(options.trace, *timeline);
  print(options, simulated, result_file, members);
  std::string folder;
  if (!options.out.empty())
    folder = fmt::format("{}/{{result.json, {}run.json, tables as CSV{}}}", options.out,
                         report::has_page() ? "report.html, " : "",
                         report::has_packed_timeline(options.out) ? ", the timeline packed" : "");
  say_written(options.quiet, {folder, options.html, options.trace});
  if (!options.quiet && simulated.slices_left_out > 0)
    std::cerr << fmt::format("no timeline was kept: it has {} intervals; --trace FILE writes them all\n",
                             simulated.slices_left_out);
  if (!options.quiet && options.format != "table")  // the table contains it
    std::cerr << report::run_text(simulated.record) << ", "
              << report::bytes_text(static_cast<double>(simulated.record.peak_rss_bytes)) << " of memory\n";
  if (!simulated.result.complete) {
    if (!options.quiet) std::cerr << "interrupted: the result is partial (\"complete\": false)\n";
    return kInterrupted;
  }
  return judge_result(condition, simulated.result);
}
}  // namespace

Action configure_run(CLI::App& app) {
  const auto options = std::make_shared<Options>();
  options->scenario.declare(app);
  add_format_option(app, options->format, kTableJsonCsv);
  add_option(app, "--out", options->out, "Write result.json, run.json, tables and the page there")
      .not_empty()
      .type_name("DIR");
  add_option(app, "--trace", options->trace,
             "Timeline for Perfetto (.pftrace) or Chrome (.json); .gz packs it")
      .type_name("FILE");
  add_page(app, options->html, "The report page: one file that opens in a browser, offline");
  add_option(app, "--fail-if", options->fail_if, "Exit 1 when it holds, e.g. 'step_time > 500 ms'")
      .not_empty()
      .type_name("EXPR");
  add_option(app, "--rank", options->ranks, "Print one rank in place of the result; may be repeated")
      .type_name("RANK")
      .one_each_kept_in_order();
  add_option(app, "--link", options->links, "Print one link, e.g. 'node0/nic0 -> leaf0'; may be repeated")
      .type_name("DEVICE -> DEVICE")
      .one_each_kept_in_order();
  add_option(app, "--progress", options->progress,
             "How far it is, on stderr: a line on terminals (default), or JSON lines")
      .type_name("line|json");
  add_flag(app, "--quiet", options->quiet, "No progress, no remarks on stderr");
  add_flag(app, "--no-fold", options->no_fold, "Simulate every accelerator, not one of each kind");
  add_flag(app, "--allow-oom", options->allow_oom, "Simulate a model that does not fit the memory");
  return [options] { return run(*options); };
}
}  // namespace topsim::cli
