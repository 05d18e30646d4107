#include <pybind11/stl.h>

#include <memory>

#include "python/bindings/bindings.hpp"
#include "python/bindings/interruptible.hpp"
#include "sim/report/html/page.hpp"
#include "sim/scenario/read/read.hpp"
#include "sim/scenario/read/shipped.hpp"
#include "sim/study/sweep_session.hpp"

namespace topsim::python {
namespace {
using scenario::Scenario;
using study::SweepRow;
using Assignments = std::vector<std::string>;

// Where the scenario comes from: a file, or text (then its files are looked up in `directory`).
struct Source {
  std::string path, text, name, directory;
  Assignments assignments;

  [[nodiscard]] Scenario read(std::span<const std::string> more) const {
    Assignments all = assignments;
    all.insert(all.end(), more.begin(), more.end());
    if (!path.empty()) return scenario::read_scenario(path, all, shipped_library());
    Scenario parsed = scenario::parse_scenario(text, name, all, shipped_library());
    parsed.name = name;
    parsed.topology.directory = directory;
    return parsed;
  }
};

using Session = study::SweepSession;

void run(Session& session, int jobs, const py::object& on_progress) {
  study::SweepProgress progress;
  const auto tick = [&] {
    if (!on_progress.is_none()) on_progress(progress.done.load(), progress.total.load(), 0.0, 0, 0);
  };
  interruptible(progress.stop, tick, [&] { session.run(jobs, progress); });
}

SweepRow compute(const Session& session, std::size_t point) {
  SweepRow row;
  executor::Progress progress;
  interruptible(
      progress.stop, [] {}, [&] { (void)session.compute(point, row, progress); });
  return row;
}

// (JSON, CSV, table)
std::tuple<std::string, std::string, std::string> texts(const Session& session) {
  const py::gil_scoped_release release;
  const study::SweepReport report = session.report();
  constexpr std::size_t kRows = 20, kColumns = 110;
  return {study::sweep_json(report), study::sweep_csv(report), study::sweep_table(report, kRows, kColumns)};
}

std::unique_ptr<Session> make(const std::string& path, const std::string& text, const std::string& name,
                              const std::string& directory, const Assignments& assignments,
                              const Assignments& settings, const std::vector<std::string>& paths,
                              const std::vector<Assignments>& points, const std::string& file, bool allow_oom,
                              const std::string& best, const std::vector<std::string>& pareto) {
  const py::gil_scoped_release release;
  const auto read = [source = Source{path, text, name, directory, assignments}](
                        std::span<const std::string> more) { return source.read(more); };
  return std::make_unique<Session>(
      study::SweepRequest{{paths, points}, settings, read, file, allow_oom, best, pareto});
}
}  // namespace

void bind_sweep(py::module_& module) {
  py::class_<SweepRow>(module, "SweepRow")
      .def(py::pickle(
          [](const SweepRow& r) {
            return py::make_tuple(r.point, r.values, r.key, r.ok, r.message, r.assumed_release, r.figures);
          },
          [](const py::tuple& t) {
            return SweepRow{t[0].cast<std::size_t>(),
                            t[1].cast<std::vector<std::string>>(),
                            t[2].cast<std::string>(),
                            t[3].cast<bool>(),
                            t[4].cast<std::string>(),
                            t[5].cast<std::string>(),
                            t[6].cast<std::vector<std::optional<double>>>()};
          }))
      .def(
          "at",
          [](SweepRow row, std::size_t point) {
            row.point = point;
            return row;
          },
          py::arg("point"))
      .def_readonly("point", &SweepRow::point)
      .def_readonly("key", &SweepRow::key);
  const py::call_guard<py::gil_scoped_release> released;
  py::class_<Session>(module, "Sweep")
      .def(py::init(&make), py::arg("path"), py::arg("text"), py::arg("name"), py::arg("directory"),
           py::arg("assignments"), py::arg("settings"), py::arg("paths"), py::arg("points"), py::arg("file"),
           py::arg("allow_oom"), py::arg("best"), py::arg("pareto"))
      .def("run", &run, py::arg("jobs"), py::arg("on_progress"))
      .def("missing", &Session::claim_missing, released)
      .def("key", &Session::key, py::arg("point"), released)
      .def("compute", &compute, py::arg("point"))
      .def("add", &Session::add, py::arg("row"), released)
      .def("texts", &texts);
  module.def("sweep_html", &report::sweep_html, py::arg("json"), py::arg("name"));
}
}  // namespace topsim::python
