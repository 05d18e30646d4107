#include <pybind11/stl.h>

#include "python/bindings/bindings.hpp"
#include "python/bindings/interruptible.hpp"
#include "sim/study/plan_gpus.hpp"
#include "sim/study/plan_text.hpp"

namespace topsim::python {
namespace {

// Returns (plan JSON, table, the scenario with the best plan as JSON). `scenario` is a copy, which `gpus`
// changes.
std::tuple<std::string, std::string, std::string> plan(scenario::Scenario scenario, int gpus, std::size_t top,
                                                       const std::vector<std::string>& keep,
                                                       const std::vector<std::string>& schedules, int jobs,
                                                       bool exhaustive, const py::object& on_progress) {
  const topology::Catalogue catalogue = shipped_catalogue();
  if (gpus > 0) study::use_accelerators(scenario, catalogue, gpus);
  study::PlanOptions options;
  options.top = top;
  options.jobs = jobs;
  options.exhaustive = exhaustive;
  options.space.keep = keep;
  if (!schedules.empty()) options.space.schedules.clear();
  for (const std::string& name : schedules) options.space.schedules.push_back(study::schedule_named(name));
  study::PlanProgress progress;
  const auto tick = [&] {
    if (!on_progress.is_none()) on_progress(progress.bounded.load(), progress.choices.load(), 0.0, 0, 0);
  };
  const study::PlanReport report = interruptible(
      progress.stop, tick, [&] { return study::search_plans(scenario, catalogue, options, progress); });
  constexpr std::size_t kColumns = 110;
  return {study::plan_json(report), study::plan_table(report, kColumns), study::best_plan_json(report)};
}
}  // namespace

void bind_plan(py::module_& module) {
  const auto dimensions = study::plan_dimensions();
  module.attr("plan_dimensions") = std::vector<std::string>(dimensions.begin(), dimensions.end());
  module.def("plan", &plan, py::arg("scenario"), py::arg("gpus"), py::arg("top"), py::arg("keep"),
             py::arg("schedules"), py::arg("jobs"), py::arg("exhaustive"), py::arg("on_progress"));
}
}  // namespace topsim::python
