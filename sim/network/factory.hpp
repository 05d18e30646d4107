// What one network model has that another has not: the table that everything else asks. Also feeds
// `--network`, `topsim list networks`, --help and the schema.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sim/network/network.hpp"

namespace topsim::network {

// For what is meant for one model alone; else ask what a model can do.
enum class ModelKind : std::uint8_t { analytic, flow, packet, simgrid };
inline constexpr ModelKind kDefaultModel = ModelKind::flow;

// Nothing has a default, so that the compiler warns of whatever a new row leaves out.
struct Model {
  ModelKind kind;
  std::string_view name;      // as scenarios, options and results write it
  std::string_view summary;   // one line
  std::string_view defaults;  // its defaults, one line
  // From capacities in bytes/s by LinkIndex. Null for models that need more than links (packet: the topology
  // and its routes) and have a constructor of their own (executor/make_network.cpp).
  std::unique_ptr<Network> (*make)(std::span<const double> capacities);
  bool (*is_installed)();  // null: always
  bool shares_links;       // false: every transfer has its links to itself
  bool fluid_nvlink;       // what stays on NVLink shares it by max-min fairness, step by step too
  bool packets;            // every packet of every switch, as network.packet says
  bool calibrated;         // pipelined flows that meet can lose what packets lose (network.contention)
  bool messages_only;      // collectives go as messages: step by step unless plain, then hop by hop
  bool plain_messages;     // the model supports only weight 1
  bool quick;              // a run of some million events takes seconds: findings may run it again
};

[[nodiscard]] std::span<const Model> models();
[[nodiscard]] std::vector<std::string> model_names();
[[nodiscard]] const Model& traits(ModelKind kind);
[[nodiscard]] std::string_view name_of(ModelKind kind);
// Throws ConfigError with the closest known name.
[[nodiscard]] const Model& find_model(std::string_view name);
// REQUIRES: the model makes itself from capacities.
[[nodiscard]] std::unique_ptr<Network> make_network(std::string_view name,
                                                    std::span<const double> capacities);
}  // namespace topsim::network
