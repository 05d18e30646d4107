#include "sim/cli/option_table.hpp"

#include <CLI/CLI.hpp>

#include "sim/cli/command.hpp"

namespace topsim::cli {
namespace {
Entry entry_of(const CLI::App& app) {
  Entry entry{app.get_name(), app.get_description(), {}, {}, {}};
  for (const CLI::Option* option : app.get_options()) {
    Flag flag;
    for (const std::string& name : option->get_snames()) flag.names.push_back("-" + name);
    for (const std::string& name : option->get_lnames()) flag.names.push_back("--" + name);
    flag.label = option->get_name(true);
    flag.description = option->get_description();
    flag.type = option->get_type_name();
    flag.takes_value = option->get_items_expected_max() > 0;
    flag.repeats = option->get_expected_max() > 1;
    entry.flags.push_back(std::move(flag));
  }
  for (const CLI::App* sub : app.get_subcommands([](const CLI::App*) { return true; })) {
    entry.below.push_back(entry_of(*sub));
  }
  return entry;
}
}  // namespace

std::vector<Entry> option_table() {
  CLI::App app;
  std::vector<Action> actions(commands().size());
  declare(app, actions);
  std::vector<Entry> table = entry_of(app).below;
  for (std::size_t i = 0; i < table.size(); ++i) table[i].examples = commands()[i].examples;
  return table;
}
}  // namespace topsim::cli
