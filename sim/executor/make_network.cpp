#include "sim/executor/make_network.hpp"

#include "sim/network/factory.hpp"

namespace topsim::executor {

MadeNetwork make_network(std::string_view model, std::span<const double> capacities,
                         const topology::Router& router, const network::packet::PacketSpec& spec) {
  MadeNetwork made;
  if (network::find_model(model).kind == network::ModelKind::packet) {
    auto packets = std::make_unique<network::packet::PacketNetwork>(router, spec);
    made.packets = packets.get();
    made.network = std::move(packets);
  } else {
    made.network = network::make_network(model, capacities);
  }
  return made;
}
}  // namespace topsim::executor
