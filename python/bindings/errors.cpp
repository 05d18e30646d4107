// ConfigError -> topsim.ConfigError, with the place of every mistake; other exceptions by pybind11's rules.
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

// In Python, changes are keywords and dicts, not options of a command.
std::vector<Problem> in_python(std::vector<Problem> problems) {
  constexpr std::string_view kOption = "--set";
  for (Problem& problem : problems) {
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
