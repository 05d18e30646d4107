// topsim topo: shows, checks, converts and prices topologies without a simulation.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <memory>
#include <sstream>

#include "sim/base/suggest.hpp"
#include "sim/cli/commands.hpp"
#include "sim/cli/declare.hpp"
#include "sim/cli/output_format.hpp"
#include "sim/cli/outputs.hpp"
#include "sim/cli/scenario_options.hpp"
#include "sim/cli/table.hpp"
#include "sim/report/cost.hpp"
#include "sim/report/terminal.hpp"
#include "sim/report/text.hpp"
#include "sim/report/write.hpp"
#include "sim/scenario/cluster/load_topology.hpp"
#include "sim/scenario/findings/hardware_findings.hpp"
#include "sim/scenario/run/refusals.hpp"
#include "sim/scenario/scenario.hpp"
#include "topology/build.hpp"
#include "topology/catalogue/link_entry.hpp"
#include "topology/draw/draw.hpp"
#include "topology/export/export.hpp"
#include "topology/import/import.hpp"
#include "topology/import/importers.hpp"
#include "topology/validate/validate.hpp"

namespace topsim::cli {
namespace {

using topology::Topology;

struct Options {
  ScenarioOptions scenario;  // the path may also be a topology file or a node of the catalogue
  std::string as, out;       // what is written
  std::string file, from, accelerator, nic_link;  // what is imported
  std::uint32_t nodes = 1;
  bool strict = false;
};

// What the path names: a scenario's cluster, or a topology file or node of the catalogue, for which
// `scenario` is empty.
struct Loaded {
  scenario::Scenario scenario;
  Topology topology;
};

Loaded load(const Options& options, const topology::Catalogue& catalogue) {
  scenario::Scenario scenario;
  Topology topology = scenario::load_topology(options.scenario.path, catalogue,
                                              [&] { return scenario = options.scenario.load_cluster(); });
  Inputs inputs{"the topology", {options.scenario.path}};
  inputs.add(scenario);
  check_outputs(inputs, {{"-o", options.out}});
  return {std::move(scenario), std::move(topology)};
}

Topology load_topology(const Options& options) {
  return load(options, shipped_catalogue()).topology;
}

void write(const Options& options, const std::string& text) {
  if (options.out.empty() || options.out == "-") {
    std::cout << text;
    return;
  }
  report::write_file(options.out, text);
  std::cerr << "wrote " << options.out << '\n';
}

struct Exporter {
  std::string name;                     // as --as writes it
  std::vector<std::string> extensions;  // of files' names that imply it
  std::string (*text_of)(const Topology&);
};

const std::vector<Exporter>& exporters() {
  static const std::vector<Exporter> all{
      {"json", {".json"}, topology::to_json},
      {"nccl", {".xml"}, [](const Topology& t) { return topology::to_nccl_xml(t, 0); }},
      {"svg", {".svg"}, [](const Topology& t) { return topology::to_svg(t); }},
      {"dot", {".dot", ".gv"}, topology::to_dot},
      {"tree", {".txt"}, [](const Topology& t) { return topology::to_tree(t); }}};
  return all;
}

std::vector<std::string> exporter_names() {
  std::vector<std::string> names;
  for (const Exporter& each : exporters()) names.push_back(each.name);
  return names;
}

std::string in_format(const Topology& t, const std::string& format) {
  for (const Exporter& each : exporters())
    if (each.name == format) return each.text_of(t);
  throw ConfigError("no topology format \"" + format + '"', "formats: " + join(exporter_names()));
}

using Formats = std::vector<std::pair<std::string, std::string>>;  // by extension of a file's name

Formats topology_formats() {
  Formats formats;
  for (const Exporter& each : exporters())
    for (const std::string& extension : each.extensions) formats.emplace_back(extension, each.name);
  return formats;
}

const Formats& bill_formats() {
  static const Formats formats{{".json", "json"}, {".csv", "csv"}, {".txt", "table"}};
  return formats;
}

// The format that the file's name implies, else `usual`.
std::string format_of(const Options& options, const Formats& formats, const std::string& usual,
                      const char* option) {
  const std::string extension = std::filesystem::path(options.out).extension().string();
  if (!options.as.empty()) {
    const auto named = std::find_if(formats.begin(), formats.end(),
                                    [&](const auto& each) { return each.first == extension; });
    if (named != formats.end() && named->second != options.as)
      std::cerr << "warning: " << options.out << " is written as " << options.as << ", and its name says "
                << named->second << '\n';
    return options.as;
  }
  if (extension.empty()) return usual;
  std::string known;
  for (const auto& [name, format] : formats) {
    if (name == extension) return format;
    known += (known.empty() ? "" : ", ") + name;
  }
  throw ConfigError("nothing is written as " + extension,
                    fmt::format("names that end in {}; {} {} keeps the name", known, option, usual));
}

int check(const Options& options) {
  const topology::Catalogue catalogue = shipped_catalogue();
  const auto [scenario, topology] = load(options, catalogue);
  const auto findings = topology::check(topology, catalogue);
  int failed = 0;
  for (const topology::Finding& f : findings) {
    std::cout << name_of(f.severity) << ": " << f.message << '\n';
    if (f.severity == topology::Severity::error ||
        (options.strict && f.severity == topology::Severity::warning))
      ++failed;
  }
  // Whether the named parts fit together; only for scenarios, since a file of devices contains figures.
  const auto parts = scenario::hardware_findings(scenario, topology, catalogue);
  for (const report::Finding& f : parts) {
    const bool warning = f.severity == report::Severity::warning;
    std::cout << (warning ? "warning: " : "info: ") << f.message << '\n';
    if (options.strict && warning) ++failed;
  }
  // Also what a run with its workload would refuse, unless a finding says it already.
  for (const Problem& problem : scenario::topology_refusals(scenario, catalogue)) {
    const auto says_it = [&](const topology::Finding& f) { return f.message == problem.message; };
    if (++failed; std::any_of(findings.begin(), findings.end(), says_it)) continue;
    std::cout << "error: " << problem.message << scenario::place_text(scenario, problem.path)
              << (problem.help.empty() ? "" : " (" + problem.help + ')') << '\n';
  }
  if (findings.empty() && parts.empty() && failed == 0)
    std::cout << "no mistakes in " << report::plural(static_cast<double>(topology.devices().size()), "device")
              << " and " << report::plural(static_cast<double>(topology.links().size()), "directed link")
              << '\n';
  return failed > 0 ? kCheckFailed : kOk;
}

std::string read_text(const std::string& given) {
  const std::string path = given == "-" ? "/dev/stdin" : given;
  std::ifstream file(path, std::ios::binary);
  if (!file) throw ConfigError("cannot read " + given, "is the path right?");
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

// Names that the user gives to an import must be in the catalogue.
void check_names(const Options& options, const topology::Catalogue& catalogue) {
  std::vector<Problem> problems;
  const auto look_up = [&](const std::string& option, const std::string& name, const auto& find) {
    if (name.empty()) return;
    try {
      (void)find(name);
    } catch (const ConfigError& error) {
      problems.push_back(error.problems().front());
      problems.back().message = option + ": " + problems.back().message;
    }
  };
  look_up("--gpu", options.accelerator, [&](const auto& id) { return catalogue.accelerator(id).id; });
  look_up("--nic-link", options.nic_link, [&](const auto& id) { return catalogue.link(id).id; });
  if (!problems.empty()) throw ConfigError(std::move(problems));
}

void tell(const std::vector<std::string>& findings) {
  for (const std::string& finding : findings) std::cerr << "note: " << finding << '\n';
}

int import(const Options& options) {
  const topology::Catalogue catalogue = shipped_catalogue();
  check_names(options, catalogue);
  check_outputs({"the topology", {options.file}}, {{"-o", options.out}});
  const std::string& path = options.file;
  const std::string text = read_text(path);
  constexpr std::uint32_t kMostNodes = 65536;
  if (options.nodes < 1 || options.nodes > kMostNodes)
    throw ConfigError(fmt::format("--nodes {} builds nothing", options.nodes),
                      fmt::format("from 1 to {} equal boxes", kMostNodes));
  const std::string format = options.from.empty() ? topology::detect_format(text) : options.from;
  const topology::Importer* importer = topology::find_importer(format);
  const auto print = [&](const Topology& t) {
    write(options, in_format(t, format_of(options, topology_formats(), "json", "--as")));
  };
  if (options.nodes > 1 && (importer == nullptr || !importer->builds_nodes))
    throw ConfigError("--nodes is for NCCL's XML: " + path + " describes what there is", "");
  if (format.empty() && text.find("<graphs") != std::string::npos)
    throw ConfigError(path + " is NCCL's graph, the rings and trees that it chose, and no topology",
                      "NCCL_TOPO_DUMP_FILE=topo.xml makes NCCL write the topology");
  if (format.empty() && text.find("\nHca ") != std::string::npos)
    throw ConfigError(path + " is a network for ibsim, and no topology that is known here",
                      "run ibnetdiscover on what ibsim simulates: its output is read");
  if (importer == nullptr)
    throw ConfigError(path + " is no topology that is known here", "--from " + topology::importer_hints());
  const topology::ReadTopology read =
      importer->read(text, {catalogue, path, options.accelerator, options.nic_link, options.nodes});
  tell(read.findings);
  const auto* spec = std::get_if<topology::TopologySpec>(&read.what);
  print(spec != nullptr ? topology::build(*spec, catalogue) : std::get<Topology>(read.what));
  return kOk;
}

// Quotes and running costs come from the scenario; a node or a topology file has none.
std::string bill_of_materials(const Options& options) {
  const topology::Catalogue catalogue = shipped_catalogue();
  auto [scenario, topology] = load(options, catalogue);
  if (scenario.topology.node.use.empty() && !topology.has_explicit_names())
    scenario.topology.node.use = options.scenario.path;
  report::check_quotes(scenario.cost, catalogue);
  const report::CostModel cost = report::make_cost_model(
      report::bill_of_materials(
          topology, scenario.topology, catalogue, scenario.cost,
          [&](const std::string& path) { return scenario::place_text(scenario, path); }),
      catalogue, scenario.cost);
  const std::string format = format_of(options, bill_formats(), "table", "--format");
  if (format == "json") return report::bom_json(cost);
  if (format == "csv") return report::bom_csv(cost);
  check_format(format, kTableJsonCsv);
  return report::bom_table(cost, report::options_of_stdout().columns);
}

int list() {
  std::vector<TableRow> rows;
  for (const auto& entry : shipped_catalogue().entries())
    if (entry.category == "node" || entry.category == "fabric")
      rows.push_back({std::string(entry.category), entry.id, entry.name});
  print_table({"kind", "id", "name"}, std::move(rows));
  return kOk;
}

}  // namespace

Action configure_topo(CLI::App& app) {
  const auto options = std::make_shared<Options>();
  Subcommands commands(app);
  const auto sub = [&](const char* name, const std::string& text, Action run,
                       bool reads_scenario = true) -> CLI::App& {
    CLI::App& command = commands.add(name, text, std::move(run));
    if (reads_scenario) options->scenario.declare_topology(command);
    return command;
  };
  const auto output = [&](CLI::App& command) {
    add_option(command, "-o,--out", options->out, "Write there instead of stdout").type_name("FILE");
    add_option(command, "--as", options->as, "Format (default: by the file's name)")
        .type_name(word_list(exporter_names()));
  };
  sub("show", "A readable tree of a scenario's topology, a topology file, or a node of the catalogue",
      [options] {
        const int columns = report::options_of_stdout().columns;
        std::cout << topology::to_tree(load_topology(*options), false, static_cast<std::size_t>(columns));
        return kOk;
      });
  CLI::App& checker = sub(
      "check",
      "Oversubscription, missing rails, impossible speeds, single points of failure; exit 1 on errors",
      [options] { return check(*options); }, false);
  options->scenario.declare(checker);  // findings depend on the network model
  add_flag(checker, "--strict", options->strict, "Exit 1 on warnings too");
  output(sub("draw", "SVG (or Graphviz: --as dot)", [options] {
    write(*options,
          in_format(load_topology(*options), format_of(*options, topology_formats(), "svg", "--as")));
    return kOk;
  }));
  output(sub("export", "Devices and links one by one (json), or NCCL's XML of one node", [options] {
    write(*options,
          in_format(load_topology(*options), format_of(*options, topology_formats(), "json", "--as")));
    return kOk;
  }));
  CLI::App& importer = sub(
      "import", "From " + topology::importer_inputs(), [options] { return import(*options); }, false);
  add_option(importer, "FILE", options->file, "What the tool wrote").required();
  add_option(importer, "--from", options->from, "Its kind (default: by its content)")
      .type_name(word_list(topology::importer_names()));
  add_option(importer, "--nodes", options->nodes, "NCCL: equal boxes to build (default 1)").type_name("N");
  add_option(importer, "--gpu", options->accelerator, "Catalogue name of the accelerators").type_name("ID");
  add_option(importer, "--nic-link", options->nic_link,
             "Link of NICs whose speed the file does not tell, e.g. ib-ndr")
      .type_name("LINK");
  output(importer);
  CLI::App& bom =
      sub("bom", "Bill of materials: servers, NICs, switches, cables and optics, with prices and power",
          [options] {
            write(*options, bill_of_materials(*options));
            return kOk;
          });
  add_format_option(bom, options->as, kTableJsonCsv);
  add_option(bom, "-o,--out", options->out, "Write there instead of stdout").type_name("FILE");
  sub(
      "list", "Nodes and fabrics of the catalogue", [] { return list(); }, false);
  return commands.chosen();
}
}  // namespace topsim::cli
