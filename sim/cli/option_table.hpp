// What the command line offers, read off the options themselves: completion scripts and the manual page
// follow from it.
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
