#include <CLI/CLI.hpp>
#include <iostream>
#include <memory>

#include "sim/cli/commands.hpp"
#include "sim/cli/scenario_options.hpp"
#include "sim/scenario/bench_text.hpp"

namespace topsim::cli {
namespace {

struct Options {
  ScenarioOptions scenario;
  std::string collective, begin = "8", end = "8G", format = "table", algorithm, protocol;
  double factor = 2;
  int channels = 0;
};

int run(const Options& options) {
  const scenario::BenchCollective& what = scenario::bench_collective(options.collective);
  if (options.format != "table" && options.format != "json") {
    throw ConfigError("no output format \"" + options.format + '"', "formats: table, json");
  }
  if (!(options.factor > 1)) throw ConfigError("-f must be above 1", "-f 2 doubles the size from row to row");
  const scenario::BenchSizes sizes{scenario::bench_size(options.begin), scenario::bench_size(options.end),
                                   options.factor};
  scenario::Scenario scenario = options.scenario.load();
  scenario::force(scenario, options.algorithm, options.protocol, options.channels);
  const topology::Catalogue catalogue = topology::Catalogue::load(shipped_library().directories().front());
  const std::vector<scenario::BenchRow> rows = scenario::bench(scenario, catalogue, what.kind, sizes);
  std::cout << (options.format == "json" ? scenario::bench_json(rows) : scenario::bench_table(what, rows));
  std::cout.flush();
  return kOk;
}
}  // namespace

Action configure_bench(CLI::App& app) {
  const auto options = std::make_shared<Options>();
  std::string names;
  for (const scenario::BenchCollective& each : scenario::bench_collectives()) {
    names += (names.empty() ? "" : "|") + std::string(each.name);
  }
  app.add_option("collective", options->collective, "What is measured")->required()->type_name(names);
  options->scenario.declare(app);
  app.add_option("-b,--minbytes", options->begin, "First size (8, 64K, 16M, 8G)")->type_name("SIZE");
  app.add_option("-e,--maxbytes", options->end, "Last size")->type_name("SIZE");
  app.add_option("-f,--stepfactor", options->factor, "From row to row")->type_name("FACTOR");
  app.add_option("--algorithm", options->algorithm, "Force an algorithm")
      ->type_name("tree|ring|collnetdirect|collnetchain|nvls|nvlstree|pat");
  app.add_option("--protocol", options->protocol, "Force a protocol")->type_name("ll|ll128|simple");
  app.add_option("--channels", options->channels, "Force a number of channels")->type_name("N");
  app.add_option("--format", options->format, "What is printed")->type_name("table|json");
  return [options] { return run(*options); };
}
}  // namespace topsim::cli
