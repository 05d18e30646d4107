#include <fmt/format.h>
#include <pybind11/stl.h>

#include <limits>
#include <optional>

#include "python/bindings/bindings.hpp"
#include "python/bindings/columns.hpp"
#include "python/bindings/interruptible.hpp"
#include "sim/base/error.hpp"
#include "sim/report/csv.hpp"
#include "sim/report/html/html.hpp"
#include "sim/report/json.hpp"
#include "sim/report/member.hpp"
#include "sim/report/terminal.hpp"
#include "sim/report/trace.hpp"
#include "sim/scenario/run/simulate.hpp"
#include "sim/study/explain.hpp"

namespace topsim::python {
namespace {

// What a run keeps on request: its timeline, and the drawing of the cluster.
struct Kept {
  report::Timeline timeline;
  report::Picture picture;
};

// Returns (result.json, run.json, Timeline or None).
py::tuple run(const scenario::Scenario& scenario, bool fold, bool timeline, bool allow_oom,
              const py::object& on_progress) {
  struct Finished {
    std::string result, record;
    std::shared_ptr<Kept> kept;
  };
  Finished finished = interruptible(on_progress, [&](executor::Progress& progress) {
    scenario::Simulated simulated =
        scenario::simulate(scenario, shipped_catalogue(), {fold, timeline, allow_oom, true}, &progress);
    Finished made{report::to_json(simulated.result), report::to_json(simulated.record), nullptr};
    if (simulated.timeline && simulated.picture)
      made.kept = std::make_shared<Kept>(Kept{std::move(*simulated.timeline), std::move(*simulated.picture)});
    return made;
  });
  return py::make_tuple(finished.result, finished.record, finished.kept);
}

std::string load_result(const std::string& file) {
  const py::gil_scoped_release release;
  return report::to_json(report::read_result(file));
}

std::string find_members(const std::string& result, const scenario::Scenario& scenario,
                         const std::vector<std::int64_t>& ranks, const std::vector<std::string>& links) {
  const py::gil_scoped_release release;
  std::vector<std::uint32_t> numbers;
  for (const std::int64_t rank : ranks) {
    if (rank < 0 || rank > std::numeric_limits<std::uint32_t>::max())
      throw ConfigError(fmt::format("the job has no rank {}", rank), "ranks count from 0");
    numbers.push_back(static_cast<std::uint32_t>(rank));
  }
  const topology::Topology topology =
      scenario::prepare(scenario, shipped_catalogue(), {true, false, true}).topology;
  return report::to_json(
      report::find_members(report::result_from_json(result, "result"), topology, numbers, links));
}

std::string text(const std::string& result, int columns) {
  report::TerminalOptions options;
  options.columns = columns;
  return report::to_terminal(report::result_from_json(result, "result"), options);
}

std::string csv(const std::string& result) {
  return report::summary_csv(report::result_from_json(result, "result"));
}

// `what_if`: that of topsim.explain/1, or empty.
std::string html(const Kept& kept, const std::string& result, const std::string& what_if) {
  const py::gil_scoped_release release;
  report::require_page();
  return report::to_html(report::result_from_json(result, "result"), &kept.timeline, &kept.picture, what_if);
}

// Returns (explain JSON, text). `factor` 0: without further simulations.
py::tuple explain(const scenario::Scenario& scenario, const std::string& result, double factor,
                  const py::object& on_progress) {
  const report::Result read = report::result_from_json(result, "result");
  report::require_step(read, read.name);
  std::optional<study::WhatIfs> what_ifs;
  if (factor > 0) {
    what_ifs = interruptible(on_progress, [&](executor::Progress& progress) {
      return study::what_if_faster(scenario, shipped_catalogue(), factor, &progress);
    });
  }
  constexpr int kColumns = 100;
  return py::make_tuple(study::explain_json(read, what_ifs), study::explain_text(read, what_ifs, kColumns));
}
}  // namespace

void bind_run(py::module_& module) {
  py::class_<Kept, std::shared_ptr<Kept>>(module, "Timeline")
      .def("slices", [](const Kept& kept) { return slice_columns(kept.timeline); })
      .def("idle", [](const Kept& kept) { return idle_columns(kept.timeline); })
      .def("links", [](const Kept& kept) { return link_sample_columns(kept.timeline); })
      .def("write_trace",
           [](const Kept& kept, const std::string& file) {
             const py::gil_scoped_release release;
             report::write_trace(file, kept.timeline);
           })
      .def("html", &html, py::arg("result"), py::arg("what_if"));
  module.def("run", &run, py::arg("scenario"), py::arg("fold"), py::arg("timeline"), py::arg("allow_oom"),
             py::arg("on_progress"));
  module.def("load_result", &load_result, py::arg("file"));
  module.def("find_members", &find_members, py::arg("result"), py::arg("scenario"), py::arg("ranks"),
             py::arg("links"));
  module.def("result_text", &text, py::arg("result"), py::arg("columns"));
  module.def("result_csv", &csv, py::arg("result"));
  module.def("explain", &explain, py::arg("scenario"), py::arg("result"), py::arg("factor"),
             py::arg("on_progress"));
}
}  // namespace topsim::python
