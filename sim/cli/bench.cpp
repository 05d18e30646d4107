#include <fmt/format.h>

#include <algorithm>
#include <iostream>
#include <memory>
#include <optional>

#include "sim/base/suggest.hpp"
#include "sim/cli/commands.hpp"
#include "sim/cli/declare.hpp"
#include "sim/cli/interrupt.hpp"
#include "sim/cli/output_format.hpp"
#include "sim/cli/scenario_options.hpp"
#include "sim/config/quantity.hpp"
#include "sim/network/packet/spec.hpp"
#include "sim/scenario/bench/bench_text.hpp"
#include "sim/scenario/bench/traffic.hpp"
#include "sim/scenario/findings/hardware_findings.hpp"

namespace topsim::cli {
namespace {

constexpr double kDoubled = 2;  // the default ratio of successive sizes

struct Options {
  ScenarioOptions scenario;
  std::string what, begin, end, format = "table", algorithm, protocol, window, from, to, verb;
  double factor = kDoubled;
  int channels = 0, senders = 0, gpus_per_thread = 0;
  std::optional<int> victim_lane;
  bool textbook = false;
};

void check_order(Bytes least, Bytes most) {
  if (least > most) throw ConfigError("--minbytes is more than --maxbytes", "-b 8 -e 8G is the usual range");
}

std::vector<Bytes> sizes_of(const Options& options, const char* first, const char* last) {
  const auto size = [](const std::string& given, const char* otherwise) {
    return scenario::bench_size(given.empty() ? otherwise : given);
  };
  const Bytes least = size(options.begin, first), most = size(options.end, last);
  check_order(least, most);
  std::vector<Bytes> sizes;
  for (auto bytes = static_cast<double>(least.value()); bytes <= static_cast<double>(most.value());
       bytes *= options.factor)
    sizes.emplace_back(static_cast<std::int64_t>(bytes + 0.5));
  return sizes;
}

// Refuses options of other patterns, which have no effect on this one.
void refuse_others_options(const Options& options, const std::string& what) {
  struct Owned {
    const char* option;
    bool given;
    std::vector<std::string> owners;
  };
  const std::vector<std::string> incast = {"incast"}, p2p = {"p2p"}, victim = {"victim"},
                                 textbook = {"incast", "parking_lot", "victim"},
                                 windowed = {"parking_lot", "victim"};
  std::vector<std::string> collectives;
  for (const scenario::BenchCollective& each : scenario::bench_collectives())
    collectives.emplace_back(each.name);
  for (const Owned& each : {Owned{"--senders", options.senders > 0, incast},
                            {"--ngpus", options.gpus_per_thread > 0, collectives},
                            {"--textbook", options.textbook, textbook},
                            {"--window", !options.window.empty(), windowed},
                            {"--lane", options.victim_lane.has_value(), victim},
                            {"--from", !options.from.empty(), p2p},
                            {"--to", !options.to.empty(), p2p},
                            {"--verb", !options.verb.empty(), p2p}})
    if (each.given && std::find(each.owners.begin(), each.owners.end(), what) == each.owners.end())
      throw ConfigError(fmt::format("{} has no effect on {}", each.option, what),
                        fmt::format("it is of bench {}; leave it out", join(each.owners)));
}

void warn_of_faults() {
  std::cerr << "warning: bench has the faults of links, NICs and switches that hold from the beginning to "
               "the end; topsim run has the others, too\n";
}

void warn_of_empty_nodes(const scenario::Scenario& scenario, const topology::Catalogue& catalogue) {
  if (const auto empty = scenario::empty_nodes(scenario.topology, catalogue))
    std::cerr << "note: " << empty->message << "\n  hint: " << empty->remedy << '\n';
}

void warn_of(const std::vector<report::Finding>& findings) {
  for (const report::Finding& each : findings)
    std::cerr << report::name_of(each.severity) << ": " << each.message << "\n  hint: " << each.remedy
              << '\n';
}

std::string traffic(const Options& options, const scenario::TrafficName& what,
                    const topology::Catalogue& catalogue, const std::atomic<bool>& stop) {
  scenario::refuse_choices(what.name, options.algorithm, options.protocol, options.channels);
  scenario::Scenario scenario = options.scenario.load_cluster();
  if (scenario::on_textbook(what.pattern, options.textbook) && !scenario.faults.empty())
    std::cerr << "warning: switches of the pattern's own have none of the scenario's faults\n";
  else if (scenario::faults_left_out(scenario) > 0)
    warn_of_faults();
  // These patterns are meant for packets; a scenario's file usually says "flow" for its workload.
  const auto& said = options.scenario.assignments;
  const bool asked = !options.scenario.network.empty() ||
                     std::any_of(said.begin(), said.end(), [](const std::string& assignment) {
                       return assignment.starts_with("network.model=");
                     });
  if (!asked) scenario.network.model = network::name_of(network::ModelKind::packet);
  if (!scenario.network.traits().packets && scenario::on_textbook(what.pattern, options.textbook))
    throw ConfigError(fmt::format("{} around switches of its own runs as packets alone", what.name),
                      "leave --network out");
  scenario::TrafficOptions traffic;
  traffic.senders = options.senders;
  traffic.textbook = options.textbook;
  traffic.victim_lane = options.victim_lane.value_or(0);
  traffic.from = options.from, traffic.to = options.to;
  traffic.verb = options.verb == "write" ? scenario::Verb::write : scenario::Verb::send;
  if (!options.window.empty()) {
    const config::ParsedQuantity window = config::parse_quantity(config::Dimension::time, options.window);
    if (window.error) throw ConfigError("--window: " + window.error->message, "--window '10 ms'");
    if (window.exact <= 0) throw ConfigError("--window must be above 0", "--window '10 ms'");
    traffic.window = Duration(window.exact);
  }
  const bool json = options.format == "json";
  if (what.pattern == scenario::TrafficPattern::point_to_point) {
    traffic.sizes = sizes_of(options, "2", "8M");
    const scenario::PointToPoint result = scenario::point_to_point(scenario, catalogue, traffic, &stop);
    warn_of(result.findings);
    return json ? scenario::point_to_point_json(result) : scenario::point_to_point_table(result);
  }
  if (!options.end.empty() || options.factor != kDoubled)
    throw ConfigError(
        fmt::format("{} is of one size", what.name),
        what.pattern == scenario::TrafficPattern::all_to_all
            ? "-b is each flow's between NICs; leave -e and -f out. NCCL's collective is bench alltoall"
            : "-b is each flow's; leave -e and -f out");
  traffic.sizes = {scenario::bench_size(options.begin.empty() ? "1M" : options.begin)};
  const scenario::Traffic result = scenario::run_traffic(scenario, catalogue, what.pattern, traffic, &stop);
  return json ? scenario::traffic_json(what, result) : scenario::traffic_table(what, result);
}

std::string collective(const Options& options, const scenario::BenchCollective& what,
                       const topology::Catalogue& catalogue, executor::Progress& progress) {
  const scenario::BenchSizes sizes{scenario::bench_size(options.begin.empty() ? "8" : options.begin),
                                   scenario::bench_size(options.end.empty() ? "8G" : options.end),
                                   options.factor};
  check_order(sizes.first, sizes.last);
  scenario::Scenario scenario = options.scenario.load_cluster();
  if (scenario::faults_left_out(scenario) > 0) warn_of_faults();
  warn_of_empty_nodes(scenario, catalogue);
  scenario::force(scenario, what, options.algorithm, options.protocol, options.channels);
  if (options.gpus_per_thread > 0) scenario.network.nccl.gpus_per_thread = options.gpus_per_thread;
  const auto [rows, findings] = scenario::bench(scenario, catalogue, what.kind, sizes, &progress);
  warn_of(findings);
  return options.format == "json"
             ? scenario::bench_json(rows, !progress.stop, scenario::faults_left_out(scenario))
             : scenario::bench_table(what, rows);
}

// The collective of that name; null for a pattern. Suggests the closest of both if it is neither.
const scenario::BenchCollective* collective_named(const std::string& word) {
  std::vector<std::string> collectives, patterns;
  for (const scenario::BenchCollective& each : scenario::bench_collectives()) {
    if (word == each.name) return &each;
    collectives.emplace_back(each.name);
  }
  for (const scenario::TrafficName& each : scenario::traffic_names()) {
    if (word == each.name) return nullptr;
    patterns.emplace_back(each.name);
  }
  std::vector<std::string> all = collectives;
  all.insert(all.end(), patterns.begin(), patterns.end());
  const auto near = closest(word, all);
  throw ConfigError("no collective \"" + word + '"', (near ? "did you mean " + *near + "? " : std::string()) +
                                                         "collectives: " + join(collectives) +
                                                         "; patterns of messages: " + join(patterns));
}

int run(const Options& options) {
  const scenario::BenchCollective* named = collective_named(options.what);
  check_format(options.format, kTableJson);
  refuse_others_options(options, named != nullptr ? std::string(named->name) : options.what);
  if (!options.verb.empty() && options.verb != "send" && options.verb != "write")
    throw ConfigError("no verb \"" + options.verb + '"',
                      options.verb == "read"
                          ? "reads (ib_read_*) are not simulated: --verb send or --verb write"
                          : "--verb send or --verb write");
  if (!(options.factor >= 1.01))
    throw ConfigError("--stepfactor must be at least 1.01", "-f 2 doubles the size from row to row");
  const topology::Catalogue catalogue = shipped_catalogue();
  const scenario::TrafficName* pattern = scenario::find_traffic(options.what);
  executor::Progress progress;
  std::optional<InterruptGuard> guard;
  if (named != nullptr)
    guard.emplace(progress.stop, &progress.worth_printing);
  else if (!scenario::on_textbook(pattern->pattern, options.textbook))
    guard.emplace(progress.stop);
  std::cout << (named != nullptr ? collective(options, *named, catalogue, progress)
                                 : traffic(options, *pattern, catalogue, progress.stop))
            << std::flush;
  if (!progress.stop) return kOk;
  std::cerr << "interrupted: what was done by then is printed\n";
  return kInterrupted;
}
}  // namespace

Action configure_bench(CLI::App& app) {
  const auto options = std::make_shared<Options>();
  std::vector<std::string> names;
  for (const scenario::BenchCollective& each : scenario::bench_collectives()) names.emplace_back(each.name);
  for (const scenario::TrafficName& each : scenario::traffic_names()) names.emplace_back(each.name);
  add_option(app, "what", options->what, "A collective, or a pattern of messages")
      .required()
      .type_name(word_list(names));
  options->scenario.declare(app);
  add_option(
      app, "-b,--minbytes", options->begin,
      "First size (default 8, p2p 2; of each flow of a pattern 1M); K, M and G, also as KB or MB, are powers "
      "of 1024, as nccl-tests reads them")
      .type_name("SIZE");
  add_option(app, "-e,--maxbytes", options->end, "Last size (default 8G, p2p 8M)").type_name("SIZE");
  add_option(app, "-f,--stepfactor", options->factor, "Factor from one size to the next (default 2)")
      .type_name("FACTOR");
  add_option(app, "-g,--ngpus", options->gpus_per_thread,
             "GPUs for which one thread launches, one after the other, as nccl-tests -g (default 1)")
      .type_name("N")
      .range(1, 1024);
  add_option(app, "--algorithm", options->algorithm, "Force an algorithm")
      .type_name(word_list(scenario::algorithm_words()));
  add_option(app, "--protocol", options->protocol, "Force a protocol")
      .type_name(word_list(scenario::protocol_words()));
  add_option(app, "--channels", options->channels, "Force a number of channels").type_name("N").range(1, 64);
  add_option(
      app, "--from", options->from,
      "p2p: the sender, by default the first NIC: node0/nic0 (the host memory behind its slot, as perftest) "
      "or node0/gpu0 (its own)")
      .type_name("DEVICE");
  add_option(app, "--to", options->to, "p2p: the receiver, by default the next node's first NIC")
      .type_name("DEVICE");
  add_option(app, "--verb", options->verb, "p2p: as which perftest tool, ib_send_* (default) or ib_write_*")
      .type_name("send|write");
  add_option(app, "--senders", options->senders,
             "incast: number of senders (default: all that can send; --textbook 8)")
      .type_name("N")
      .range(1, 1'000'000);
  add_flag(app, "--textbook", options->textbook,
           "incast: around one switch with the scenario's cables, not on its topology");
  add_option(app, "--window", options->window, "parking_lot, victim: simulated time (default 10 ms)")
      .type_name("DURATION");
  add_option(app, "--lane", options->victim_lane, "victim: its virtual lane or priority (default 0)")
      .type_name("N")
      .range(0, static_cast<int>(network::packet::kMaxClasses) - 2);
  add_format_option(app, options->format, kTableJson);
  return [options] { return run(*options); };
}
}  // namespace topsim::cli
