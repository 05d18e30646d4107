#include "topology/topology.hpp"

#include <pybind11/stl.h>

#include "python/bindings/bindings.hpp"
#include "python/bindings/columns.hpp"
#include "sim/report/cost.hpp"
#include "sim/scenario/cluster/load_topology.hpp"
#include "sim/scenario/read/read.hpp"
#include "sim/study/ensemble.hpp"
#include "topology/build.hpp"
#include "topology/draw/draw.hpp"
#include "topology/export/export.hpp"
#include "topology/import/native.hpp"
#include "topology/link_name.hpp"
#include "topology/validate/validate.hpp"

namespace topsim::python {
namespace {
using topology::Topology;

Topology load_topology(const std::string& what, const std::vector<std::string>& assignments) {
  const py::gil_scoped_release release;
  return scenario::load_topology(what, shipped_catalogue(), [&] {
    return scenario::read_cluster(what, assignments, shipped_library());
  });
}

Topology of_scenario(const scenario::Scenario& scenario) {
  const py::gil_scoped_release release;
  return scenario::build_topology(scenario, shipped_catalogue());
}

// Reads what to_json() wrote.
Topology parse_topology(const std::string& text) {
  const py::gil_scoped_release release;
  const config::Document document = config::Document::parse(text, "topology");
  return topology::build(topology::read_topology(document), shipped_catalogue());
}

std::vector<std::string> device_names(const Topology& t) {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < t.devices().size(); ++i) names.push_back(t.name(DeviceId(i)));
  return names;
}

py::dict device_columns(const Topology& t) {
  py::list names, kinds, models, nodes, counts;
  for (std::size_t i = 0; i < t.devices().size(); ++i) {
    const topology::Device& device = t.devices()[i];
    names.append(t.name(DeviceId(i)));
    kinds.append(std::string(name_of(device.kind)));
    models.append(t.models()[device.model]);
    if (device.node == DeviceId::kNone) {
      nodes.append(py::none());
    } else {
      nodes.append(device.node);
    }
    counts.append(device.count);
  }
  py::dict columns;
  columns["name"] = names;
  columns["kind"] = kinds;
  columns["model"] = models;
  columns["node"] = nodes;
  columns["count"] = counts;
  return columns;
}

py::dict links(const Topology& t) {
  const std::vector<std::string> names = device_names(t);
  using topology::Link;
  py::list kinds;
  py::list types;
  for (const Link& link : t.links()) {
    kinds.append(std::string(name_of(link.kind)));
    types.append(name_with_speed(t, link));
  }
  py::dict columns;
  columns["from"] = column_of_words(
      t.links(), [](const Link& link) { return static_cast<std::uint32_t>(link.from.index()); }, names);
  columns["to"] = column_of_words(
      t.links(), [](const Link& link) { return static_cast<std::uint32_t>(link.to.index()); }, names);
  columns["kind"] = kinds;
  columns["type"] = types;
  columns["count"] = column<std::uint32_t>(t.links(), [](const Link& link) { return link.count; });
  columns["capacity"] = column<double>(t.links(), [](const Link& link) { return link.capacity.value(); });
  columns["line_rate"] = column<double>(t.links(), [](const Link& link) { return link.line_rate.value(); });
  columns["latency"] = column<double>(t.links(), [](const Link& link) { return seconds(link.latency); });
  return columns;
}

py::list check(const Topology& t) {
  py::list findings;
  for (const topology::Finding& finding : topology::check(t, shipped_catalogue())) {
    py::dict dict;
    dict["severity"] = std::string(name_of(finding.severity));
    dict["message"] = finding.message;
    dict["where"] = finding.where;
    findings.append(dict);
  }
  return findings;
}

// Returns (bill JSON, CSV, table). Quotes and running costs are the scenario's; a node of the catalogue or a
// file of devices, `name`, has none.
py::tuple bill(const Topology& t, const scenario::Scenario* given, const std::string& name) {
  constexpr int kColumns = 110;
  const topology::Catalogue catalogue = shipped_catalogue();
  scenario::Scenario scenario = given != nullptr ? *given : scenario::Scenario{};
  if (scenario.topology.node.use.empty() && !t.has_explicit_names()) scenario.topology.node.use = name;
  report::check_quotes(scenario.cost, catalogue);
  const report::CostModel cost = study::cost_model(scenario, t, catalogue);
  return py::make_tuple(report::bom_json(cost), report::bom_csv(cost), report::bom_table(cost, kColumns));
}

std::string svg(const Topology& t, std::uint32_t most_nodes, std::uint32_t most_switches) {
  return topology::to_svg(t, {most_nodes, most_switches});
}
}  // namespace

void bind_topology(py::module_& module) {
  py::class_<Topology, std::shared_ptr<Topology>>(module, "Topology")
      .def_static("load", &load_topology, py::arg("what"), py::arg("assignments"))
      .def_static("of_scenario", &of_scenario, py::arg("scenario"))
      .def_static("parse", &parse_topology, py::arg("text"))
      .def_property_readonly("nodes", &Topology::nodes)
      .def_property_readonly("accelerators", [](const Topology& t) { return t.accelerators().size(); })
      .def_property_readonly("fabric_kind", [](const Topology& t) { return name_of(t.fabric_kind); })
      .def("devices", &device_columns)
      .def("links", &links)
      .def("check", &check)
      .def("bill", &bill, py::arg("scenario").none(true), py::arg("name"))
      .def("to_json", [](const Topology& t) { return topology::to_json(t); })
      .def("to_svg", &svg, py::arg("most_nodes"), py::arg("most_switches"))
      .def("to_dot", [](const Topology& t) { return topology::to_dot(t); })
      .def("to_nccl_xml",
           [](const Topology& t, std::uint32_t node) { return topology::to_nccl_xml(t, node); })
      .def("to_tree", [](const Topology& t) { return topology::to_tree(t); });
}
}  // namespace topsim::python
