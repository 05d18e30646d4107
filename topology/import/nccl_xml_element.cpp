#include "topology/import/nccl_xml_element.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <sstream>

#include "sim/base/error.hpp"
#include "sim/base/take_number.hpp"

namespace topsim::topology::nccl {

std::string attribute(const Element& element, const char* name, const std::string& missing) {
  return element.get<std::string>(std::string("<xmlattr>.") + name, missing);
}

std::string bus_id(const Element& element, const char* name) {
  std::string id = attribute(element, name);
  for (char& c : id)
    if (c >= 'A' && c <= 'F') c = static_cast<char>(c - 'A' + 'a');
  return id;
}

double number(const Element& element, const char* name, double missing) {
  const std::string text = attribute(element, name);
  double value = missing;
  if (text.starts_with("0x")) {
    std::uint64_t bits = 0;
    if (std::from_chars(text.data() + 2, text.data() + text.size(), bits, 16).ec == std::errc{})
      value = static_cast<double>(bits);
  } else {
    std::string_view rest = text;
    value = take_number<double>(rest).value_or(missing);
  }
  if (!std::isfinite(value)) throw ConfigError(fmt::format("{}=\"{}\" is no number", name, text), "");
  return value;
}

namespace {
// "0000:1b:00.0: ", or what else tells one element from others.
std::string shown_place(const Element& element) {
  for (const char* name : {"busid", "name", "target"})
    if (const std::string id = attribute(element, name); !id.empty()) return id + ": ";
  return {};
}
}  // namespace

int whole_number(const Element& element, const char* name, int missing, int most) {
  const double value = number(element, name, missing);
  if (!(value >= 0 && value <= most && value == std::floor(value)))
    throw ConfigError(
        fmt::format("{}{}=\"{}\" counts nothing", shown_place(element), name, attribute(element, name)),
        fmt::format("a whole number from 0 to {}", most));
  return static_cast<int>(value);
}

std::uint32_t device_number(const Element& element, const char* name, std::uint32_t missing) {
  constexpr int kMost = 65535;
  return static_cast<std::uint32_t>(whole_number(element, name, static_cast<int>(missing), kMost));
}

BytesPerSecond PcieLink::line_rate() const {
  const double coding = transfers < 8 ? 0.8 : 128.0 / 130;
  return BytesPerSecond(transfers * 1e9 * lanes * coding / 8);
}

PcieLink pcie_link(const Element& pci) {
  PcieLink link;
  std::istringstream(attribute(pci, "link_speed")) >> link.transfers;  // "8 GT/s" or "8.0 GT/s PCIe"
  constexpr int kWidest = 32;                                          // lanes of a PCIe link
  // Linux has 255 for a width that it does not know, and 63 where the device did not answer.
  const std::string width = attribute(pci, "link_width");
  link.lanes = width == "255" || width == "63" ? 0 : whole_number(pci, "link_width", 0, kWidest);
  return link;
}

PciRole role_of(const Element& pci) {
  if (pci.count("gpu") != 0) return PciRole::gpu;
  if (pci.count("nic") != 0) return PciRole::nic;
  // Hand-written files for virtual machines identify devices only by class.
  const std::string kind = attribute(pci, "class");
  if (kind.starts_with("0x03") || kind.starts_with("0x12")) return PciRole::gpu;
  if (kind.starts_with("0x02")) return PciRole::nic;
  return kind.starts_with("0x0680") || pci.count("pci") == 0 ? PciRole::other : PciRole::bridge;
}

bool leads_to_device(const Element& pci) {
  const PciRole role = role_of(pci);
  if (role == PciRole::gpu || role == PciRole::nic) return true;
  return std::any_of(pci.begin(), pci.end(),
                     [](const auto& child) { return child.first == "pci" && leads_to_device(child.second); });
}

bool tells_class(const Element& element) {
  return std::any_of(element.begin(), element.end(), [](const auto& child) {
    return child.first != "<xmlattr>" &&
           ((child.first == "pci" &&
             (child.second.count("gpu") > 0 || !attribute(child.second, "class").empty())) ||
            tells_class(child.second));
  });
}

bool carries_traffic(const Element& element) {
  return std::any_of(element.begin(), element.end(), [](const auto& child) {
    return child.first != "<xmlattr>" &&
           ((child.first == "net" && attribute(child.second, "net") != "0") || carries_traffic(child.second));
  });
}

PcieLink fastest_below(const Element& pci) {
  PcieLink best = role_of(pci) == PciRole::bridge ? PcieLink{} : pcie_link(pci);
  for (const auto& [name, child] : pci) {
    if (name != "pci") continue;
    const PcieLink link = fastest_below(child);
    if (link.line_rate() > best.line_rate()) best = link;
  }
  return best;
}

std::string cpu_family(const Element& cpu) {
  const std::string vendor = attribute(cpu, "vendor"), arch = attribute(cpu, "arch");
  if (arch == "arm64") return "arm";
  if (arch == "ppc64") return "power9";
  if (vendor == "AuthenticAMD") return "amd";
  if (vendor != "GenuineIntel") return {};
  // Models of family 6 from Skylake, Sapphire Rapids and Emerald Rapids on; Ice Lake's two are between them.
  if (number(cpu, "familyid", 0) != 6) return "intel-bdw";
  const int model = static_cast<int>(number(cpu, "modelid", 0));
  return model >= 0xCF                    ? "intel-erp"
         : model >= 0x8F                  ? "intel-spr"
         : model == 0x6A || model == 0x6C ? "intel-icx"
         : model >= 0x55                  ? "intel-skl"
                                          : "intel-bdw";
}
}  // namespace topsim::topology::nccl
