#include "python/bindings/bindings.hpp"
#include "sim/report/version.hpp"

PYBIND11_MODULE(_core, module) {
  module.doc() = "The C++ library of topsim. Use the package topsim, which wraps it.";
  module.attr("version") = std::string(topsim::report::version());
  module.attr("commit") = std::string(topsim::report::commit());
  topsim::python::bind_errors(module);
  topsim::python::bind_scenario(module);
  topsim::python::bind_run(module);
  topsim::python::bind_compare(module);
  topsim::python::bind_bench(module);
  topsim::python::bind_sweep(module);
  topsim::python::bind_plan(module);
  topsim::python::bind_validate(module);
  topsim::python::bind_topology(module);
  topsim::python::bind_names(module);
}
