// The options of the command line, read from their declarations: source of completion scripts and manual
// page.
#pragma once

#include <string>
#include <vector>

namespace topsim::cli {

struct Flag {
  std::vector<std::string> names;  // with dashes; empty for a positional argument
  std::string label;               // of a positional argument
  std::string description;
  std::string type;  // "a|b|c" are words, DIR a folder, SCENARIO and FILE files
  bool takes_value = false;
  bool repeats = false;  // may be given, or takes values, more than once
};

struct Entry {
  std::string name, description, examples;
  std::vector<Flag> flags;
  std::vector<Entry> below;  // commands of a command
};

[[nodiscard]] std::vector<Entry> option_table();
}  // namespace topsim::cli
