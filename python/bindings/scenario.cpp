#include <pybind11/stl.h>

#include "python/bindings/bindings.hpp"
#include "sim/scenario/read/read.hpp"

namespace topsim::python {
namespace {
using scenario::Scenario;
using Assignments = std::vector<std::string>;

// If a scenario has only a topology, the call that needs more reports what is missing.
Scenario read(const std::string& path, const Assignments& assignments) {
  const py::gil_scoped_release release;
  return scenario::read_cluster(path, assignments, shipped_library());
}

Scenario parse(const std::string& text, const std::string& name, const std::string& directory,
               const Assignments& assignments) {
  const py::gil_scoped_release release;
  Scenario parsed = scenario::parse_cluster(text, name, assignments, shipped_library());
  parsed.name = name;
  parsed.topology.directory = directory;
  return parsed;
}
}  // namespace

void bind_scenario(py::module_& module) {
  py::class_<Scenario, std::shared_ptr<Scenario>>(module, "Scenario")
      .def_static("read", &read, py::arg("path"), py::arg("assignments"))
      .def_static("parse", &parse, py::arg("text"), py::arg("name"), py::arg("directory"),
                  py::arg("assignments"))
      .def_readonly("name", &Scenario::name)
      .def_readonly("description", &Scenario::description)
      .def_property_readonly("directory", [](const Scenario& s) { return s.topology.directory; })
      .def_property_readonly("files", [](const Scenario& s) { return scenario::files_read(s); })
      .def("to_json", [](const Scenario& s) { return scenario::to_json(s); });
}
}  // namespace topsim::python
