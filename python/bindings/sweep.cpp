#include "sim/study/sweep.hpp"

#include <pybind11/stl.h>

#include <algorithm>
#include <memory>

#include "python/bindings/bindings.hpp"
#include "python/bindings/interruptible.hpp"
#include "sim/report/html/page.hpp"
#include "sim/scenario/read/read.hpp"
#include "sim/scenario/read/shipped.hpp"
#include "sim/study/sweep_choice.hpp"
#include "sim/study/sweep_figures.hpp"
#include "sim/study/sweep_text.hpp"

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

// A sweep with its store. Its points run here (run), or elsewhere (missing, add).
class Sweep {
 public:
  Sweep(Source source, study::SweepSpace space, const std::string& file, bool allow_oom)
      : source_(std::move(source)), space_(std::move(space)), catalogue_(shipped_catalogue()) {
    base_.read = [this](std::span<const std::string> more) { return source_.read(more); };
    base_.catalogue = &catalogue_;
    base_.inputs = study::inputs_digest(scenario::catalogue_directories());
    base_.allow_oom = allow_oom;
    study::check_values(space_, base_);
    const auto sets_dp = [](const std::string& each) { return each.rfind("workload.plan.dp=", 0) == 0; };
    if (std::none_of(source_.assignments.begin(), source_.assignments.end(), sets_dp))
      dp_follows_ = study::let_data_parallel_follow(space_, base_);
    store_ = std::make_unique<study::SweepStore>(file, space_, study::sweep_identity(space_, base_));
  }
  Sweep(const Sweep&) = delete;
  Sweep& operator=(const Sweep&) = delete;

  void run(int jobs, const py::object& on_progress) {
    study::SweepProgress progress;
    const auto tick = [&] {
      if (!on_progress.is_none()) on_progress(progress.done.load(), progress.total.load(), 0.0, 0, 0);
    };
    interruptible(progress.stop, tick, [&] { study::run_sweep(space_, base_, *store_, jobs, progress); });
  }

  // Points that are not stored yet; from now on the caller must run them.
  std::vector<std::size_t> missing() {
    const py::gil_scoped_release release;
    std::vector<std::size_t> points;
    for (std::size_t i = 0; i < space_.points.size(); ++i) {
      if (store_->claim(i, study::point_key(base_, space_.assignments(i)))) points.push_back(i);
    }
    return points;
  }

  [[nodiscard]] std::string key(std::size_t point) const {
    const py::gil_scoped_release release;
    return study::point_key(base_, space_.assignments(point));
  }

  [[nodiscard]] SweepRow compute(std::size_t point) {
    SweepRow row;
    row.point = point;
    row.values = space_.points.at(point);
    const auto assignments = space_.assignments(point);
    executor::Progress progress;
    interruptible(
        progress.stop, [] {}, [&] { (void)study::run_point(base_, assignments, row, progress); });
    return row;
  }

  void add(const SweepRow& row) {
    const py::gil_scoped_release release;
    store_->add(row);
  }

  // Returns (JSON, CSV, table); empty words stand for the defaults.
  [[nodiscard]] std::tuple<std::string, std::string, std::string> texts(
      const std::string& best, const std::vector<std::string>& pareto) const {
    const py::gil_scoped_release release;
    study::SweepReport report{
        source_.path.empty() ? source_.name : name_of_file(), space_, store_->rows(), 0, {}, true};
    report.assumed_releases = study::assumed_releases(space_, base_);
    report.complete = report.rows.size() == space_.points.size();
    report.by = best.empty() ? study::usual_figure(report.rows) : study::sweep_figure(best);
    for (const std::string& each : pareto) report.pareto_figures.push_back(study::sweep_figure(each));
    if (pareto.empty()) report.pareto_figures = study::usual_pareto_figures(report.rows);
    constexpr std::size_t kRows = 20, kColumns = 110;
    return {study::sweep_json(report), study::sweep_csv(report), study::sweep_table(report, kRows, kColumns)};
  }
  [[nodiscard]] bool dp_follows() const { return dp_follows_; }

 private:
  [[nodiscard]] std::string name_of_file() const {
    const std::size_t slash = source_.path.find_last_of('/');
    const std::string file = slash == std::string::npos ? source_.path : source_.path.substr(slash + 1);
    return file.substr(0, file.rfind(".json"));
  }

  Source source_;
  study::SweepSpace space_;
  topology::Catalogue catalogue_;
  study::SweepBase base_;
  std::unique_ptr<study::SweepStore> store_;
  bool dp_follows_ = false;
};

std::unique_ptr<Sweep> make(const std::string& path, const std::string& text, const std::string& name,
                            const std::string& directory, const Assignments& assignments,
                            const std::vector<std::string>& paths, const std::vector<Assignments>& points,
                            const std::string& file, bool allow_oom) {
  const py::gil_scoped_release release;
  return std::make_unique<Sweep>(Source{path, text, name, directory, assignments},
                                 study::SweepSpace{paths, points}, file, allow_oom);
}
}  // namespace

void bind_sweep(py::module_& module) {
  py::class_<SweepRow>(module, "SweepRow")
      .def(py::pickle(
          [](const SweepRow& r) {
            return py::make_tuple(r.point, r.values, r.key, r.ok, r.message, r.figures);
          },
          [](const py::tuple& t) {
            return SweepRow{t[0].cast<std::size_t>(), t[1].cast<std::vector<std::string>>(),
                            t[2].cast<std::string>(), t[3].cast<bool>(),
                            t[4].cast<std::string>(), t[5].cast<std::vector<std::optional<double>>>()};
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
  py::class_<Sweep>(module, "Sweep")
      .def(py::init(&make), py::arg("path"), py::arg("text"), py::arg("name"), py::arg("directory"),
           py::arg("assignments"), py::arg("paths"), py::arg("points"), py::arg("file"), py::arg("allow_oom"))
      .def("run", &Sweep::run, py::arg("jobs"), py::arg("on_progress"))
      .def("missing", &Sweep::missing)
      .def("key", &Sweep::key, py::arg("point"))
      .def("compute", &Sweep::compute, py::arg("point"))
      .def("add", &Sweep::add, py::arg("row"))
      .def("texts", &Sweep::texts, py::arg("best"), py::arg("pareto"))
      .def_property_readonly("dp_follows", &Sweep::dp_follows);
  module.def(
      "check_figure", [](const std::string& name) { (void)study::sweep_figure(name); }, py::arg("name"));
  module.def("sweep_html", &report::sweep_html, py::arg("json"), py::arg("name"));
}
}  // namespace topsim::python
