// ConfigError -> topsim.ConfigError, with the place of every mistake; everything else as pybind11 does it.
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

void raise(const ConfigError& error) {
  py::list problems;
  for (const Problem& problem : error.problems()) problems.append(to_dict(problem));
  const py::object type = py::module_::import("topsim.errors").attr("ConfigError");
  const py::object exception = type(config::picture(error.problems()), problems);
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
