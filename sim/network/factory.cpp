#include "sim/network/factory.hpp"

#include <array>

#include "sim/base/error.hpp"
#include "sim/base/suggest.hpp"
#include "sim/network/analytic.hpp"
#include "sim/network/flow.hpp"
#include "sim/network/simgrid_network.hpp"

namespace topsim::network {
namespace {

template <class T>
std::unique_ptr<Network> make(std::span<const double> capacities) {
  return std::make_unique<T>(capacities);
}

// In the order of the enum.
constexpr std::array<Model, 4> kModels{{
    {.kind = ModelKind::analytic,
     .name = "analytic",
     .summary = "no sharing: every transfer has its links to itself; a lower bound, for plan search",
     .defaults = "no parameters",
     .make = make<AnalyticNetwork>,
     .is_installed = nullptr,
     .shares_links = false,
     .fluid_nvlink = false,
     .packets = false,
     .calibrated = false,
     .messages_only = false,
     .plain_messages = false,
     .quick = true},
    {.kind = ModelKind::flow,
     .name = "flow",
     .summary = "concurrent transfers share links by weighted max-min fairness",
     .defaults = "no parameters",
     .make = make<FlowNetwork>,
     .is_installed = nullptr,
     .shares_links = true,
     .fluid_nvlink = true,
     .packets = false,
     .calibrated = true,
     .messages_only = false,
     .plain_messages = false,
     .quick = true},
    {.kind = ModelKind::packet,
     .name = "packet",
     .summary = "every packet of every queue pair: PFC, credits, ECN and congestion control, hash collisions",
     .defaults = "network.packet: MTU 4096, the fabric's own flow control",
     .make = nullptr,
     .is_installed = nullptr,
     .shares_links = true,
     .fluid_nvlink = true,
     .packets = true,
     .calibrated = false,
     .messages_only = true,
     .plain_messages = false,
     .quick = false},
    {.kind = ModelKind::simgrid,
     .name = "simgrid",
     .summary = "SimGrid 3.32 in a child process: collectives as messages, single paths, equal weights",
     .defaults = "no parameters",
     .make = make<SimGridNetwork>,
     .is_installed = simgrid_is_installed,
     .shares_links = true,
     .fluid_nvlink = false,
     .packets = false,
     .calibrated = false,
     .messages_only = true,
     .plain_messages = true,
     .quick = false},
}};

constexpr bool in_order() {
  for (std::size_t i = 0; i < kModels.size(); ++i)
    if (static_cast<std::size_t>(kModels[i].kind) != i) return false;
  return true;
}
static_assert(in_order(), "traits() finds a model by its place");
}  // namespace

std::span<const Model> models() {
  return kModels;
}

std::vector<std::string> model_names() {
  std::vector<std::string> names;
  for (const Model& model : kModels) names.emplace_back(model.name);
  return names;
}

const Model& traits(ModelKind kind) {
  return kModels[static_cast<std::size_t>(kind)];
}

std::string_view name_of(ModelKind kind) {
  return traits(kind).name;
}

const Model& find_model(std::string_view name) {
  for (const Model& model : kModels)
    if (model.name == name) return model;
  const std::vector<std::string> names = model_names();
  const auto near = closest(name, names);
  throw ConfigError("unknown network model \"" + std::string(name) + "\"",
                    (near ? "did you mean \"" + *near + "\"? " : "") + ("known: " + join(names)));
}

std::unique_ptr<Network> make_network(std::string_view name, std::span<const double> capacities) {
  const Model& model = find_model(name);
  if (model.make == nullptr)
    throw InternalError("network model " + std::string(name) + " needs more than capacities");
  return model.make(capacities);
}
}  // namespace topsim::network
