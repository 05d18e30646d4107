// The keys of the `topology` section; table() is found by the configuration reader.
#pragma once

#include "sim/config/object.hpp"
#include "topology/spec.hpp"

namespace topsim::topology {
constexpr int kMostNodes = 1'000'000;  // of a recipe

const config::Object<LinkChoice>& table(config::Type<LinkChoice>);
const config::Object<SwitchChoice>& table(config::Type<SwitchChoice>);
const config::Object<NodeChoice>& table(config::Type<NodeChoice>);
const config::Object<FabricSpec>& table(config::Type<FabricSpec>);
const config::Object<DeviceSpec>& table(config::Type<DeviceSpec>);
const config::Object<LinkSpec>& table(config::Type<LinkSpec>);
const config::Object<LinkTypeSpec>& table(config::Type<LinkTypeSpec>);
const config::Object<ModelSpec>& table(config::Type<ModelSpec>);
const config::Object<TopologySpec>& table(config::Type<TopologySpec>);
config::CodecPtr<Placement> codec(config::Type<Placement>);
}  // namespace topsim::topology
