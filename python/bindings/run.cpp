#include <pybind11/stl.h>

#include <optional>

#include "python/bindings/bindings.hpp"
#include "python/bindings/columns.hpp"
#include "python/bindings/interruptible.hpp"
#include "sim/report/json.hpp"
#include "sim/report/terminal.hpp"
#include "sim/report/trace.hpp"
#include "sim/scenario/simulate.hpp"

namespace topsim::python {
namespace {
using report::Timeline;

// (result.json, run.json, Timeline or None)
py::tuple run(const scenario::Scenario& scenario, bool fold, bool timeline, bool allow_oom,
              const py::object& on_progress) {
  struct Finished {
    std::string result, record;
    std::shared_ptr<Timeline> timeline;
  };
  Finished finished = interruptible(on_progress, [&](executor::Progress& progress) {
    scenario::Simulated simulated =
        scenario::simulate(scenario, shipped_catalogue(), {fold, timeline, allow_oom}, &progress);
    Finished made{report::to_json(simulated.result), report::to_json(simulated.record), nullptr};
    if (simulated.timeline) made.timeline = std::make_shared<Timeline>(std::move(*simulated.timeline));
    return made;
  });
  return py::make_tuple(finished.result, finished.record, finished.timeline);
}

std::string load(const std::string& file) {
  const py::gil_scoped_release release;
  return report::to_json(report::read_result(file));
}

std::string text(const std::string& result, int columns) {
  report::TerminalOptions options;
  options.columns = columns;
  return report::to_terminal(report::result_from_json(result, "result"), options);
}
}  // namespace

void bind_run(py::module_& module) {
  py::class_<Timeline, std::shared_ptr<Timeline>>(module, "Timeline")
      .def("slices", &slice_columns)
      .def("idle", &idle_columns)
      .def("links", &link_sample_columns)
      .def("write_trace", [](const Timeline& timeline, const std::string& file) {
        const py::gil_scoped_release release;
        report::write_trace(file, timeline);
      });
  module.def("run", &run, py::arg("scenario"), py::arg("fold"), py::arg("timeline"), py::arg("allow_oom"),
             py::arg("on_progress"));
  module.def("load_result", &load, py::arg("file"));
  module.def("result_text", &text, py::arg("result"), py::arg("columns"));
}
}  // namespace topsim::python
