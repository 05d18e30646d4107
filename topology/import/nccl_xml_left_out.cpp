#include <fmt/format.h>

#include <algorithm>

#include "sim/base/error.hpp"
#include "topology/import/nccl_xml_importer.hpp"
#include "topology/import/usual_hosts.hpp"

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

// NCCL's figure for them is one to rank paths by, far below what they carry: its search reads it by the
// family (nccl_assumptions.hpp), and only without a catalogue it stands for the wire, too.
void Importer::sockets(const std::vector<std::pair<DeviceId, std::string>>& cpus) {
  if (cpus.size() < 2) return;
  const UsualHost& usual = usual_host(cpus.front().second);
  const LinkEntry* entry = listed(usual.socket_link);
  if (entry != nullptr)
    find(fmt::format("the sockets' link is not told: {} x{} is assumed", usual.socket_link,
                     usual.socket_links));
  for (std::size_t a = 0; a < cpus.size(); ++a)
    for (std::size_t b = a + 1; b < cpus.size(); ++b) {
      if (entry != nullptr) {
        cable(cpus[a].first, cpus[b].first, LinkKind::socket, {entry->id, entry->label, entry->source},
              entry->line_rate.value() * usual.socket_links,
              payload_capacity(*entry).value() * usual.socket_links, usual.socket_links, usual.socket_link);
        continue;
      }
      const float assumed = socket_bandwidth(cpus[a].second);
      const double rate = (assumed > 0 ? assumed : socket_bandwidth("intel-bdw")) * 1e9;
      cable(cpus[a].first, cpus[b].first, LinkKind::socket,
            {"socket-link", "socket interconnect", "NCCL 2.30 graph/topo.h; the file has none"}, rate, rate,
            1);
    }
}

void Importer::host_memory(const std::vector<std::pair<DeviceId, std::string>>& cpus, std::uint32_t node) {
  if (options_.catalogue == nullptr || cpus.empty()) return;
  find(memory_finding(usual_host(cpus.front().second)));
  for (std::uint32_t i = 0; i < cpus.size(); ++i) {
    const DeviceId memory = builder_.device(
        {.kind = DeviceKind::host_memory, .node = node, .local = i, .model = builder_.model("host-memory")});
    const double rate = usual_host(cpus[i].second).memory_gigabytes * 1e9;
    cable(cpus[i].first, memory, LinkKind::memory,
          {"host-memory", "host memory", "assumed: servers of its family of CPUs"}, rate, rate);
  }
}

}  // namespace topsim::topology::nccl
