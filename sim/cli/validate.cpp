// topsim validate: predictions compared with published measurements.
#include "sim/validation/validate.hpp"

#include <iostream>
#include <memory>

#include "sim/cli/commands.hpp"
#include "sim/cli/declare.hpp"
#include "sim/cli/interrupt.hpp"
#include "sim/cli/output_format.hpp"
#include "sim/cli/outputs.hpp"
#include "sim/cli/progress_line.hpp"
#include "sim/cli/scenario_options.hpp"
#include "sim/cli/written.hpp"
#include "sim/report/html/page.hpp"
#include "sim/report/write.hpp"

namespace topsim::cli {
namespace {

struct Options {
  std::vector<std::string> cases;
  std::string format = "table", html;
  bool each = false, quiet = false;
  int jobs = 0;
};

int run(const Options& options) {
  check_format(options.format, kTableJson);
  report::check_page(options.html);
  const config::Library library = shipped_library();
  const topology::Catalogue catalogue = shipped_catalogue();
  const auto files = validation::find_cases(options.cases, library);
  check_outputs({"a case", options.cases}, {{"--html", options.html, OutputKind::page}});
  executor::Progress progress;
  const InterruptGuard guard(progress.stop);
  const validation::Report report = [&] {
    const ProgressLine line(progress, options.quiet);
    return validation::validate(files, catalogue, library, options.jobs, &progress);
  }();
  std::cout << (options.format == "json" ? validation::to_json(report)
                                         : validation::to_text(report, options.each, columns_for_people()))
            << std::flush;
  if (!options.html.empty())
    report::write_file(options.html, report::validate_html(validation::to_json(report)));
  say_written(options.quiet, {options.html});
  if (!report.complete) {
    if (!options.quiet)
      std::cerr << "interrupted: " << progress.runs_done << " of " << progress.runs_total
                << " cases are done\n";
    return kInterrupted;
  }
  return report.passed() ? kOk : kCheckFailed;
}
}  // namespace

Action configure_validate(CLI::App& app) {
  const auto options = std::make_shared<Options>();
  add_option(app, "case", options->cases,
             "Files, families or cases of configs/validation, or a file of your own; all of "
             "configs/validation when left out")
      .type_name("CASE");
  add_format_option(app, options->format, kTableJson);
  add_page(app, options->html, "Predicted against published as a page that opens offline");
  add_flag(app, "--each", options->each, "Also a line for each case");
  add_jobs(app, options->jobs);
  add_flag(app, "--quiet", options->quiet, "No progress on stderr");
  return [options] { return run(*options); };
}
}  // namespace topsim::cli
