#include "python/bindings/bindings.hpp"
#include "sim/base/error.hpp"
#include "sim/report/version.hpp"
#include "sim/scenario/directories.hpp"

namespace topsim::python {
config::Library shipped_library() {
  std::vector<std::string> directories = scenario::config_directories();
  if (directories.empty()) {
    throw ConfigError("topsim's configs are not found",
                      "set TOPSIM_CONFIG_PATH to the folder that holds hardware/ and models/");
  }
  return config::Library(std::move(directories));
}

topology::Catalogue shipped_catalogue() {
  return topology::Catalogue::load(shipped_library().directories().front());
}
}  // namespace topsim::python

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
  topsim::python::bind_topology(module);
}
