// How a command declares its options. CLI11 itself stays in declare.cpp and command_line.cpp: its header
// alone costs seconds of compile time in every file that includes it.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>

#include "sim/cli/command.hpp"

namespace CLI {
class Option;
}

namespace topsim::cli {

// An option or argument just declared; each call restricts it further and returns it.
class Declared {
 public:
  explicit Declared(CLI::Option& option) : option_(option) {}
  Declared type_name(const std::string& name);  // what completion offers: "a|b|c", "FILE", "DIR", "SCENARIO"
  Declared required();
  Declared not_empty();  // --out "$DIR" with DIR unset is a mistake
  Declared range(int least, int most);
  Declared range(double least, double most);
  Declared check(std::function<std::string(const std::string& value)> problem);  // empty: none
  // For options that may be repeated: how values are separated.
  Declared one_each();                  // --set A --set B
  Declared one_each_kept_in_order();    // --rank A --rank B, one value each
  Declared separated_by(char between);  // --keep a,b

 private:
  CLI::Option& option_;
};

// "a|b|c", for type_name().
[[nodiscard]] std::string word_list(std::span<const std::string> words);

// `names`: "-o,--out" or the argument's name; the value keeps its default where nothing is given. declare.cpp
// lists the types.
template <class Value>
Declared add_option(CLI::App& app, const std::string& names, Value& value, const std::string& help);
void add_flag(CLI::App& app, const std::string& names, bool& value, const std::string& help);
// --jobs and --html, of several commands.
void add_jobs(CLI::App& app, int& jobs);
void add_page(CLI::App& app, std::string& path, const std::string& help);

// Subcommands (`topo show`). Without one, the command prints its help and exits with a user error.
class Subcommands {
 public:
  explicit Subcommands(CLI::App& app);
  CLI::App& add(const std::string& name, const std::string& summary, Action run);
  [[nodiscard]] Action chosen() const;

 private:
  CLI::App& app_;
  std::shared_ptr<Action> action_;
};
}  // namespace topsim::cli
