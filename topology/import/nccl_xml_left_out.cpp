#include <fmt/format.h>

#include <algorithm>

#include "sim/base/error.hpp"
#include "topology/import/nccl_xml_importer.hpp"

namespace topsim::topology::nccl {

// Devices with the same wrong value, or without one, are one finding.
void Importer::together(const std::string& what, const std::string& where) {
  std::vector<std::string>& devices = unsaid_[what];
  if (std::find(devices.begin(), devices.end(), where) == devices.end()) devices.push_back(where);
}

void Importer::unsaid(std::string_view what, std::string_view instead, const std::string& given,
                      const std::string& where) {
  const std::string said = given.empty() ? fmt::format("no PCIe {}", what)
                                         : fmt::format("\"{}\", which is no PCIe {}", given, what);
  together(fmt::format("{}; {} assumed, as NCCL does", said, instead), where);
}

// In virtual machines, bridges report speeds at which nothing runs; NCCL believes them, topsim does not.
PcieLink Importer::checked(const Element& element) {
  PcieLink link = pcie_link(element);
  const std::string where = attribute(element, "busid", "a device without bus id");
  const bool bridge = role_of(element) == PciRole::bridge;
  if (bridge) {
    const PcieLink below = fastest_below(element);
    if (below.known() && link.line_rate() < below.line_rate() * 0.5) {
      find(fmt::format(
          "PCIe bridge {} claims {} GT/s x{}, slower than the devices behind it; their {} GT/s x{} is "
          "used (dumps made in virtual machines are like this)",
          where, link.transfers, link.lanes, below.transfers, below.lanes));
      return below;
    }
  }
  if (link.lanes == 0) {
    unsaid("width", "16 lanes are", attribute(element, "link_width"), where);
    link.lanes = 16;
  }
  if (link.transfers <= 0) {
    unsaid("speed", "8 GT/s is", attribute(element, "link_speed"), where);
    link.transfers = 8;
  }
  if (!bridge && link.transfers < 8)
    find(fmt::format(
        "{} runs at {} GT/s: an idle device or a virtual machine's invention; dump again under load", where,
        link.transfers));
  return link;
}

// NCCL writes all machines of an NVLink domain to one file, distinguished by a hash of their names.
void Importer::one_machine() const {
  std::set<std::string> hosts;
  for (const auto& [name, cpu] : system_)
    if (name == "cpu") hosts.insert(attribute(cpu, "host_hash"));
  if (hosts.size() > 1)
    throw ConfigError(
        fmt::format("{} describes {} machines (host_hash), and one is read", options_.name, hosts.size()),
        "dump the topology of one machine (NCCL_MNNVL_ENABLE=0); --nodes N builds N of it");
}

void Importer::sockets(const std::vector<std::pair<DeviceId, std::string>>& cpus) {
  for (std::size_t a = 0; a < cpus.size(); ++a)
    for (std::size_t b = a + 1; b < cpus.size(); ++b) {
      const float assumed = socket_bandwidth(cpus[a].second);
      const double rate = (assumed > 0 ? assumed : socket_bandwidth("intel-bdw")) * 1e9;
      cable(cpus[a].first, cpus[b].first, LinkKind::socket,
            {"socket-link", "socket interconnect", "NCCL 2.30 graph/topo.h; the file has none"}, rate, rate,
            1, "upi-spr");
    }
}

}  // namespace topsim::topology::nccl
