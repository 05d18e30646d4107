#include "sim/scenario/run/facts.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "sim/scenario/read/read.hpp"
#include "sim/scenario/run/assumptions.hpp"
#include "sim/scenario/run/left_open.hpp"
#include "topology/build.hpp"
#include "topology/catalogue/node_recipe.hpp"
#include "workloads/model.hpp"
#include "workloads/plan.hpp"
#include "workloads/training_step.hpp"

namespace topsim::scenario {
namespace {
constexpr const char* kDot = " \u00b7 ";

// "64 x H100 (8 nodes) over InfiniBand NDR"
std::string cluster_text(const topology::Topology& topology, const topology::Catalogue& catalogue) {
  std::vector<std::size_t> by_model(topology.models().size());
  for (const DeviceId device : topology.accelerators()) ++by_model[topology.device(device).model];
  std::map<std::string, std::size_t> counts;
  for (std::size_t model = 0; model < by_model.size(); ++model)
    if (by_model[model] > 0) counts[topology.models()[model]] = by_model[model];
  std::string text;
  for (const auto& [model, count] : counts) {
    const topology::Accelerator& accelerator = catalogue.accelerator(model);
    const bool vendor_first = accelerator.name.rfind(accelerator.vendor + ' ', 0) == 0;
    text += (text.empty() ? "" : " + ") + std::to_string(count) + " x " +
            accelerator.name.substr(vendor_first ? accelerator.vendor.size() + 1 : 0);
  }
  text += " (" + std::to_string(topology.nodes()) + (topology.nodes() == 1 ? " node)" : " nodes)");
  for (const LinkId cable : topology.cables())
    if (topology.device(topology.link(cable).to).kind == topology::DeviceKind::fabric_switch)
      return text + " over " + topology.type_of(cable).label;
  for (const LinkId cable : topology.cables()) {  // nodes joined without a switch: NIC to NIC, a torus
    const std::uint32_t from = topology.device(topology.link(cable).from).node;
    const std::uint32_t to = topology.device(topology.link(cable).to).node;
    if (from != to && from != DeviceId::kNone && to != DeviceId::kNone)
      return text + " over " + topology.type_of(cable).label;
  }
  return text;
}

// A model without a name: "a model of 1.34 B parameters".
std::string model_text(const workloads::ModelSpec& model) {
  if (!model.name.empty()) return model.name;
  const double parameters = workloads::total_parameters(model);
  return parameters < 0.9995e9 ? fmt::format("a model of {:.3g} M parameters", parameters * 1e-6)
                               : fmt::format("a model of {:.{}f} B parameters", parameters * 1e-9,
                                             parameters < 9.995e9   ? 2
                                             : parameters < 99.95e9 ? 1
                                                                    : 0);
}

std::string plan_text(const workloads::Plan& plan, const workloads::WorkloadSpec& workload) {
  std::string text;
  const std::pair<const char*, int> dimensions[] = {
      {"TP", plan.tp}, {"PP", plan.pp}, {"CP", plan.cp}, {"EP", plan.ep}, {"DP", plan.dp}};
  for (const auto& [name, size] : dimensions) {
    if (size > 1) text += kDot + std::string(name) + ' ' + std::to_string(size);
  }
  const std::string batch = std::to_string(plan.global_batch), sequence = std::to_string(plan.sequence);
  if (plan.task == workloads::Task::decode)
    return text + kDot + "decodes 1 token for " + batch + " requests of " + sequence;
  text += fmt::format("{}{}{} x {} tokens", kDot, plan.task == workloads::Task::prefill ? "prefills " : "",
                      batch, sequence);
  // A third more work, possibly by a release's default.
  if (plan.recompute.kind == workloads::RecomputeKind::full && !plan.inference()) {
    text += fmt::format("{}full recompute", kDot);
    if (!workload.plan.recompute) text += fmt::format(", the default of {}", workload.framework);
  }
  return text;
}
}  // namespace

AcceleratorWords words_of(const topology::Topology& topology, const topology::Catalogue& catalogue) {
  std::set<std::size_t> models;
  for (const DeviceId device : topology.accelerators()) models.insert(topology.device(device).model);
  std::optional<AcceleratorWords> words;
  for (const std::size_t model : models) {
    const topology::Accelerator& accelerator = catalogue.accelerator(topology.models()[model]);
    if (!words) words = {accelerator.called, accelerator.library};
    if (words->called != accelerator.called) words->called = AcceleratorWords{}.called;
    if (words->library != accelerator.library) words->library.clear();
  }
  return words.value_or(AcceleratorWords{});
}

report::ScenarioFacts facts_of(const Scenario& scenario, const topology::Topology& topology,
                               const topology::Catalogue& catalogue) {
  report::ScenarioFacts facts;
  facts.name = scenario.name;
  facts.scenario = standalone_json(scenario);
  facts.network_model = scenario.network.model;
  facts.seed = scenario.run.seed;
  facts.headline = cluster_text(topology, catalogue);
  AcceleratorWords words = words_of(topology, catalogue);
  facts.called = std::move(words.called), facts.library = std::move(words.library);
  const workloads::WorkloadSpec& workload = scenario.workload;
  if (workload.trace) {
    facts.trace = true;
    facts.headline += kDot + workload.trace->format + " trace " + workload.trace->path;
    return facts;
  }
  facts.stage_times = !workload.compute.stage_times.forward.empty();
  workloads::WorkloadSpec complete = workload;
  complete.model = workloads::complete_model(workload);
  complete.host = workloads::host_facts(topology, catalogue);
  const workloads::Plan plan =
      workloads::resolve(complete, static_cast<std::uint32_t>(topology.accelerators().size()));
  workloads::WorkloadSpec given = complete;
  given.model.prediction_layers = workload.model.prediction_layers;
  facts.left_open = left_open_json(given, plan);
  const std::uint32_t model = topology.device(topology.accelerators().front()).model;
  facts.compute_units = catalogue.accelerator(topology.models()[model]).compute_units;
  facts.sm_margin = workload.compute.sm_margin;
  say_domains(scenario, catalogue, facts);
  say_gates(scenario, facts);
  say_assumptions(complete, topology, catalogue, plan, facts);
  if (const int modules = predictions_of(complete.model); modules > 0 && !workload.model.prediction_layers)
    facts.assumed.push_back({fmt::format("multi-token prediction by {} module{}, as the published model was "
                                         "pretrained (prediction_layers)",
                                         modules, modules > 1 ? "s" : ""),
                             "workload.model.prediction_layers"});
  facts.headline += kDot + model_text(complete.model) + plan_text(plan, workload);
  facts.equal_bubble_known = !plan.inference() && traits(plan.schedule).equal_bubble_known;
  facts.pipeline_stages = static_cast<std::uint32_t>(plan.pp);
  facts.virtual_stages = static_cast<std::uint32_t>(plan.virtual_stages);
  facts.inference = plan.inference();
  facts.takes_virtual_stages =
      plan.schedule == workloads::Schedule::one_f_one_b || plan.schedule == workloads::Schedule::interleaved;
  facts.micro_batches = static_cast<std::uint32_t>(plan.micro_batches);
  return facts;
}
}  // namespace topsim::scenario
