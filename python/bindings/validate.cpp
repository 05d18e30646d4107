#include "sim/validation/validate.hpp"

#include <pybind11/stl.h>

#include "python/bindings/bindings.hpp"
#include "python/bindings/interruptible.hpp"
#include "sim/report/html/page.hpp"

namespace topsim::python {
namespace {

// Returns (JSON, table).
std::tuple<std::string, std::string> validate(const std::vector<std::string>& wanted, int jobs,
                                              const py::object& on_progress) {
  const config::Library library = shipped_library();
  const topology::Catalogue catalogue = shipped_catalogue();
  const auto files = validation::find_cases(wanted, library);
  executor::Progress progress;
  const auto tick = [&] {
    if (!on_progress.is_none()) on_progress(progress.runs_done.load(), progress.runs_total.load(), 0.0, 0, 0);
  };
  const validation::Report report = interruptible(
      progress.stop, tick, [&] { return validation::validate(files, catalogue, library, jobs, &progress); });
  constexpr std::size_t kColumns = 110;
  return {validation::to_json(report), validation::to_text(report, false, kColumns)};
}
}  // namespace

void bind_validate(py::module_& module) {
  module.def("validate", &validate, py::arg("names"), py::arg("jobs"), py::arg("on_progress"));
  module.def("validate_html", &report::validate_html, py::arg("json"));
}
}  // namespace topsim::python
