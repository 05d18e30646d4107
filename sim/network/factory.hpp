// The network models by name: feeds `--network`, `topsim list networks`, --help and the schema.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "sim/network/network.hpp"

namespace topsim::network {

struct Model {
  std::string_view name;
  std::string_view summary;   // one line
  std::string_view defaults;  // its defaults, one line
  bool is_default = false;
  // From capacities in bytes/s by LinkIndex. Null for models that need more than links (packet: the topology
  // and its routes) and have a constructor of their own.
  std::unique_ptr<Network> (*make)(std::span<const double> capacities) = nullptr;
  bool messages_only = false;   // collectives go as messages: step by step unless plain, then hop by hop
  bool plain_messages = false;  // the model supports only weight 1
};

[[nodiscard]] std::span<const Model> models();
// Throws ConfigError with the closest known name.
[[nodiscard]] const Model& find_model(std::string_view name);
// REQUIRES: the model makes itself from capacities.
[[nodiscard]] std::unique_ptr<Network> make_network(std::string_view name,
                                                    std::span<const double> capacities);
}  // namespace topsim::network
