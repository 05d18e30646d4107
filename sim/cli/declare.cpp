#include "sim/cli/declare.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <optional>
#include <utility>
#include <vector>

namespace topsim::cli {

std::string word_list(std::span<const std::string> words) {
  return fmt::format("{}", fmt::join(words, "|"));
}

Declared Declared::type_name(const std::string& name) {
  option_.type_name(name);
  return *this;
}
Declared Declared::required() {
  option_.required();
  return *this;
}
Declared Declared::range(int least, int most) {
  option_.check(CLI::Range(least, most));
  return *this;
}
Declared Declared::range(double least, double most) {
  const auto problem = [least, most](std::string& text) {
    char* end = nullptr;
    const double value = std::strtod(text.c_str(), &end);
    const bool number = !text.empty() && *end == '\0';
    return number && value >= least && value <= most  // false for NaN, which CLI::Range accepts
               ? std::string()
               : fmt::format("Value {} not in range {:g} to {:g}", text, least, most);
  };
  option_.check(CLI::Validator(problem, fmt::format("FLOAT in [{:g} - {:g}]", least, most)));
  return *this;
}
Declared Declared::not_empty() {
  option_.check(
      [](const std::string& text) { return text.empty() ? std::string("is empty") : std::string(); });
  return *this;
}
Declared Declared::check(std::function<std::string(const std::string& value)> problem) {
  option_.check(std::move(problem));
  return *this;
}
Declared Declared::one_each() {
  option_.allow_extra_args(false);
  return *this;
}
Declared Declared::one_each_kept_in_order() {
  option_.expected(1)->take_all();
  return *this;
}
Declared Declared::separated_by(char between) {
  option_.delimiter(between);
  return *this;
}

template <class Value>
Declared add_option(CLI::App& app, const std::string& names, Value& value, const std::string& help) {
  return Declared(*app.add_option(names, value, help));
}
template Declared add_option(CLI::App&, const std::string&, std::string&, const std::string&);
template Declared add_option(CLI::App&, const std::string&, std::vector<std::string>&, const std::string&);
template Declared add_option(CLI::App&, const std::string&, std::vector<std::uint32_t>&, const std::string&);
template Declared add_option(CLI::App&, const std::string&, int&, const std::string&);
template Declared add_option(CLI::App&, const std::string&, std::uint32_t&, const std::string&);
template Declared add_option(CLI::App&, const std::string&, std::size_t&, const std::string&);
template Declared add_option(CLI::App&, const std::string&, double&, const std::string&);
template Declared add_option(CLI::App&, const std::string&, std::optional<std::string>&, const std::string&);
template Declared add_option(CLI::App&, const std::string&, std::optional<int>&, const std::string&);

void add_flag(CLI::App& app, const std::string& names, bool& value, const std::string& help) {
  app.add_flag(names, value, help);
}

void add_jobs(CLI::App& app, int& jobs) {
  add_option(app, "--jobs", jobs, "Simulations at once (default 0: one per core)")
      .type_name("N")
      .range(0, 4096);
}

void add_page(CLI::App& app, std::string& path, const std::string& help) {
  add_option(app, "--html", path, help).not_empty().type_name("FILE");
}

Subcommands::Subcommands(CLI::App& app)
    : app_(app), action_(std::make_shared<Action>([&app] {
        std::cout << app.help();
        return kUserError;
      })) {
  app_.require_subcommand(1);
}

CLI::App& Subcommands::add(const std::string& name, const std::string& summary, Action run) {
  CLI::App* command = app_.add_subcommand(name, summary);
  command->callback([action = action_, run = std::move(run)] { *action = run; });
  return *command;
}

Action Subcommands::chosen() const {
  return [action = action_] { return (*action)(); };
}
}  // namespace topsim::cli
