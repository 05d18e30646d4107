#include <fmt/format.h>

#include <algorithm>

#include "sim/base/error.hpp"
#include "topology/import/nccl_xml_importer.hpp"

namespace topsim::topology::nccl {

// Devices with the same wrong value, or without one, are one finding.
void Importer::unsaid(std::string_view what, std::string_view instead, const std::string& given,
                      const std::string& where) {
  const std::string said = given.empty() ? fmt::format("no PCIe {}", what)
                                         : fmt::format("\"{}\", which is no PCIe {}", given, what);
  std::vector<std::string>& devices = unsaid_[fmt::format("{}; {} assumed, as NCCL does", said, instead)];
  if (std::find(devices.begin(), devices.end(), where) == devices.end()) devices.push_back(where);
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

DeviceId Importer::rail(std::uint32_t number) {
  while (rails_.size() <= number) {
    const auto local = static_cast<std::uint32_t>(rails_.size());
    rails_.push_back(builder_.device({.kind = DeviceKind::fabric_switch,
                                      .tier = 1,
                                      .local = local,
                                      .model = builder_.model("assumed-rail-switch")}));
  }
  return rails_[number];
}

// The payload of a NIC's cable and its latency, including a switch, come from the catalogue.
void Importer::uncabled(DeviceId nic) {
  ++uncabled_;
  if (nic_link_ == nullptr) return;
  Link link{};
  link.from = nic;
  link.to = rail(nics_);
  link.kind = nic_link_->kind;
  link.count = 1;
  link.type = builder_.link_type({nic_link_->id, nic_link_->label, nic_link_->source, nic_link_->transport});
  link.capacity = payload_capacity_at_nic(*nic_link_);
  link.line_rate = nic_link_->line_rate;
  link.latency = nic_link_->hop.value_or(nic_link_->fec);
  builder_.link(link);
  std::swap(link.from, link.to);
  link.latency = Duration{};
  builder_.link(link);
}

// NCCL gets the NVLinks of a GPU without <nvlink> from NVML. Which GPU each link leads to cannot be known
// here, except on boards of eight since Ampere: there all links lead to NVSwitches (HGX A100, H100, B200).
void Importer::unnamed_nvlinks(std::uint32_t node) {
  if (!scale_up_.empty() || figures_ == nullptr || figures_->nvlinks == 0) return;
  constexpr std::size_t kBoard = 8;
  constexpr int kAmpere = 80;
  const int links = figures_->nvlinks;
  const std::string has =
      fmt::format("the file names no {} though {} has {}",
                  figures_->compute_capability > 0 ? "NVLink" : figures_->scale_up_link, figures_->id, links);
  if (asked_)
    return find(has +
                ": NCCL found none on that machine, and copies go over PCIe; is it the right "
                "accelerator, and are its links up (nvidia-smi nvlink -s)?");
  if (!figures_->form.starts_with("SXM") || figures_->compute_capability < kAmpere ||
      gpus_of_box_.size() != kBoard)
    return find(has +
                ": NCCL would ask the driver for them; how they are wired is not known, and copies go "
                "over PCIe here, many times slower. A recipe has them: topology.node.use in place of "
                "topology.file (topsim topo list)");
  find(
      fmt::format("{}: NCCL reads them from NVML; {} to NVSwitches are assumed from every GPU, as on every "
                  "board of eight",
                  has, links));
  const DeviceId chips = builder_.device(
      {.kind = DeviceKind::nvswitch, .node = node, .local = 0, .model = builder_.model("nvswitch")});
  for (const DeviceId gpu : gpus_of_box_) {
    const int capability = capability_[gpu];
    cable(gpu, chips, LinkKind::nvlink,
          {fmt::format("nvlink-x{}", links), "NVLink", "assumed: the accelerator's"},
          nvlink_line_rate(capability) * links, nvlink_wire(capability) * links, links,
          figures_->scale_up_link);
  }
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
