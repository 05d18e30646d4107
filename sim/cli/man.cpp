// The manual page, in the man macros of troff (man 7 groff_man), from the option table.
#include <iostream>

#include "sim/cli/commands.hpp"
#include "sim/cli/option_table.hpp"
#include "sim/report/version.hpp"

namespace topsim::cli {
namespace {

// Escapes text for troff, where backslashes, dashes, and a dot or quote at the start of a line are special.
std::string troff(const std::string& text) {
  std::string result;
  bool line_start = true;
  for (const char c : text) {
    if (line_start && (c == '.' || c == '\'')) result += "\\&";
    if (c == '\\') {
      result += "\\e";
    } else if (c == '-') {
      result += "\\-";
    } else {
      result += c;
    }
    line_start = c == '\n';
  }
  return result;
}

// Turns "a|b|c" into "a, b, c", in which lines can be broken.
std::string choices(const std::string& type) {
  std::string result;
  for (const char c : troff(type)) result += c == '|' ? std::string(", ") : std::string(1, c);
  return result;
}

std::string heading_of(const Flag& flag) {
  if (flag.names.empty()) return "\\fI" + troff(flag.label) + "\\fR";
  std::string text;
  for (const std::string& name : flag.names)
    text += (text.empty() ? "\\fB" : ", \\fB") + troff(name) + "\\fR";
  if (flag.takes_value && !flag.type.empty()) text += " \\fI" + troff(flag.type) + "\\fR";
  return text;
}

std::string command_section(const Entry& entry, const std::string& before) {
  std::string text = ".SS \"" + troff(before + entry.name) + "\"\n" + troff(entry.description) + ".\n";
  for (const Flag& flag : entry.flags) {
    if (flag.names.size() == 2 && flag.names.back() == "--help") continue;
    text += ".TP\n" + heading_of(flag) + "\n" + troff(flag.description);
    if (flag.names.empty() && flag.type.find('|') != std::string::npos) text += ": " + choices(flag.type);
    text += "\n";
  }
  if (!entry.examples.empty()) text += ".PP\nExamples:\n.EX\n" + troff(entry.examples) + "\n.EE\n";
  for (const Entry& below : entry.below) text += command_section(below, before + entry.name + " ");
  return text;
}

std::string page() {
  std::string text =
      ".TH TOPSIM 1 \"\" \"topsim " + std::string(report::version()) + "\" \"User commands\"\n";
  text +=
      ".SH NAME\ntopsim \\- cluster interconnect and topology simulator\n"
      ".SH SYNOPSIS\n\\fBtopsim\\fR \\fICOMMAND\\fR [\\fIOPTION\\fR]...\n"
      ".SH DESCRIPTION\ntopsim predicts how long a training step takes on a cluster, which links are busy, "
      "and why "
      "accelerators idle.\nA scenario is one JSON file: hardware, fabric, workload. The result goes to "
      "standard "
      "output, progress and warnings to standard error.\n.SH COMMANDS\n";
  for (const Entry& entry : option_table()) text += command_section(entry, "topsim ");
  text +=
      ".SH EXIT STATUS\n"
      ".TP\n0\nall went well\n.TP\n1\na requested check failed\n"
      ".TP\n2\nthe command line, the scenario or another file is wrong; the message says where\n"
      ".TP\n70\na mistake of topsim itself\n"
      ".TP\n130\ninterrupted; where a partial result exists, it was written and says so\n"
      ".SH ENVIRONMENT\n"
      ".TP\nTOPSIM_CONFIG_PATH\nfolders that hold hardware/ and models/, separated by colons; what "
      "they say of an entry comes before the installed ones\n"
      ".TP\nNO_COLOR\nno colours\n.TP\nCOLUMNS\nwidth of what is printed\n";
  return text;
}
}  // namespace

Action configure_man(CLI::App&) {
  return [] {
    std::cout << page();
    return kOk;
  };
}
}  // namespace topsim::cli
