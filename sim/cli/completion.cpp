// Completion scripts, generated from the option table so that they never differ from it.
#include <fmt/ranges.h>

#include <algorithm>
#include <iostream>
#include <memory>

#include "sim/base/error.hpp"
#include "sim/base/suggest.hpp"
#include "sim/cli/commands.hpp"
#include "sim/cli/declare.hpp"
#include "sim/cli/option_table.hpp"
#include "sim/cli/scenario_options.hpp"
#include "sim/cli/scenario_paths.hpp"
#include "topology/catalogue/list.hpp"

namespace topsim::cli {
namespace {

// Ids of the shipped catalogue: of one category, or all.
std::string catalogue_ids(std::string_view category = {}) {
  const topology::Catalogue catalogue = shipped_catalogue();
  std::vector<std::string> ids;
  for (const auto& list : {topology::list_hardware(catalogue), topology::list_fabrics(catalogue)})
    for (const topology::ListRow& row : list)
      if (category.empty() || row.category == category) ids.push_back(row.id);
  return fmt::format("{}", fmt::join(ids, " "));
}

// The possible values, separated by blanks; empty if anything is possible.
std::string words_of(const Flag& flag) {
  if (flag.type == "ID") return catalogue_ids();
  if (flag.type == "LINK") return catalogue_ids("link");
  if (flag.type.find('|') == std::string::npos) return {};
  std::string words = flag.type;
  std::replace(words.begin(), words.end(), '|', ' ');
  return words;
}

bool takes_file(const Flag& flag) {
  return flag.type.empty() || flag.type == "CASE" || flag.type.find("FILE") != std::string::npos ||
         flag.type.find(".json") != std::string::npos;
}

bool takes_path(const Flag& flag) {
  return flag.type.rfind("PATH=", 0) == 0;
}

// Paths of scenario keys, separated by blanks, each with `ending`.
std::string path_words(const std::string& ending) {
  std::string words;
  for (const std::string& path : scenario_paths()) words += (words.empty() ? "" : " ") + path + ending;
  return words;
}

std::string names_below(const Entry& entry) {
  std::string names;
  for (const Entry& below : entry.below) names += (names.empty() ? "" : " ") + below.name;
  return names;
}

// A command with subcommands gets the options of all of them.
std::vector<Entry> commands_with_all_flags() {
  std::vector<Entry> table = option_table();
  for (Entry& entry : table) {
    for (const Entry& below : entry.below) {
      for (const Flag& flag : below.flags) {
        const auto same = [&](const Flag& known) { return known.names == flag.names; };
        if (std::none_of(entry.flags.begin(), entry.flags.end(), same)) entry.flags.push_back(flag);
      }
    }
  }
  return table;
}

std::string single_quoted(const std::string& text) {
  std::string result = "'";
  for (const char c : text) result += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return result + "'";
}

std::string bash_values(const Flag& flag) {
  if (const std::string words = words_of(flag); !words.empty()) {
    return "COMPREPLY=($(compgen -W \"" + words + "\" -- \"$cur\"))";
  }
  if (takes_path(flag)) return "_topsim_path";
  if (flag.type == "DIR") return "mapfile -t COMPREPLY < <(compgen -d -- \"$cur\")";
  if (flag.type == "SCENARIO")
    return "mapfile -t COMPREPLY < <(compgen -f -X '!*.json' -- \"$cur\"; compgen -d -- \"$cur\"; "
           "compgen -W \"" +
           fmt::format("{}", fmt::join(shipped_library().names(""), " ")) + "\" -- \"$cur\")";
  return takes_file(flag) ? "mapfile -t COMPREPLY < <(compgen -f -- \"$cur\")" : "COMPREPLY=()";
}

std::string bash() {
  std::string names, cases;
  for (const Entry& entry : commands_with_all_flags()) {
    names += (names.empty() ? "" : " ") + entry.name;
    std::string flags, values, first, last;  // what the first and the last argument may be
    for (const Flag& flag : entry.flags) {
      std::string pattern;
      for (const std::string& name : flag.names) {
        flags += (flags.empty() ? "" : " ") + name;
        pattern += (pattern.empty() ? "" : "|") + name;
      }
      if (flag.names.empty()) {
        last = bash_values(flag);
        if (first.empty()) first = last;
      } else if (flag.takes_value) {
        values += "        " + pattern + ") " + bash_values(flag) + "; return ;;\n";
      }
    }
    cases += "    " + entry.name + ")\n";
    if (const std::string below = names_below(entry); !below.empty()) {
      cases += "      if ((COMP_CWORD == 2)); then COMPREPLY=($(compgen -W \"" + below +
               "\" -- \"$cur\")); return; fi\n";
    }
    if (!values.empty()) cases += "      case \"$prev\" in\n" + values + "      esac\n";
    cases += "      if [[ $cur == -* ]]; then COMPREPLY=($(compgen -W \"" + flags +
             "\" -- \"$cur\"))\n      else " +
             (last.empty()    ? "COMPREPLY=()"
              : first == last ? last
                              : "if ((COMP_CWORD == 2)); then " + first + "; else " + last + "; fi") +
             "; fi ;;\n";
  }
  return "# bash completion of topsim, made by topsim completion bash\n"
         "_topsim_path() {\n"
         "  compopt -o nospace 2> /dev/null\n"
         "  COMPREPLY=($(compgen -W \"" +
         path_words("=") +
         "\" -- \"$cur\"))\n}\n"
         "_topsim() {\n"
         "  local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]}\n"
         "  if ((COMP_CWORD == 1)); then COMPREPLY=($(compgen -W \"" +
         names + " --help --version\" -- \"$cur\")); return; fi\n  case \"${COMP_WORDS[1]}\" in\n" + cases +
         "  esac\n}\ncomplete -o filenames -F _topsim topsim\n";
}

std::string zsh_values(const Flag& flag) {
  const std::string words = words_of(flag);
  if (!words.empty()) return "(" + words + ")";
  if (takes_path(flag)) return "_topsim_paths";
  if (flag.type == "DIR") return "_files -/";
  if (flag.type == "SCENARIO") return "_files -g \"*.json\"";
  return takes_file(flag) ? "_files" : "";
}

// The specification for _arguments: repeated options begin with a star, arguments have positions, and the
// last one stands for the rest if it repeats. A command with subcommands has the subcommand first.
std::string zsh_arguments(const Entry& entry) {
  std::string text;
  const auto bracketed = [](std::string description) {
    for (const char c : {'[', ']', ':'}) std::replace(description.begin(), description.end(), c, ' ');
    return '[' + description + ']';
  };
  const auto add = [&](const std::string& spec) { text += " " + single_quoted(spec); };
  int place = 1;
  if (!entry.below.empty()) add(std::to_string(place++) + ":command:(" + names_below(entry) + ")");
  for (const Flag& flag : entry.flags) {
    if (flag.names.empty()) {
      add((flag.repeats ? "*" : std::to_string(place++)) + ":" + flag.label + ":" + zsh_values(flag));
    }
    for (const std::string& name : flag.names) {
      add((flag.repeats ? "*" : "") + name + bracketed(flag.description) +
          (flag.takes_value ? ":value:" + zsh_values(flag) : ""));
    }
  }
  return text;
}

std::string zsh() {
  std::string text =
      "#compdef topsim\n# zsh completion of topsim, made by topsim completion zsh\n"
      "_topsim_paths() { compadd \"$@\" -S '' -- " +
      path_words("=") + "; }\n_topsim() {\n  local -a commands=(\n";
  const std::vector<Entry> table = commands_with_all_flags();
  for (const Entry& entry : table)
    text += "    " + single_quoted(entry.name + ":" + entry.description) + "\n";
  text += "  )\n  if ((CURRENT == 2)); then _describe command commands; return; fi\n  case $words[2] in\n";
  for (const Entry& entry : table)
    text += "    " + entry.name + ") shift words; ((CURRENT--)); _arguments" + zsh_arguments(entry) + " ;;\n";
  return text + "  esac\n}\n_topsim \"$@\"\n";
}

std::string fish() {
  std::string text = "# fish completion of topsim, made by topsim completion fish\ncomplete -c topsim -f\n";
  for (const Entry& entry : commands_with_all_flags()) {
    text += "complete -c topsim -n __fish_use_subcommand -a " + entry.name + " -d " +
            single_quoted(entry.description) + "\n";
    if (!entry.below.empty()) {
      text += "complete -c topsim -n '__fish_seen_subcommand_from " + entry.name + "' -a " +
              single_quoted(names_below(entry)) + "\n";
    }
    const std::string when = "complete -c topsim -n '__fish_seen_subcommand_from " + entry.name + "'";
    for (const Flag& flag : entry.flags) {
      const std::string words = words_of(flag);
      const std::string known = takes_path(flag) ? path_words("=") : words;
      const bool file = flag.type == "DIR" || flag.type == "SCENARIO" || takes_file(flag);
      const std::string values = !known.empty() ? " -x -a " + single_quoted(known) : file ? " -F" : " -x";
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
  add_option(app, "shell", *shell, "Which shell").required().type_name("bash|zsh|fish");
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
