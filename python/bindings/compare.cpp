#include "sim/report/compare.hpp"

#include <pybind11/stl.h>

#include "python/bindings/bindings.hpp"
#include "python/bindings/interruptible.hpp"
#include "sim/report/compare_verdict.hpp"
#include "sim/report/html/compare_page.hpp"
#include "sim/report/json.hpp"
#include "sim/scenario/cluster/load_topology.hpp"
#include "sim/study/ensemble.hpp"

namespace topsim::python {
namespace {
using report::Candidate;

// Returns (compare JSON, table, Markdown memo, names of the candidates, result.json of each, bill of
// materials of each).
py::tuple texts(const std::vector<Candidate>& candidates, bool all_rows, bool single_runs) {
  report::Comparison comparison = report::compare(candidates);
  if (single_runs) report::say_single_runs(comparison);
  const report::ComparePage page = report::compare_page(comparison, candidates);
  constexpr int kColumns = 100;
  return py::make_tuple(page.comparison, report::compare_table(comparison, all_rows, kColumns),
                        report::compare_markdown(comparison, candidates, all_rows), page.names, page.results,
                        page.bills);
}

// Compares results without simulating; costs are computed from the scenarios that they contain.
py::tuple compare_results(const std::vector<std::string>& results,
                          const std::vector<scenario::Scenario>& scenarios, bool cost, bool all_rows) {
  std::vector<Candidate> candidates;
  {
    const py::gil_scoped_release release;
    const topology::Catalogue catalogue = shipped_catalogue();
    for (std::size_t i = 0; i < results.size(); ++i) {
      report::Result result = report::result_from_json(results[i], "result");
      report::require_step(result, result.name);
      const Duration step = result.step;
      candidates.push_back({std::move(result), {step}, {}});
      if (!cost) continue;
      const topology::Topology topology = scenario::build_topology(scenarios[i], catalogue);
      candidates.back().cost = study::cost_model(scenarios[i], topology, catalogue);
    }
  }
  return texts(candidates, all_rows, true);
}

py::tuple compare_scenarios(const std::vector<scenario::Scenario>& scenarios, std::size_t samples, int jobs,
                            bool allow_oom, bool cost, bool all_rows, const py::object& on_progress) {
  study::EnsembleOptions options;
  options.samples = samples;
  options.jobs = jobs;
  options.allow_oom = allow_oom;
  std::vector<Candidate> candidates = interruptible(on_progress, [&](executor::Progress& progress) {
    return study::run_ensembles(scenarios, shipped_catalogue(), options, &progress);
  });
  if (!cost) {
    for (Candidate& candidate : candidates) candidate.cost.reset();
  }
  return texts(candidates, all_rows, false);
}
}  // namespace

void bind_compare(py::module_& module) {
  module.def("compare_results", &compare_results, py::arg("results"), py::arg("scenarios"), py::arg("cost"),
             py::arg("all_rows"));
  module.def("compare_scenarios", &compare_scenarios, py::arg("scenarios"), py::arg("samples"),
             py::arg("jobs"), py::arg("allow_oom"), py::arg("cost"), py::arg("all_rows"),
             py::arg("on_progress"));
  module.def(
      "compare_html",
      [](std::vector<std::string> names, std::string comparison, std::vector<std::string> results,
         std::vector<std::string> bills) {
        return report::compare_html(
            {std::move(names), std::move(comparison), std::move(results), std::move(bills)});
      },
      py::arg("names"), py::arg("comparison"), py::arg("results"), py::arg("bills"));
}
}  // namespace topsim::python
