#include <pybind11/stl.h>

#include "python/bindings/bindings.hpp"
#include "python/bindings/interruptible.hpp"
#include "sim/base/error.hpp"
#include "sim/scenario/bench/bench_text.hpp"

namespace topsim::python {
namespace {

// Returns (bench JSON, nccl-tests' table). `scenario` is a copy, in which algorithm, protocol and channels
// are forced.
py::tuple bench(const std::string& collective, scenario::Scenario scenario, const std::string& first,
                const std::string& last, double factor, const std::string& algorithm,
                const std::string& protocol, int channels) {
  const scenario::BenchCollective& what = scenario::bench_collective(collective);
  const scenario::BenchSizes sizes{scenario::bench_size(first), scenario::bench_size(last), factor};
  if (sizes.first > sizes.last) throw ConfigError("first is more than last", "first=\"8\", last=\"8G\"");
  scenario::force(scenario, what, algorithm, protocol, channels);
  const auto rows = interruptible(py::none(), [&](executor::Progress& progress) {
    return scenario::bench(scenario, shipped_catalogue(), what.kind, sizes, &progress).rows;
  });
  return py::make_tuple(scenario::bench_json(rows, true, scenario::faults_left_out(scenario)),
                        scenario::bench_table(what, rows));
}
}  // namespace

void bind_bench(py::module_& module) {
  module.def("bench", &bench, py::arg("collective"), py::arg("scenario"), py::arg("first"), py::arg("last"),
             py::arg("factor"), py::arg("algorithm"), py::arg("protocol"), py::arg("channels"));
}
}  // namespace topsim::python
