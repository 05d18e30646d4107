// What a command says of its options. CLI11 itself stays in declare.cpp and command_line.cpp: its header
// alone takes seconds of compile time in every file that sees it.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "sim/cli/command.hpp"

namespace CLI {
class Option;
}

namespace topsim::cli {

// An option or argument just declared; each word narrows it and gives it back.
class Declared {
 public:
  explicit Declared(CLI::Option& option) : option_(option) {}
  Declared type_name(const std::string& name);  // what completion offers: "a|b|c", "FILE", "DIR", "SCENARIO"
  Declared required();
  Declared not_empty();  // --out "$DIR" with DIR unset is a mistake, not a wish for nothing
  Declared range(int least, int most);
  Declared range(double least, double most);
  Declared check(std::function<std::string(const std::string& value)> problem);  // empty: none
  // Of options that may be repeated: how values are told apart.
  Declared one_each();                  // --set A --set B
  Declared one_each_kept_in_order();    // --rank A --rank B, and nothing of what follows
  Declared separated_by(char between);  // --keep a,b

 private:
  CLI::Option& option_;
};

// `names`: "-o,--out" or the argument's name; the value keeps its default where nothing is given. declare.cpp
// lists the types.
template <class Value>
Declared add_option(CLI::App& app, const std::string& names, Value& value, const std::string& help);
void add_flag(CLI::App& app, const std::string& names, bool& value, const std::string& help);
// --jobs and --html, of several commands.
void add_jobs(CLI::App& app, int& jobs);
void add_page(CLI::App& app, std::string& path, const std::string& help);

// Commands of a command (`topo show`). Alone, the command prints its help and is the user's mistake.
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
