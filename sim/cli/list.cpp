#include "topology/catalogue/list.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iostream>
#include <memory>

#include "sim/base/hints.hpp"
#include "sim/base/suggest.hpp"
#include "sim/cli/commands.hpp"
#include "sim/cli/declare.hpp"
#include "sim/cli/output_format.hpp"
#include "sim/cli/scenario_options.hpp"
#include "sim/cli/table.hpp"
#include "sim/config/object.hpp"
#include "sim/network/factory.hpp"
#include "sim/report/text.hpp"
#include "sim/scenario/read/read.hpp"
#include "sim/scenario/read/shipped.hpp"
#include "sim/scenario/run/left_open.hpp"
#include "sim/scenario/scenario.hpp"
#include "topology/catalogue.hpp"
#include "workloads/fields.hpp"
#include "workloads/framework.hpp"
#include "workloads/model.hpp"
#include "workloads/plan.hpp"

namespace topsim::cli {
namespace {

void print_rows(const std::vector<topology::ListRow>& list) {
  std::vector<TableRow> rows;
  for (const topology::ListRow& row : list) rows.push_back({row.category, row.id, row.name, row.facts});
  print_table({"kind", "id", "name", "figures"}, std::move(rows));
}

void list_hardware() {
  print_rows(topology::list_hardware(shipped_catalogue()));
}
void list_fabrics() {
  print_rows(topology::list_fabrics(shipped_catalogue()));
}

// Prints every figure of one entry, with its source.
void show_entry(const std::string& id) {
  std::vector<TableRow> rows;
  for (const topology::FigureRow& figure : topology::figures_of(scenario::catalogue_directories(), id)) {
    std::string source = figure.source;
    if (!figure.remark.empty()) source += (source.empty() ? "" : "; ") + figure.remark;
    rows.push_back({figure.path + (figure.chosen ? "" : " (not used)"), figure.value, source});
  }
  print_table({"figure", "value", "source"}, std::move(rows));
}

std::string rounded(double parameters) {
  double scaled = parameters / 1e6;
  const char* unit = "M";
  for (const char* larger : {"B", "T"})
    if (scaled >= 999.5) scaled /= 1e3, unit = larger;
  return fmt::format("{:.3g} {}", scaled, unit);
}

void list_models() {
  const config::Library library = shipped_library();
  std::vector<TableRow> rows;
  for (const std::string& name : library.names("models")) {
    const auto document = config::Document::read_file(library.find("models", name));
    const auto model = workloads::complete(config::read<workloads::ModelSpec>(document, &library));
    const bool mixture = model.experts.count > 0;
    rows.push_back({name, rounded(workloads::total_parameters(model)),
                    mixture ? rounded(workloads::active_parameters(model)) : "-",
                    std::to_string(model.layers), std::to_string(model.hidden), std::to_string(model.heads),
                    mixture ? std::to_string(model.experts.count) : "-", model.source});
  }
  print_table({"model", "parameters", "active", "layers", "hidden", "heads", "experts", "source"},
              std::move(rows));
}

// What the model's file says, a key a row.
void collect(const config::Node& node, const std::string& path, std::vector<TableRow>& rows) {
  if (!node.is(config::Kind::object)) {
    rows.push_back({path, node.is(config::Kind::string) ? node.text() : config::to_text(node.value(), 0)});
    return;
  }
  for (std::size_t i = 0; i < node.size(); ++i)
    if (const std::string& key = node[i].key(); key != "$schema")
      collect(node[i], path.empty() ? key : path + '.' + key, rows);
}

void show_model(const std::string& id) {
  const config::Library library = shipped_library();
  const std::vector<std::string> known = library.names("models");
  if (std::find(known.begin(), known.end(), id) == known.end()) {
    const std::string close = suggestion(id, known);
    throw ConfigError("no model \"" + id + '"', close.empty() ? "topsim list models has them all" : close);
  }
  std::vector<TableRow> rows;
  const auto document = config::Document::read_file(library.find("models", id));
  collect(document.root(), {}, rows);
  const auto model = workloads::complete(config::read<workloads::ModelSpec>(document, &library));
  rows.push_back({"parameters", rounded(workloads::total_parameters(model))});
  if (model.experts.count > 0)
    rows.push_back({"parameters a token uses", rounded(workloads::active_parameters(model))});
  print_table({"key", "value"}, std::move(rows));
}

void list_scenarios() {
  const config::Library library = shipped_library();
  std::vector<TableRow> rows;
  for (const std::string& name : library.names("")) {
    const scenario::Scenario scenario = scenario::read_scenario(name, {}, library);
    rows.push_back({name, scenario.description});
  }
  print_table({"scenario", "what it is"}, std::move(rows));
}

void list_networks() {
  std::vector<TableRow> rows;
  for (const network::Model& model : network::models()) {
    rows.push_back({std::string(model.name) + (model.kind == network::kDefaultModel ? " (default)" : ""),
                    std::string(model.summary)});
  }
  print_table({"network", "what it does"}, std::move(rows));
}

TableRow framework_row(const workloads::Framework& set, bool newest) {
  const std::string lacks = workloads::lacks_of(set);
  return {workloads::full_name(set) + (newest ? " (default)" : ""),
          std::string(set.summary) + (lacks.empty() ? "" : " (" + lacks + ")")};
}

void list_frameworks() {
  std::vector<TableRow> rows;
  std::string_view before;
  for (const workloads::Framework& set : workloads::frameworks()) {
    rows.push_back(framework_row(set, set.name != before));
    before = set.name;
  }
  print_table({"framework", "its set of defaults"}, std::move(rows));
  const auto say = [](const std::string& text) {
    std::cout << '\n';
    for (const std::string& line : report::wrap(text, columns_for_people(), 0)) std::cout << line << '\n';
  };
  for (const std::string& name : workloads::framework_names()) {
    const workloads::Framework& set = workloads::framework(name);
    const std::string of = workloads::full_name(set);
    if (name == of || name == set.name) continue;
    say(fmt::format("A year without a set of its own has the one that was in use: {} is {}.", name, of));
    break;
  }
  say("A name alone is its default. On NVIDIA's accelerators up to Ampere it is the set of the year after "
      "their "
      "successors came, as most of what is published on them was measured by then: 2023 on A100, 2021 on "
      "those "
      "before; or 2024's where the job has what came later (Llama's layers, experts, long sequences, 8 bits, "
      "context parallelism, adapters). maxtext on GPUs is maxtext@2024-gpu, fsdp with micro-pipelines "
      "fsdp@2024-compile and with wrap_least fsdp@2024-flat; inference, and ZeRO 3 under megatron, take the "
      "default.");
}

// What a job of a dense model takes from the release: with tensor ranks, if it has any; what scripts set for
// adapters in 8 bits.
std::string defaults_of(const workloads::Framework& set) {
  workloads::WorkloadSpec job;
  job.framework = workloads::full_name(set);
  job.model.layers = 8, job.model.hidden = 1024, job.model.heads = 16, job.model.vocab = 32000;
  job.model = workloads::complete(job.model);
  job.sequence = 2048;
  workloads::PlanSpec& plan = job.plan;
  plan.micro_batch = 1, plan.global_batch = 8, plan.dp = 2, plan.ep = 1;
  if (set.lora_scripts) job.task = workloads::Task::lora, job.precision.gemm = workloads::Precision::fp8;
  const auto taken = [&](int tp) {
    plan.tp = tp;
    return scenario::left_open_json(job, workloads::resolve(job, static_cast<std::uint32_t>(2 * tp)));
  };
  try {
    return taken(2);
  } catch (const ConfigError&) {  // every accelerator holds the whole model
    return taken(1);
  }
}

// A bare name: its releases. A release: the settings that a job leaves to it, as its workload would write
// them.
void show_framework(const std::string& id) {
  const std::vector<std::string> known = workloads::framework_names();
  if (std::find(known.begin(), known.end(), id) == known.end()) {
    std::string help(hint_of_value("framework", id));
    if (help.empty()) help = suggestion(id, known);
    throw ConfigError("no framework \"" + id + '"',
                      help.empty() ? "topsim list frameworks has them all" : help);
  }
  const workloads::Framework& named = workloads::framework(id);
  std::vector<TableRow> rows;
  if (id.find('@') == std::string::npos) {
    for (const workloads::Framework& set : workloads::frameworks())
      if (set.name == named.name) rows.push_back(framework_row(set, rows.empty()));
    print_table({"framework", "its set of defaults"}, std::move(rows));
    return;
  }
  rows = {{"framework", workloads::full_name(named)}, {"is", framework_row(named, false).back()}};
  collect(config::Document::parse(defaults_of(named), id).root(), {}, rows);
  print_table({"of workload", "value"}, std::move(rows));
}

void list_collectives() {
  using program::CollectiveKind;
  std::vector<TableRow> rows;
  const std::pair<CollectiveKind, const char*> kinds[] = {
      {CollectiveKind::all_reduce, "every rank ends with the sum of all"},
      {CollectiveKind::all_gather, "every rank ends with the parts of all"},
      {CollectiveKind::reduce_scatter, "every rank ends with its part of the sum"},
      {CollectiveKind::broadcast, "every rank ends with the root's data"},
      {CollectiveKind::reduce, "the root ends with the sum of all"},
      {CollectiveKind::all_to_all, "every rank sends a part to every other"},
      {CollectiveKind::send_recv, "one rank to another"},
  };
  for (const auto& [kind, text] : kinds) rows.push_back({std::string(program::name_of(kind)), text});
  print_table({"collective", "what it does"}, std::move(rows));
}

struct Topic {
  const char* name;
  void (*print)();
  const char* summary;
};
constexpr Topic kTopics[] = {
    {"scenarios", list_scenarios, "the scenarios that come with topsim"},
    {"hardware", list_hardware, "accelerators, nodes, links, switches, NICs: what topology may name"},
    {"models", list_models, "what workload.model may name"},
    {"frameworks", list_frameworks, "what workload.framework may name, a set of defaults a release"},
    {"fabrics", list_fabrics, "what topology.fabric may name"},
    {"networks", list_networks, "what network.model may name"},
    {"collectives", list_collectives, "what topsim bench measures"}};

void list_topics() {
  std::vector<TableRow> rows;
  for (const Topic& topic : kTopics)
    rows.push_back({"topsim list " + std::string(topic.name), topic.summary});
  rows.push_back({"topsim list hardware ID", "every figure of one entry, with its source"});
  rows.push_back({"topsim list models ID", "what one model is made of"});
  rows.push_back({"topsim list frameworks ID", "its releases, or what one release sets"});
  print_table({"command", "what it lists"}, std::move(rows));
}
}  // namespace

Action configure_list(CLI::App& app) {
  const auto what = std::make_shared<std::string>();
  std::string names;
  for (const Topic& topic : kTopics) names += (names.empty() ? "" : "|") + std::string(topic.name);
  const auto id = std::make_shared<std::string>();
  add_option(app, "what", *what, "What to list").type_name(names);
  add_option(app, "id", *id,
             "hardware, fabrics: every figure of this entry, with its source; models: what it is made of; "
             "frameworks: its releases, or what a release sets")
      .type_name("ID");
  return [what, id] {
    if (what->empty()) {
      list_topics();
      return kOk;
    }
    if (!id->empty() && (*what == "hardware" || *what == "fabrics")) {
      show_entry(*id);
      return kOk;
    }
    if (!id->empty() && *what == "models") {
      show_model(*id);
      return kOk;
    }
    if (!id->empty() && *what == "frameworks") {
      show_framework(*id);
      return kOk;
    }
    if (!id->empty())
      throw ConfigError("topsim list " + *what + " takes no name",
                        "hardware, fabrics, models and frameworks do");
    std::vector<std::string> known;
    for (const Topic& topic : kTopics) {
      if (*what == topic.name) {
        topic.print();
        return kOk;
      }
      known.emplace_back(topic.name);
    }
    const auto close = closest(*what, known);
    throw ConfigError("nothing to list under \"" + *what + '"',
                      (close ? "did you mean " + *close + "? " : std::string()) + "lists: " + join(known));
  };
}
}  // namespace topsim::cli
