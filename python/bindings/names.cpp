// What `topsim list` lists, as names.
#include <pybind11/stl.h>

#include "python/bindings/bindings.hpp"
#include "sim/base/error.hpp"
#include "sim/base/suggest.hpp"
#include "sim/network/factory.hpp"
#include "sim/scenario/bench/bench_text.hpp"
#include "topology/catalogue/list.hpp"
#include "workloads/framework.hpp"

namespace topsim::python {
namespace {
using Names = std::vector<std::string>;

template <class Rows, class Name>
Names names_in(const Rows& rows, const Name& name) {
  Names names;
  for (const auto& row : rows) names.emplace_back(name(row));
  return names;
}

const auto id_of = [](const topology::ListRow& row) { return row.id; };
struct List {
  const char* name;
  Names (*names)();
};
constexpr List kLists[] = {
    {"scenarios", [] { return shipped_library().names(""); }},
    {"hardware", [] { return names_in(topology::list_hardware(shipped_catalogue()), id_of); }},
    {"models", [] { return shipped_library().names("models"); }},
    {"frameworks", [] { return names_in(workloads::frameworks(), workloads::full_name); }},
    {"fabrics", [] { return names_in(topology::list_fabrics(shipped_catalogue()), id_of); }},
    {"networks",
     [] { return names_in(network::models(), [](const network::Model& model) { return model.name; }); }},
    {"collectives", [] {
       return names_in(scenario::bench_collectives(),
                       [](const scenario::BenchCollective& each) { return each.name; });
     }}};

Names names(const std::string& kind) {
  Names known;
  for (const List& list : kLists) {
    if (kind == list.name) return list.names();
    known.emplace_back(list.name);
  }
  throw ConfigError("nothing is listed under \"" + kind + '"', "lists: " + join(known));
}
}  // namespace

void bind_names(py::module_& module) {
  module.def("names", &names, py::arg("kind"));
}
}  // namespace topsim::python
