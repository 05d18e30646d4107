// ConfigError -> topsim.ConfigError, with the place of every mistake; other exceptions by pybind11's rules.
#include <regex>
#include <utility>

#include "python/bindings/bindings.hpp"
#include "sim/base/error.hpp"

namespace topsim::python {
namespace {

py::dict to_dict(const Problem& problem) {
  py::dict dict;
  dict["message"] = problem.message;
  dict["path"] = problem.path;
  dict["file"] = problem.place.file;
  dict["line"] = problem.place.line;
  dict["column"] = problem.place.column;
  dict["label"] = problem.label;
  dict["help"] = problem.help;
  return dict;
}

// Options of the command as arguments of the function: --network flow is network="flow".
std::string with_arguments(std::string text) {
  static const std::pair<std::regex, const char*> kForms[] = {
      {std::regex("--set ([\\w.\\[\\]]+)=([\\w.@+-]+)"), "set=[\"$1=$2\"]"},
      {std::regex("--allow-oom"), "allow_oom=True"},
      {std::regex("--network (\\w+)"), "network=\"$1\""},
      {std::regex("--gpus (\\d+)"), "gpus=$1"},
      {std::regex("--(set|network|seed|gpus|out|best|pareto|top|jobs)\\b"), "$1"}};
  if (text.find("topsim ") != std::string::npos) return text;  // a command, as a shell takes it
  for (const auto& [option, argument] : kForms) text = std::regex_replace(text, option, argument);
  return text;
}

// In Python, changes are keywords and dicts, not options of a command.
std::vector<Problem> in_python(std::vector<Problem> problems) {
  constexpr std::string_view kOption = "--set";
  for (Problem& problem : problems) {
    problem.help = with_arguments(problem.help);
    if (!problem.message.starts_with(kOption)) problem.message = with_arguments(problem.message);
    if (problem.place.file != kOption) continue;
    problem.place.file = "changes";
    if (problem.message.starts_with(kOption)) problem.message.replace(0, kOption.size(), "a change");
  }
  return problems;
}

void raise(const ConfigError& error) {
  const std::vector<Problem> shown = in_python(error.problems());
  py::list problems;
  for (const Problem& problem : shown) problems.append(to_dict(problem));
  const py::object type = py::module_::import("topsim.errors").attr("ConfigError");
  const py::object exception = type(config::picture(shown), problems);
  PyErr_SetObject(type.ptr(), exception.ptr());
}
}  // namespace

void bind_errors(py::module_&) {
  py::register_exception_translator([](std::exception_ptr thrown) {
    if (!thrown) return;
    try {
      std::rethrow_exception(thrown);
    } catch (const ConfigError& error) {
      raise(error);
    }
  });
}
}  // namespace topsim::python
