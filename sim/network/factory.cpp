#include "sim/network/factory.hpp"

#include <array>
#include <vector>

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

constexpr std::array<Model, 4> kModels{{
    {"analytic", "no sharing: every transfer has its links to itself; a lower bound, for plan search",
     "no parameters", false, make<AnalyticNetwork>},
    {"flow", "concurrent transfers share links by weighted max-min fairness", "no parameters", true,
     make<FlowNetwork>},
    {"packet", "every packet of every queue pair: PFC, credits, ECN and congestion control, hash collisions",
     "network.packet: MTU 4096, the fabric's own flow control", false, nullptr, true},
    {"simgrid", "SimGrid 3.32 in a child process: collectives as messages, single paths, equal weights",
     "no parameters", false, make<SimGridNetwork>, true, true},
}};
}  // namespace

std::span<const Model> models() {
  return kModels;
}

const Model& find_model(std::string_view name) {
  std::vector<std::string> names;
  for (const Model& model : kModels) {
    if (model.name == name) return model;
    names.emplace_back(model.name);
  }
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
