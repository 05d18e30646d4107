// Completion scripts from the option table itself, so that they cannot fall behind it. What a value may be is
// read off the option's type name: "a|b|c" are words, DIR a folder, SCENARIO and FILE files.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <iostream>
#include <memory>

#include "sim/base/error.hpp"
#include "sim/base/suggest.hpp"
#include "sim/cli/commands.hpp"

namespace topsim::cli {
namespace {

struct Flag {
  std::vector<std::string> names;  // with dashes; empty for a positional argument
  std::string description, type;
  bool takes_value = false;
};
struct Entry {
  std::string name, description;
  std::vector<Flag> flags;
};

std::vector<Entry> option_table() {
  CLI::App app;
  std::vector<Action> actions(commands().size());
  declare(app, actions);
  std::vector<Entry> table;
  for (const CLI::App* sub : app.get_subcommands([](const CLI::App*) { return true; })) {
    Entry entry{sub->get_name(), sub->get_description(), {}};
    for (const CLI::Option* option : sub->get_options()) {
      Flag flag;
      for (const std::string& name : option->get_snames()) flag.names.push_back("-" + name);
      for (const std::string& name : option->get_lnames()) flag.names.push_back("--" + name);
      flag.description = option->get_description();
      flag.type = option->get_type_name();
      flag.takes_value = option->get_items_expected_max() > 0;
      entry.flags.push_back(std::move(flag));
    }
    table.push_back(std::move(entry));
  }
  return table;
}

std::string words_of(std::string type) {
  if (type.find('|') == std::string::npos) return {};
  std::replace(type.begin(), type.end(), '|', ' ');
  return type;
}

std::string single_quoted(const std::string& text) {
  std::string result = "'";
  for (const char c : text) result += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return result + "'";
}

std::string bash_values(const Flag& flag) {
  if (const std::string words = words_of(flag.type); !words.empty()) {
    return "COMPREPLY=($(compgen -W \"" + words + "\" -- \"$cur\"))";
  }
  if (flag.type == "DIR") return "COMPREPLY=($(compgen -d -- \"$cur\"))";
  if (flag.type == "SCENARIO")
    return "COMPREPLY=($(compgen -f -X '!*.json' -- \"$cur\") $(compgen -d -- \"$cur\"))";
  return "COMPREPLY=($(compgen -f -- \"$cur\"))";
}

std::string bash() {
  std::string names, cases;
  for (const Entry& entry : option_table()) {
    names += (names.empty() ? "" : " ") + entry.name;
    std::string flags, values, positional;
    for (const Flag& flag : entry.flags) {
      std::string pattern;
      for (const std::string& name : flag.names) {
        flags += (flags.empty() ? "" : " ") + name;
        pattern += (pattern.empty() ? "" : "|") + name;
      }
      if (flag.names.empty()) {
        if (positional.empty()) positional = bash_values(flag);
      } else if (flag.takes_value) {
        values += "        " + pattern + ") " + bash_values(flag) + "; return ;;\n";
      }
    }
    cases += "    " + entry.name + ")\n";
    if (!values.empty()) cases += "      case \"$prev\" in\n" + values + "      esac\n";
    cases += "      if [[ $cur == -* ]]; then COMPREPLY=($(compgen -W \"" + flags +
             "\" -- \"$cur\"))\n      else " +
             (positional.empty() ? std::string("COMPREPLY=()") : positional) + "; fi ;;\n";
  }
  return "# bash completion of topsim, made by topsim completion bash\n"
         "_topsim() {\n"
         "  local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]}\n"
         "  if ((COMP_CWORD == 1)); then COMPREPLY=($(compgen -W \"" +
         names + " --help --version\" -- \"$cur\")); return; fi\n  case \"${COMP_WORDS[1]}\" in\n" + cases +
         "  esac\n}\ncomplete -o filenames -F _topsim topsim\n";
}

std::string zsh_values(const Flag& flag) {
  const std::string words = words_of(flag.type);
  if (!words.empty()) return "(" + words + ")";
  if (flag.type == "DIR") return "_files -/";
  if (flag.type == "SCENARIO") return "_files -g \"*.json\"";
  return "_files";
}

std::string zsh() {
  std::string text =
      "#compdef topsim\n# zsh completion of topsim, made by topsim completion zsh\n_topsim() {\n";
  text += "  local -a commands=(\n";
  const std::vector<Entry> table = option_table();
  for (const Entry& entry : table)
    text += "    " + single_quoted(entry.name + ":" + entry.description) + "\n";
  text += "  )\n  if ((CURRENT == 2)); then _describe command commands; return; fi\n  case $words[2] in\n";
  const auto bracketed = [](std::string description) {
    for (const char c : {'[', ']', ':'}) std::replace(description.begin(), description.end(), c, ' ');
    return '[' + description + ']';
  };
  for (const Entry& entry : table) {
    text += "    " + entry.name + ") shift words; ((CURRENT--)); _arguments";
    for (const Flag& flag : entry.flags) {
      if (flag.names.empty()) {
        text += " " + single_quoted("*:" + std::string("argument:") + zsh_values(flag));
      }
      for (const std::string& name : flag.names) {
        text += " " + single_quoted(name + bracketed(flag.description) +
                                    (flag.takes_value ? ":value:" + zsh_values(flag) : ""));
      }
    }
    text += " ;;\n";
  }
  return text + "  esac\n}\n_topsim \"$@\"\n";
}

std::string fish() {
  std::string text = "# fish completion of topsim, made by topsim completion fish\ncomplete -c topsim -f\n";
  for (const Entry& entry : option_table()) {
    text += "complete -c topsim -n __fish_use_subcommand -a " + entry.name + " -d " +
            single_quoted(entry.description) + "\n";
    const std::string when = "complete -c topsim -n '__fish_seen_subcommand_from " + entry.name + "'";
    for (const Flag& flag : entry.flags) {
      const std::string words = words_of(flag.type);
      const std::string values = words.empty() ? " -F" : " -x -a " + single_quoted(words);
      std::string line = when;
      for (const std::string& name : flag.names) {
        line += name.substr(0, 2) == "--" ? " -l " + name.substr(2) : " -s " + name.substr(1);
      }
      if (flag.names.empty()) {
        line += words.empty() ? " -F" : " -a " + single_quoted(words);
      } else if (flag.takes_value) {
        line += " -r" + values;
      }
      text += line + " -d " + single_quoted(flag.description) + "\n";
    }
  }
  return text;
}
}  // namespace

Action configure_completion(CLI::App& app) {
  const auto shell = std::make_shared<std::string>();
  app.add_option("shell", *shell, "Which shell")->required()->type_name("bash|zsh|fish");
  return [shell] {
    if (*shell == "bash") {
      std::cout << bash();
    } else if (*shell == "zsh") {
      std::cout << zsh();
    } else if (*shell == "fish") {
      std::cout << fish();
    } else {
      throw ConfigError("no completion for \"" + *shell + '"', "shells: bash, zsh, fish");
    }
    return kOk;
  };
}
}  // namespace topsim::cli
