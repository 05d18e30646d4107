#include "topology/catalogue/list.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iostream>
#include <memory>

#include "sim/base/suggest.hpp"
#include "sim/cli/commands.hpp"
#include "sim/cli/declare.hpp"
#include "sim/cli/output_format.hpp"
#include "sim/cli/scenario_options.hpp"
#include "sim/config/object.hpp"
#include "sim/network/factory.hpp"
#include "sim/report/text.hpp"
#include "sim/scenario/scenario.hpp"
#include "sim/scenario/shipped.hpp"
#include "topology/catalogue.hpp"
#include "workloads/fields.hpp"
#include "workloads/framework.hpp"

namespace topsim::cli {
namespace {

using Row = std::vector<std::string>;

void print_table(const Row& head, std::vector<Row> rows) {
  std::vector<std::size_t> widths;
  rows.insert(rows.begin(), head);
  const std::size_t columns = columns_for_people();
  for (std::size_t column = 0; column < head.size(); ++column) {
    std::size_t widest = 0;
    for (const Row& row : rows) widest = std::max(widest, report::width(row[column]));
    widths.push_back(widest);
  }
  // If the window is too narrow for a table, an entry's name is on a line of its own, and the rest below it.
  constexpr std::size_t kLeast = 24, kIndent = 4;
  std::size_t before = 0;
  for (std::size_t column = 0; column + 1 < head.size(); ++column) before += widths[column] + 2;
  const bool narrow = before + std::min(kLeast, widths.back()) > columns;
  for (const Row& row : rows) {
    std::string line;
    if (narrow) {
      for (std::size_t column = 0; column + 1 < row.size(); ++column)
        line += (line.empty() ? "" : "  ") + row[column];
      for (const std::string& part : report::wrap(line, columns, kIndent)) std::cout << part << '\n';
      const std::string rest = std::string(kIndent, ' ') + row.back();
      for (const std::string& part : report::wrap(rest, columns, kIndent)) std::cout << part << '\n';
      continue;
    }
    for (std::size_t column = 0; column + 1 < row.size(); ++column) {
      line += report::pad_right(row[column], widths[column] + 2);
    }
    for (const std::string& part : report::wrap(line + row.back(), columns, before))
      std::cout << part << '\n';
  }
}

void print_rows(const std::vector<topology::ListRow>& list) {
  std::vector<Row> rows;
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
  std::vector<Row> rows;
  for (const topology::FigureRow& figure : topology::figures_of(scenario::catalogue_directories(), id)) {
    std::string source = figure.source;
    if (!figure.remark.empty()) source += (source.empty() ? "" : "; ") + figure.remark;
    rows.push_back({figure.path + (figure.chosen ? "" : " (not used)"), figure.value, source});
  }
  print_table({"figure", "value", "source"}, std::move(rows));
}

void list_models() {
  const config::Library library = shipped_library();
  std::vector<Row> rows;
  for (const std::string& name : library.names("models")) {
    const auto document = config::Document::read_file(library.find("models", name));
    const auto model = config::read<workloads::ModelSpec>(document, &library);
    rows.push_back({name, std::to_string(model.layers), std::to_string(model.hidden),
                    std::to_string(model.heads),
                    model.experts.count > 0 ? std::to_string(model.experts.count) : "-", model.source});
  }
  print_table({"model", "layers", "hidden", "heads", "experts", "source"}, std::move(rows));
}

void list_scenarios() {
  const config::Library library = shipped_library();
  std::vector<Row> rows;
  for (const std::string& name : library.names("")) {
    const scenario::Scenario scenario = scenario::read_scenario(name, {}, library);
    rows.push_back({name, scenario.description});
  }
  print_table({"scenario", "what it is"}, std::move(rows));
}

void list_networks() {
  std::vector<Row> rows;
  for (const network::Model& model : network::models()) {
    rows.push_back(
        {std::string(model.name) + (model.is_default ? " (default)" : ""), std::string(model.summary)});
  }
  print_table({"network", "what it does"}, std::move(rows));
}

void list_frameworks() {
  std::vector<Row> rows;
  std::string_view before;
  for (const workloads::Framework& set : workloads::frameworks()) {
    rows.push_back({fmt::format("{}@{}{}", set.name, set.release, set.name == before ? "" : " (default)"),
                    std::string(set.summary)});
    before = set.name;
  }
  print_table({"framework", "its set of defaults"}, std::move(rows));
  for (const std::string& name : workloads::framework_names()) {
    const workloads::Framework& set = workloads::framework(name);
    const std::string of = fmt::format("{}@{}", set.name, set.release);
    if (name == of || name == set.name) continue;
    const std::string text = fmt::format(
        "A year without a set of its own has the one before it: {} is {}, after the last set the last.", name,
        of);
    std::cout << '\n';
    for (const std::string& line : report::wrap(text, columns_for_people(), 0)) std::cout << line << '\n';
    return;
  }
}

void list_collectives() {
  using program::CollectiveKind;
  std::vector<Row> rows;
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
  std::vector<Row> rows;
  for (const Topic& topic : kTopics)
    rows.push_back({"topsim list " + std::string(topic.name), topic.summary});
  rows.push_back({"topsim list hardware ID", "every figure of one entry, with its source"});
  print_table({"command", "what it lists"}, std::move(rows));
}
}  // namespace

Action configure_list(CLI::App& app) {
  const auto what = std::make_shared<std::string>();
  std::string names;
  for (const Topic& topic : kTopics) names += (names.empty() ? "" : "|") + std::string(topic.name);
  const auto id = std::make_shared<std::string>();
  add_option(app, "what", *what, "What to list").type_name(names);
  add_option(app, "id", *id, "hardware, fabrics: every figure of this entry, with its source")
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
    if (!id->empty()) throw ConfigError("topsim list " + *what + " takes no name", "topsim list hardware ID");
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
