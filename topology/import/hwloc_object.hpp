// What an object of hwloc's XML is.
#pragma once

#include <string>

#include "topology/import/nccl_xml_element.hpp"
#include "topology/topology.hpp"

namespace topsim::topology::hwloc {
using nccl::Element;

// A hwloc_obj_osdev_type_e: a number up to 5 in format 2, bits in format 3.
struct OsDevice {
  int number, bit;
};
inline constexpr OsDevice kOpenFabrics{3, 32}, kCoprocessor{5, 8};

[[nodiscard]] std::string type_of(const Element& object);
[[nodiscard]] bool is_socket(const Element& object);
[[nodiscard]] bool has_osdev(const Element& object, OsDevice wanted);

// Servers have a display of class 0300 on their management chip, as workstations' GPUs are: NVIDIA makes no
// such chips, others' are known by a slot of a lane or none, and by no driver that computes.
[[nodiscard]] bool is_display_only(const Element& object);

// By PCI class: "0302 [10de:1db8] ..." is a GPU. 03xx display, 12xx accelerator, 02xx network, 0c06
// InfiniBand, 0680 NVSwitch.
[[nodiscard]] DeviceKind role_of(const Element& object);
[[nodiscard]] bool is_wanted(const Element& object);  // a GPU or a NIC

[[nodiscard]] int devices_below(const Element& object);  // GPUs and NICs, through any bridges
[[nodiscard]] bool names_rdma(const Element& object);    // of some NIC below
}  // namespace topsim::topology::hwloc
