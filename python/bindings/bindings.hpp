// The pieces of topsim._core, one file each. No logic here: text and numbers in, JSON text and columns out;
// python/topsim builds on them. Everything bound is const after its construction, so threads may share
// it.
#pragma once

#include <pybind11/pybind11.h>

#include <string>
#include <vector>

#include "sim/scenario/read/shipped.hpp"

namespace topsim::python {
namespace py = pybind11;

void bind_errors(py::module_& module);
void bind_scenario(py::module_& module);
void bind_run(py::module_& module);
void bind_compare(py::module_& module);
void bind_bench(py::module_& module);
void bind_sweep(py::module_& module);
void bind_plan(py::module_& module);
void bind_validate(py::module_& module);
void bind_topology(py::module_& module);
void bind_names(py::module_& module);

using scenario::shipped_catalogue;
using scenario::shipped_library;
}  // namespace topsim::python
