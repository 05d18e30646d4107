// The one box that an administrator's tool describes, as node 0.
#pragma once

#include <string>

#include "topology/spec.hpp"

namespace topsim::topology {

[[nodiscard]] inline DeviceSpec device_of_box(const std::string& name, const char* kind,
                                              const std::string& model) {
  DeviceSpec device;
  device.name = "node0/" + name;
  device.kind = kind;
  device.model = model;
  device.node = 0;
  return device;
}
}  // namespace topsim::topology
