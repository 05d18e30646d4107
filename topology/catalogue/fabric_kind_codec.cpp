#include "topology/catalogue/fabric_kind_codec.hpp"

namespace topsim::topology {
namespace {
config::CodecPtr<FabricKind> fabric_kinds(bool only_of_nodes) {
  std::vector<config::detail::NamesCodec<FabricKind>::Entry> entries;
  for (const FabricTraits& each : kFabricTraits)
    if (each.of_nodes || !only_of_nodes) entries.push_back(config::named(each.kind));
  return config::names<FabricKind>(std::move(entries));
}
}  // namespace

config::CodecPtr<FabricKind> codec(config::Type<FabricKind>) {
  return fabric_kinds(false);
}
config::CodecPtr<FabricKind> kinds_of_recipes() {
  return fabric_kinds(true);
}
}  // namespace topsim::topology
