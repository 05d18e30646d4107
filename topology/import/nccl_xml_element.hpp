// Reading one element of NCCL's topology file: attributes, PCIe speeds in both spellings, what a PCI device
// is.
#pragma once

#include <boost/property_tree/ptree.hpp>
#include <cstdint>
#include <string>

#include "sim/base/units.hpp"

namespace topsim::topology::nccl {

using Element = boost::property_tree::ptree;

[[nodiscard]] std::string attribute(const Element& element, const char* name,
                                    const std::string& missing = {});
// In lower case: NCCL compares ids as numbers.
[[nodiscard]] std::string bus_id(const Element& element, const char* name);
// `missing` where there is none; throws ConfigError where it is not finite.
[[nodiscard]] double number(const Element& element, const char* name, double missing);
// From 0 to `most`; else throws ConfigError.
[[nodiscard]] int whole_number(const Element& element, const char* name, int missing, int most);
// Of a device among its kind.
[[nodiscard]] std::uint32_t device_number(const Element& element, const char* name, std::uint32_t missing);

// Signalling rate after the line coding: GT/s x lanes x 8/10 (generations 1, 2) or 128/130.
struct PcieLink {
  double transfers = 0;  // GT/s; 0 when the file says nothing
  int lanes = 0;
  [[nodiscard]] BytesPerSecond line_rate() const;
  [[nodiscard]] bool known() const { return transfers > 0 && lanes > 0; }
};
[[nodiscard]] PcieLink pcie_link(const Element& pci);
// Of the fastest device behind a bridge, or of the device itself.
[[nodiscard]] PcieLink fastest_below(const Element& pci);

enum class PciRole { bridge, gpu, nic, other };
[[nodiscard]] PciRole role_of(const Element& pci);
[[nodiscard]] bool leads_to_device(const Element& pci);

// Of any <pci> below: files that clouds ship may have bus ids alone.
[[nodiscard]] bool tells_class(const Element& element);
// Of any <net> below: some is not marked net="0", as the parts of a fused NIC are.
[[nodiscard]] bool carries_traffic(const Element& element);

// intel-bdw, intel-skl, intel-spr, intel-erp, amd, arm, power9; empty: unknown.
[[nodiscard]] std::string cpu_family(const Element& cpu);
}  // namespace topsim::topology::nccl
