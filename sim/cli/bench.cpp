#include "sim/scenario/bench.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cctype>
#include <charconv>
#include <cmath>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <utility>

#include "sim/base/suggest.hpp"
#include "sim/cli/commands.hpp"
#include "sim/cli/scenario_options.hpp"

namespace topsim::cli {
namespace {

using collective::Algorithm;
using collective::CollectiveKind;
using collective::Protocol;

struct Options {
  ScenarioOptions scenario;
  std::string collective, begin = "8", end = "8G", format = "table", algorithm, protocol;
  double factor = 2;
  int channels = 0;
};

struct Named {
  CollectiveKind kind;
  const char *name, *operation;
  int root;
};
constexpr Named kCollectives[] = {{CollectiveKind::all_reduce, "all_reduce", "sum", -1},
                                  {CollectiveKind::all_gather, "all_gather", "none", -1},
                                  {CollectiveKind::reduce_scatter, "reduce_scatter", "sum", -1},
                                  {CollectiveKind::broadcast, "broadcast", "none", 0},
                                  {CollectiveKind::reduce, "reduce", "sum", 0},
                                  {CollectiveKind::all_to_all, "alltoall", "none", -1},
                                  {CollectiveKind::send_recv, "sendrecv", "sum", -1}};

std::string lower_case(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return lower;
}

ConfigError unknown(const std::string& what, const std::string& text, const std::vector<std::string>& known) {
  const auto close = closest(text, known);
  return ConfigError("no " + what + " \"" + text + '"',
                     (close ? "did you mean " + *close + "? " : std::string()) + what + "s: " + join(known));
}

const Named& collective_of(const std::string& text) {
  std::vector<std::string> known;
  for (const Named& named : kCollectives) {
    if (text == named.name) return named;
    known.emplace_back(named.name);
  }
  throw unknown("collective", text, known);
}

// The value whose NCCL name is `text`, capitals ignored.
template <class Enum>
Enum value_named(const std::string& what, const std::string& text, Enum last) {
  std::vector<std::string> known;
  for (int i = 0; i <= static_cast<int>(last); ++i) {
    const auto value = static_cast<Enum>(i);
    if (lower_case(collective::name_of(value)) == lower_case(text)) return value;
    known.emplace_back(collective::name_of(value));
  }
  throw unknown(what, text, known);
}

// "8", "64K", "16MiB": powers of 1024, as nccl-tests reads them.
Bytes size_of(const std::string& text) {
  double number = 0;
  const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const std::string unit = lower_case(std::string_view(rest, text.data() + text.size()));
  constexpr std::string_view kUnits = "bkmgt";
  const std::size_t power = unit.empty() ? 0 : kUnits.find(unit.front());
  const bool known = unit.size() <= 1 || unit.substr(1) == "b" || unit.substr(1) == "ib";
  if (error != std::errc{} || !(number > 0) || !known || power == std::string_view::npos ||
      number * std::pow(1024, power) > 1e15) {
    throw ConfigError("no size \"" + text + '"',
                      "write bytes, or K, M, G for powers of 1024: 8, 64K, 16M, 8G");
  }
  return Bytes(std::llround(number * std::pow(1024, power)));
}

std::string json_of(const std::vector<scenario::BenchRow>& rows) {
  nlohmann::ordered_json json = {{"format", "topsim.bench/1"}, {"rows", nlohmann::ordered_json::array()}};
  for (const scenario::BenchRow& row : rows) {
    json["rows"].push_back({{"size", row.size.value()},
                            {"time_us", microseconds(row.time)},
                            {"algbw", row.bytes_per_second / 1e9},
                            {"busbw", row.bus_bytes_per_second / 1e9},
                            {"algorithm", collective::name_of(row.choice.algorithm)},
                            {"protocol", collective::name_of(row.choice.protocol)},
                            {"channels", row.choice.channels}});
  }
  return json.dump(2) + '\n';
}

// A figure in seven columns, like nccl-tests: fewer decimals as it grows.
std::string time_text(double us) {
  return fmt::format("{:.{}f}", us, us >= 1e4 ? 0 : us >= 1e2 ? 1 : 2);
}

void print_table(const Named& what, const std::vector<scenario::BenchRow>& rows) {
  std::cout << fmt::format("#{:>56}{:>25}\n", "", "out-of-place")
            << fmt::format(
                   "#{:>11}  {:>12}  {:>8}  {:>6}  {:>6}  {:>7}  {:>6}  {:>6}  {:<13}  {:<8}  {:>8}\n",
                   "size", "count", "type", "redop", "root", "time", "algbw", "busbw", "algorithm",
                   "protocol", "channels")
            << fmt::format("#{:>11}  {:>12}  {:>8}  {:>6}  {:>6}  {:>7}  {:>6}  {:>6}\n", "(B)", "(elements)",
                           "", "", "", "(us)", "(GB/s)", "(GB/s)");
  double sum = 0;
  for (const scenario::BenchRow& row : rows) {
    sum += row.bus_bytes_per_second / 1e9;
    std::cout << fmt::format(
        "{:>12}  {:>12}  {:>8}  {:>6}  {:>6}  {:>7}  {:>6.2f}  {:>6.2f}  {:<13}  {:<8}  {:>8}\n",
        row.size.value(), row.count, "float", what.operation, what.root, time_text(microseconds(row.time)),
        row.bytes_per_second / 1e9, row.bus_bytes_per_second / 1e9, collective::name_of(row.choice.algorithm),
        collective::name_of(row.choice.protocol), row.choice.channels);
  }
  if (!rows.empty()) {
    std::cout << fmt::format("# Avg bus bandwidth    : {:g}\n", sum / static_cast<double>(rows.size()));
  }
}

int run(const Options& options) {
  const Named& what = collective_of(options.collective);
  if (options.format != "table" && options.format != "json") {
    throw unknown("output format", options.format, {"table", "json"});
  }
  if (!(options.factor > 1)) throw ConfigError("-f must be above 1", "-f 2 doubles the size from row to row");
  const scenario::BenchSizes sizes{size_of(options.begin), size_of(options.end), options.factor};
  scenario::Scenario scenario = options.scenario.load();
  collective::Overrides& forced = scenario.network.nccl;
  if (!options.algorithm.empty())
    forced.algorithm = value_named("algorithm", options.algorithm, Algorithm::pat);
  if (!options.protocol.empty())
    forced.protocol = value_named("protocol", options.protocol, Protocol::simple);
  if (options.channels > 0) forced.channels = options.channels;
  const topology::Catalogue catalogue = topology::Catalogue::load(shipped_library().directories().front());
  const std::vector<scenario::BenchRow> rows = scenario::bench(scenario, catalogue, what.kind, sizes);
  if (options.format == "json") {
    std::cout << json_of(rows);
  } else {
    print_table(what, rows);
  }
  std::cout.flush();
  return kOk;
}
}  // namespace

Action configure_bench(CLI::App& app) {
  const auto options = std::make_shared<Options>();
  std::string names;
  for (const Named& named : kCollectives) names += (names.empty() ? "" : "|") + std::string(named.name);
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
