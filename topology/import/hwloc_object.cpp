#include "topology/import/hwloc_object.hpp"

#include <algorithm>

namespace topsim::topology::hwloc {
using nccl::attribute;

std::string type_of(const Element& object) {
  return attribute(object, "type");
}

bool is_socket(const Element& object) {
  return type_of(object) == "Package" || type_of(object) == "Socket";
}

bool has_osdev(const Element& object, OsDevice wanted) {
  return std::any_of(object.begin(), object.end(), [&](const auto& child) {
    if (child.first != "object" || type_of(child.second) != "OSDev") return false;
    const double type = nccl::number(child.second, "osdev_type", 0);
    if (type == wanted.number) return true;
    return type > kCoprocessor.number && type < 256 && (static_cast<int>(type) & wanted.bit) != 0;
  });
}

bool is_display_only(const Element& object) {
  const std::string kind = attribute(object, "pci_type");
  if (!kind.starts_with("0300") || kind.find("[10de:") != std::string::npos) return false;
  constexpr double kOneLane = 0.5;  // GB/s, Gen2
  const bool maker = kind.find("[1002:") != std::string::npos || kind.find("[8086:") != std::string::npos;
  return !maker ||
         (!has_osdev(object, kCoprocessor) && !(nccl::number(object, "pci_link_speed", 0) > kOneLane));
}

DeviceKind role_of(const Element& object) {
  const std::string kind = attribute(object, "pci_type");
  if ((kind.starts_with("03") && !is_display_only(object)) || kind.starts_with("12"))
    return DeviceKind::accelerator;
  if (kind.starts_with("02") || kind.starts_with("0c06")) return DeviceKind::nic;
  // A switch that is asleep reports class 0000; hwloc recognises it by its driver.
  const bool nvswitch = kind.starts_with("0680 [10de:") || attribute(object, "subtype") == "NVSwitch";
  return nvswitch ? DeviceKind::nvswitch : DeviceKind::storage;
}

bool is_wanted(const Element& object) {
  const DeviceKind role = role_of(object);
  return type_of(object) == "PCIDev" && (role == DeviceKind::accelerator || role == DeviceKind::nic);
}

int devices_below(const Element& object) {
  int count = 0;
  for (const auto& [name, child] : object)
    if (name == "object") count += is_wanted(child) ? 1 : devices_below(child);
  return count;
}

bool names_rdma(const Element& object) {
  return std::any_of(object.begin(), object.end(), [](const auto& child) {
    return child.first == "object" &&
           ((is_wanted(child.second) && has_osdev(child.second, kOpenFabrics)) || names_rdma(child.second));
  });
}
}  // namespace topsim::topology::hwloc
